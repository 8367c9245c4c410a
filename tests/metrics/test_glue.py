"""GLUE's scores against scikit-learn and scipy, and where they are undefined."""

import importlib.util
import warnings

import numpy as np
import pytest

from kbert.data.glue import TASKS
from kbert.metrics import glue

if importlib.util.find_spec("sklearn") is not None:
    import scipy.stats
    import sklearn.metrics as judge

    def correlation(of):
        def score(truth, predicted):
            return np.nan_to_num(of(truth, predicted).statistic)

        return score

    CLASSES = {
        glue.accuracy: judge.accuracy_score,
        glue.f1: lambda *sides: judge.f1_score(
            *[side == 1 for side in sides], zero_division=0
        ),
        glue.matthews: judge.matthews_corrcoef,
    }
    NUMBERS = {
        glue.pearson: correlation(scipy.stats.pearsonr),
        glue.spearman: correlation(scipy.stats.spearmanr),
    }

    @pytest.mark.parametrize("metric", CLASSES)
    @pytest.mark.parametrize("num_classes", [1, 2, 3])
    def test_classes(metric, num_classes):
        random = np.random.default_rng(num_classes)
        for size in [1, 2, 3, 10, 1000] * 20:
            truth, predicted = random.integers(0, num_classes, (2, size))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = CLASSES[metric](truth, predicted)
            assert metric(truth, predicted) == pytest.approx(expected, abs=1e-6)

    def sides():
        random = np.random.default_rng(0)
        for size in [2, 3, 10, 1000]:
            for scale in [1e-150, 1e-6, 1.0, 1e150]:
                truth = random.normal(size=size) * scale
                noise = random.normal(size=size) * scale
                yield truth, truth + noise
                yield truth, -truth
                yield np.round(truth / scale), np.round(noise / scale)  # ties
                yield truth, np.full(size, scale)

    @pytest.mark.parametrize("metric", NUMBERS)
    def test_numbers(metric):
        for truth, predicted in sides():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of constants
                expected = NUMBERS[metric](truth, predicted)
            assert metric(truth, predicted) == pytest.approx(expected, abs=1e-6)


def test_undefined_scores_are_zero():
    zeros, ones, ramp = np.zeros(4, int), np.ones(4, int), np.arange(4)
    assert glue.f1(zeros, zeros) == 0
    assert glue.matthews(ones, ones) == 0
    assert glue.matthews(ramp % 2, ones) == 0
    for constant in (zeros, ones, np.full(4, 0.1), np.full(4, 1e-300)):
        assert glue.pearson(ramp, constant) == 0
        assert glue.spearman(constant, ramp) == 0


def test_every_task_has_its_metrics():
    """The columns of the leaderboard."""
    assert set(glue.METRICS) == {task.name for task in TASKS.values()}
    truth = np.array([0.0, 2.0, 5.0])
    assert glue.glue_scores("STS-B", truth, truth * 2 + 1) == pytest.approx(
        {"pearson": 1.0, "spearman": 1.0}
    )
    assert list(glue.glue_scores("QQP", truth, truth)) == ["f1", "accuracy"]
    assert list(glue.glue_scores("CoLA", truth, truth)) == ["matthews"]
    assert list(glue.glue_scores("MNLI", truth, truth)) == ["accuracy"]


def test_what_is_refused():
    with pytest.raises(ValueError, match="Received: 'IMDB'"):
        glue.glue_scores("IMDB", np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match=r"Received: \(2,\) and \(3,\)"):
        glue.accuracy(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match=r"Received: \(0,\) and \(0,\)"):
        glue.pearson(np.zeros(0), np.zeros(0))
    with pytest.raises(ValueError, match="Predictions must be finite. Received: nan"):
        glue.spearman(np.zeros(2), np.array([0.0, np.nan]))
