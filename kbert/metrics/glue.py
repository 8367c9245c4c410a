"""The official scores of GLUE's tasks (Wang et al. 2019, https://gluebenchmark.com).

Where a score is undefined, as a correlation with a constant is, it is 0.
"""

from collections.abc import Callable, Mapping

import numpy as np

from kbert.metrics.regression import correlation

Scores = dict[str, float]
"""Name of a metric -> score; 1.0 is the best."""


def accuracy(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Returns the share of equal entries, of any dtype `(N,)`."""
    truth, predicted = _pair(truth, predicted)
    return float((truth == predicted).mean())


def f1(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Returns the F1 of class 1; 0 where neither side has it.

    Args:
        truth: 0 or 1, `(N,)`.
        predicted: the same.
    """
    truth, predicted = (side == 1 for side in _pair(truth, predicted))
    right, named = (truth & predicted).sum(), truth.sum() + predicted.sum()
    return float(2 * right / named) if named else 0.0


def matthews(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Returns Matthews' correlation, of two classes or more (Gorodkin 2004).

    Args:
        truth: class indices `(N,)`.
        predicted: the same.

    Returns:
        -1 to 1; 0 where one side has a single class.

    >>> matthews(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.5773502691896258
    """
    truth, predicted = _pair(truth, predicted)
    classes = np.union1d(truth, predicted)
    there = (truth[:, None] == classes).astype("float64")  # (N, C)
    named = (predicted[:, None] == classes).astype("float64")
    there -= there.mean(axis=0)
    named -= named.mean(axis=0)
    scale = np.sqrt((there**2).sum() * (named**2).sum())
    return float((there * named).sum() / scale) if scale > 0 else 0.0


def pearson(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Returns Pearson's correlation of numbers `(N,)`; 0 where a side is constant."""
    return correlation(*(side.astype("float64") for side in _pair(truth, predicted)))


def spearman(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Returns Spearman's correlation, that of ranks; equal numbers share theirs.

    >>> round(spearman(np.array([1, 2, 3]), np.array([10, 1000, 100])), 6)
    0.5
    """
    truth, predicted = _pair(truth, predicted)
    return pearson(_ranks(truth), _ranks(predicted))


METRICS: Mapping[str, tuple[Callable[[np.ndarray, np.ndarray], float], ...]] = {
    "CoLA": (matthews,),
    "SST-2": (accuracy,),
    "MRPC": (f1, accuracy),
    "QQP": (f1, accuracy),
    "STS-B": (pearson, spearman),
    "MNLI": (accuracy,),
    "QNLI": (accuracy,),
    "RTE": (accuracy,),
    "WNLI": (accuracy,),
    "AX": (matthews,),
}
"""GLUE's name of a task -> its metrics; a task's score is their mean."""


def glue_scores(task: str, truth: np.ndarray, predicted: np.ndarray) -> Scores:
    """Returns the official scores of a task.

    Args:
        task: GLUE's name of it, such as "STS-B".
        truth: class indices, or numbers, `(N,)`.
        predicted: the same.

    Returns:
        {name of the metric: score}.

    Raises:
        ValueError: if GLUE has no such task, shapes differ, there is nothing to
            compare, or a number is not finite.

    >>> glue_scores("MRPC", np.array([1, 1, 0]), np.array([1, 0, 0]))
    {'f1': 0.6666666666666666, 'accuracy': 0.6666666666666666}
    """
    if task not in METRICS:
        raise ValueError(
            f"A task of GLUE must be one of {sorted(METRICS)}. Received: {task!r}."
        )
    return {each.__name__: each(truth, predicted) for each in METRICS[task]}


def _pair(truth, predicted) -> tuple[np.ndarray, np.ndarray]:
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != predicted.shape or not truth.size:
        raise ValueError(
            "Truth and predictions must both have the shape (N,), N at least 1. "
            f"Received: {truth.shape} and {predicted.shape}."
        )
    for name, side in (("Truth", truth), ("Predictions", predicted)):
        if side.dtype.kind == "f" and not np.isfinite(side).all():
            raise ValueError(
                f"{name} must be finite. Received: {side[~np.isfinite(side)][0]}."
            )
    return truth, predicted


def _ranks(values: np.ndarray) -> np.ndarray:
    """Returns the rank of every entry, from 1; equal ones have their mean."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return (ends - (counts - 1) / 2)[which]
