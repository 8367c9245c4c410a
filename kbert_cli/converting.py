"""What `kbert convert` does."""

import pathlib

import rich.table
import rich.text

from kbert.convert import conversion
from kbert_cli.console import out
from kbert_cli.options import CheckpointFormat


def convert(
    source: str, target: pathlib.Path, format: CheckpointFormat, allow_pickle: bool
) -> bool:
    """Write a preset in another format; report what that changes.

    Args:
        source: a folder, a zip of Google's, a built-in name, or a hub's handle.
        target: the folder to write.
        format: of the target.
        allow_pickle: whether `pytorch_model.bin` may be read.

    Returns:
        Whether both sides, loaded anew, answer the same.
    """
    done = conversion.convert_preset(
        source, target, format.value, allow_pickle=allow_pickle
    )
    table = rich.table.Table(title="Mapped", title_justify="left")
    for column in ("in kbert", "in the source", "in the target", "shape"):
        table.add_column(column, overflow="fold")
    table.add_column("tensors", justify="right")
    for row in done.mapped:
        cells = (row.path, row.source, row.target, " x ".join(map(str, row.shape)))
        table.add_row(*map(rich.text.Text, cells), str(row.count))
    out().print(table)
    count = sum(row.count for row in done.mapped)
    _tell(f"{done.source}: {count} tensors, each in its place.")
    for what, why in done.dropped:
        _tell(f"Dropped {what}: {why}.")
    for what, why in done.new:
        _tell(f"New {what}: {why}.")
    for line in done.differences:
        _tell(f"{line}.")
    _tell(f"Wrote {target}: {', '.join(done.files)}.")
    _tell_comparison(done)
    return done.faithful


def _tell_comparison(done: conversion.Conversion) -> None:
    """Print how far the outputs of both sides lie from each other."""
    for text in done.other_ids:
        _tell(f"Other ids in the target: {text!r}.", "red")
    for name, difference in done.outputs.items():
        far = difference > conversion.TOLERANCE
        _tell(
            f"{done.kind}, {name.replace('_', ' ')}: largest difference of both sides "
            f"{difference:.1e}, at most {conversion.TOLERANCE:g} allowed.",
            "red" if far else "",
        )


def _tell(line: str, style: str = "") -> None:
    """Print a line of the report, in which brackets are no markup."""
    out().print(rich.text.Text(line, style))
