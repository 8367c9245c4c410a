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
    a, b = truth - truth.mean(), predicted - predicted.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return {
        "mean_absolute_error": float(np.abs(error).mean()),
        "root_mean_squared_error": float(np.sqrt((error**2).mean())),
        "pearson": float(a @ b / scale) if scale > 0 else 0.0,
    }
