"""Scores of a classifier's logits, as JSON and as a table for people."""

from collections.abc import Sequence

import numpy as np
import rich.table
import rich.text

from kbert.metrics.classification import class_scores, one_hot
from kbert.metrics.regression import regression_scores
from kbert_cli.options import Problem


def score(
    problem: str, truth: np.ndarray, logits: np.ndarray, names: Sequence[str] | None
) -> dict:
    """Score logits against what `encode_labels` returned.

    Args:
        problem: see `Problem`.
        truth: int32 `(N,)`, float32 `(N, C)` or float32 `(N,)`.
        logits: float32 `(N, C)`; `(N, 1)` for a regression.
        names: the C names; None for a regression.
    """
    if problem == Problem.regression:
        return regression_scores(truth, logits[:, 0])
    if problem == Problem.multi_label:
        right, named = truth > 0.5, logits > 0  # a probability above 1/2
    else:
        right = one_hot(truth, logits.shape[1])
        named = one_hot(logits.argmax(axis=1), logits.shape[1])
    scores = class_scores(right, named)
    return {
        "accuracy": float((right == named).all(axis=1).mean()),
        "macro_f1": float(scores.f1.mean()),
        "classes": {
            name: {
                key: values[index].item() for key, values in scores._asdict().items()
            }
            for index, name in enumerate(names or [])
        },
    }


def report(scores: dict, title: str) -> rich.table.Table:
    """The result of `score` as a table."""
    classes = scores.get("classes", {})
    table = rich.table.Table(title=rich.text.Text(title), title_justify="left")
    table.add_column("class" if classes else "score")
    columns = ["precision", "recall", "f1", "support"] if classes else ["value"]
    for column in columns:
        table.add_column(column, justify="right")
    for name, values in classes.items():
        numbers = [f"{values[column]:.3f}" for column in columns[:-1]]
        table.add_row(rich.text.Text(name), *numbers, f"{values['support']:,}")
    table.add_section()
    for name, value in scores.items():
        if name != "classes":
            blanks = [""] * (len(columns) - 2) if classes else []
            total = [""] if classes else []
            table.add_row(name.replace("_", " "), *blanks, f"{value:.3f}", *total)
    return table
