"""The label column of a table to what a classifier learns from."""

import math
from collections.abc import Sequence

import numpy as np

from kbert.data.rows import LABEL_SEPARATOR
from kbert.data.tables import Table
from kbert_cli.options import Problem


def label_names(table: Table, problem: str) -> list[str] | None:
    """The names that occur, in numerical order where all are numbers; else by letter.

    None for a regression, which has none.

    Raises:
        ValueError: fewer than two different labels occur.
    """
    if problem == Problem.regression:
        return None
    names = {name for cell in table.labels or [] for name in _names(cell, problem)}
    if len(names) < 2:
        raise ValueError(
            "The column of the labels must hold at least two different ones. Received: "
            f"{sorted(names)} in {table.report.path}."
        )
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def encode_labels(
    table: Table, problem: str, names: Sequence[str] | None
) -> np.ndarray:
    """The labels as numbers.

    Args:
        table: read with its label column.
        problem: see `Problem`. Several labels of one text stand in one cell, with `|`
            between them.
        names: the C names, in the order of the classifier; None for a regression.

    Returns:
        int32 `(N,)` class indices; float32 `(N, C)` of 0 and 1 for several labels a
        text; float32 `(N,)` for a regression.

    Raises:
        ValueError: a label is none of `names`, or is not a finite number.
    """
    cells = list(zip(table.rows, table.labels or [], strict=True))
    if problem == Problem.regression:
        return np.asarray([_number(row, cell) for row, cell in cells], "float32")
    index = {name: number for number, name in enumerate(names or [])}
    hot = np.zeros((len(cells), len(index)), "float32")
    for position, (row, cell) in enumerate(cells):
        for name in _names(cell, problem):
            if name not in index:
                raise ValueError(
                    f"Every label must be one of {list(index)}. Received: {name!r} in "
                    f"row {row}."
                )
            hot[position, index[name]] = 1
    return hot if problem == Problem.multi_label else hot.argmax(axis=1).astype("int32")


def _names(cell: str, problem: str) -> list[str]:
    if problem != Problem.multi_label:
        return [cell]
    return [name.strip() for name in cell.split(LABEL_SEPARATOR) if name.strip()]


def _number(row: int, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            "Every label of a regression must be a finite number. Received: "
            f"{cell!r} in row {row}."
        )
    return number
