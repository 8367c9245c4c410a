"""Pictures of a training: its curve, and which answers were right."""

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

# Fonts that have Chinese, Japanese and Korean, as systems call them.
_CJK = ("Noto Sans CJK", "Source Han Sans", "WenQuanYi", "PingFang", "Microsoft YaHei")
_MOST_CLASSES = 40  # beyond which nobody can read a matrix


def draw_training(
    path: pathlib.Path,
    history: Mapping[str, Sequence[float]],
    confusion: np.ndarray | None = None,
    labels: Sequence[str] = (),
) -> bool:
    """Writes one PNG: the losses of every epoch, and the confusion matrix.

    Args:
        path: the file to write.
        history: `loss` and, where there is one, `val_loss` of each epoch.
        confusion: int (C, C), rows true and columns predicted; None for none.
        labels: the C names.

    Returns:
        Whether it was drawn: matplotlib is not required.
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = confusion is not None and len(confusion) <= _MOST_CLASSES
    with matplotlib.rc_context({"font.family": fonts()}):
        figure, axes = plt.subplots(
            1, 1 + shown, figsize=(5.5 * (1 + shown), 4.2), layout="constrained"
        )
        first, *rest = np.atleast_1d(axes)
        for key, name in (("loss", "training"), ("val_loss", "held out")):
            if key in history:
                epochs = np.arange(1, len(history[key]) + 1)
                first.plot(epochs, history[key], "o-", label=name)
        first.set(xlabel="epoch", ylabel="loss", ylim=(0, None), title="Training")
        first.set_xticks(epochs)
        first.legend()
        for other in rest:
            draw_confusion(other, np.asarray(confusion), labels)
        figure.savefig(path, dpi=120)
        plt.close(figure)
    return True


def draw_confusion(axes, confusion: np.ndarray, labels: Sequence[str]) -> None:
    """Draws a confusion matrix.

    Args:
        axes: matplotlib's.
        confusion: int (C, C), rows true and columns predicted.
        labels: the C names.
    """
    axes.imshow(confusion, cmap="Blues", vmin=0)
    for (row, column), count in np.ndenumerate(confusion):
        color = "white" if count > confusion.max() / 2 else "black"
        axes.text(column, row, f"{count:,}", ha="center", va="center", color=color)
    axes.set_xticks(range(len(labels)), labels, rotation=45 * (len(labels) > 4))
    axes.set_yticks(range(len(labels)), labels)
    axes.set(xlabel="answered", ylabel="true", title="Held out")


def fonts() -> list[str]:
    """Returns the families to take letters from, those with Chinese ones after."""
    from matplotlib import font_manager

    installed = font_manager.get_font_names()
    return ["DejaVu Sans", *(n for n in sorted(installed) if n.startswith(_CJK))]
