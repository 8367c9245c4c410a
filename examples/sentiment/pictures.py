"""The picture of the demo: how training went, and which answers were right."""

import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from kbert_cli.pictures import draw_confusion  # noqa: E402

SMOOTHED_OVER = 20  # steps


def draw(path: pathlib.Path, curve, confusion: np.ndarray, labels: list[str]) -> None:
    """Write one PNG: loss a step and validation accuracy, and the confusion matrix.

    Args:
        path: the file to write.
        curve: a `callbacks.Curve` after training.
        confusion: int `(C, C)`, rows true and columns predicted.
        labels: the C names.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    _draw_curve(left, curve)
    draw_confusion(right, confusion, labels)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_curve(axes, curve) -> None:
    losses = np.asarray(curve.losses)
    steps = np.arange(1, len(losses) + 1)
    width = min(SMOOTHED_OVER, len(losses))
    smooth = np.convolve(losses, np.ones(width) / width, "valid")
    axes.plot(steps, losses, color="tab:blue", alpha=0.25, linewidth=0.8)
    axes.plot(steps[width - 1 :], smooth, color="tab:blue", label="training loss")
    axes.set(xlabel="step", ylabel="loss", ylim=(0, None), title="Training")
    other = axes.twinx()
    at, accuracies = zip(*curve.accuracies, strict=True)
    other.plot(at, accuracies, "o-", color="tab:orange", label="validation accuracy")
    other.set(ylabel="accuracy", ylim=(0.4, 1))
    axes.figure.legend(loc="outside lower left", ncols=2)
