import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from kbert.metrics.classification import class_scores, one_hot


@pytest.mark.parametrize("average", ["single", "multi"])
def test_scores_are_those_of_scikit_learn(average):
    random = np.random.default_rng(0)
    if average == "single":
        truth, predicted = random.integers(0, 4, (2, 200))
        predicted[predicted == 3] = 0  # a class that is never named
        expected = precision_recall_fscore_support(truth, predicted, zero_division=0)
        scores = class_scores(one_hot(truth, 4), one_hot(predicted, 4))
    else:
        truth, predicted = random.random((2, 200, 5)) < 0.3
        truth[:, 4] = False  # a class that never stands
        expected = precision_recall_fscore_support(truth, predicted, zero_division=0)
        scores = class_scores(truth, predicted)
    for ours, theirs in zip(scores, expected, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(3, 2\) and \(2, 2\)"):
        class_scores(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"\(3,\) and \(3,\)"):
        class_scores(np.zeros(3), np.zeros(3))
