"""Precision, recall and F1 of every class."""

from typing import NamedTuple

import numpy as np


class ClassScores(NamedTuple):
    """Scores of each of C classes; a score whose denominator is 0 is 0.

    Args:
        precision: float64 `(C,)`, the right ones among those that were named.
        recall: float64 `(C,)`, those that were named among the right ones.
        f1: float64 `(C,)`, the harmonic mean of the two.
        support: int64 `(C,)`, how often each class is right.
    """

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray


def one_hot(classes: np.ndarray, num_classes: int) -> np.ndarray:
    """Class indices `(N,)` as bool `(N, C)`.

    >>> one_hot(np.array([1, 0]), 2)
    array([[False,  True],
           [ True, False]])
    """
    return np.asarray(classes)[:, None] == np.arange(num_classes)


def class_scores(truth: np.ndarray, predicted: np.ndarray) -> ClassScores:
    """Compare bool `(N, C)`, one or several classes a row, with bool `(N, C)`.

    >>> truth, predicted = np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1])
    >>> scores = class_scores(one_hot(truth, 2), one_hot(predicted, 2))
    >>> scores.precision.tolist(), scores.support.tolist()
    ([1.0, 0.5], [3, 1])
    """
    truth, predicted = np.asarray(truth, "bool"), np.asarray(predicted, "bool")
    if truth.ndim != 2 or truth.shape != predicted.shape:
        raise ValueError(
            "Truth and predictions must both have the shape (N, C). Received: "
            f"{truth.shape} and {predicted.shape}."
        )
    right = (truth & predicted).sum(axis=0)
    named, support = predicted.sum(axis=0), truth.sum(axis=0)
    return ClassScores(
        precision=right / np.maximum(named, 1),
        recall=right / np.maximum(support, 1),
        f1=2 * right / np.maximum(named + support, 1),
        support=support,
    )
