"""Scores of predicted numbers."""

import numpy as np


def regression_scores(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Mean absolute error, root of the mean squared error, and Pearson's correlation.

    Args:
        truth: numbers `(N,)`.
        predicted: numbers `(N,)`.

    Returns:
        "mean_absolute_error", "root_mean_squared_error" and "pearson"; the last is 0
        where one side is constant, since it is undefined there.

    >>> scores = regression_scores(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    >>> round(scores["mean_absolute_error"], 3), round(scores["pearson"], 3)
    (1.5, 1.0)
    """
    truth, predicted = np.asarray(truth, "float64"), np.asarray(predicted, "float64")
    if truth.ndim != 1 or truth.shape != predicted.shape or not truth.size:
        raise ValueError(
            "Truth and predictions must both have the shape (N,), N at least 1. "
            f"Received: {truth.shape} and {predicted.shape}."
        )
    error = predicted - truth
    return {
        "mean_absolute_error": float(np.abs(error).mean()),
        "root_mean_squared_error": float(np.sqrt((error**2).mean())),
        "pearson": correlation(truth, predicted),
    }


def correlation(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Returns Pearson's correlation of float64 `(N,)`; 0 where a side is constant."""
    if (truth == truth[0]).all() or (predicted == predicted[0]).all():
        return 0.0  # what is left of a mean's rounding would correlate
    # Sizes do not matter, but their squares may leave the range of floats.
    a, b = (side / np.abs(side).max() for side in (truth, predicted))
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(np.clip(a @ b / scale, -1, 1)) if scale > 0 else 0.0
