import numpy as np
import pytest

from kbert.metrics.regression import regression_scores


def test_scores_by_hand():
    scores = regression_scores([1, 2, 3, 6], [2, 2, 1, 5])
    assert scores["mean_absolute_error"] == 1.0
    assert scores["root_mean_squared_error"] == pytest.approx(np.sqrt(6 / 4))
    expected = np.corrcoef([1, 2, 3, 6], [2, 2, 1, 5])[0, 1]
    assert scores["pearson"] == pytest.approx(expected)


@pytest.mark.parametrize("constant", [0.0, 1e8])
def test_constant_predictions_have_a_correlation_of_0(constant):
    assert regression_scores([1, 2, 3], [constant] * 3)["pearson"] == 0.0


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(2,\) and \(2, 1\)"):
        regression_scores(np.zeros(2), np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"\(0,\) and \(0,\)"):
        regression_scores([], [])
