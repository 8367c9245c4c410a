"""How a run of pre-training goes: tables on the disk, TensorBoard, a picture."""

import csv
import io
import math
from pathlib import Path

from kbert.files import replace_file

TRAINING, HELD_OUT = "curve.csv", "held_out.csv"
PICTURE, TENSORBOARD = "curves.png", "tensorboard"


class CurveTable:
    """A table of numbers by step, a row a line, which grows while a run goes on.

    Args:
        path: the .csv file.
        after: rows of later steps are dropped: the run went back before them.

    Attributes:
        rows: of the table, {column: number}.
    """

    def __init__(self, path: Path, after: int):
        self.path = path
        self.rows = [row for row in read_rows(path) if row["step"] <= after]
        replace_file(path, self._write)

    def add(self, row: dict[str, float]) -> None:
        """Adds a row, with the same columns as those before.

        Args:
            row: {column: number}, "step" among them.
        """
        lines = io.StringIO()
        writer = csv.DictWriter(lines, row, lineterminator="\n")
        if not self.rows:
            writer.writeheader()
        writer.writerow(row)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(lines.getvalue())
        self.rows.append(row)

    def has(self, step: int) -> bool:
        """Whether there is a row of a step."""
        return any(row["step"] == step for row in self.rows)

    def _write(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            if self.rows:
                writer = csv.DictWriter(file, self.rows[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows)


def read_rows(path: Path) -> list[dict[str, float]]:
    """Returns the rows of a table, {column: number}; none where there is no file.

    Args:
        path: the .csv file.
    """
    if not path.exists():
        return []
    content = path.read_text(encoding="utf-8")
    lines = content.splitlines(keepends=True)
    # A process that is killed may leave half a line.
    whole = lines if content.endswith("\n") else lines[:-1]
    return [
        {key: float(value) for key, value in row.items()}
        for row in csv.DictReader(whole)
    ]


def open_tensorboard(folder: Path, after: int):
    """Returns a writer of TensorBoard's files, by the package tensorboardX.

    Args:
        folder: where to.
        after: what was written of later steps is to be hidden.

    Raises:
        ImportError: if the package is missing.
    """
    try:
        import tensorboardX  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "Curves for TensorBoard need the package tensorboardX. To install it: pip "
            "install 'keras-kbert[tensorboard]'. Or set tensorboard = false: curve.csv "
            "has the same."
        ) from error
    return tensorboardX.SummaryWriter(str(folder), purge_step=after + 1)


def draw(folder: Path) -> Path | None:
    """Draws the losses and accuracies of a run over its steps.

    Args:
        folder: with both tables.

    Returns:
        The picture; None where matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    tables = {
        "training": read_rows(folder / TRAINING),
        "held out": read_rows(folder / HELD_OUT),
    }
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for name, rows in tables.items():
            columns = [key for key in (rows[0] if rows else {}) if key.endswith(kind)]
            for color, column in enumerate(columns):
                axes.plot(
                    [row["step"] for row in rows],
                    [row.get(column, math.nan) for row in rows],
                    "-" if name == "training" else "o",
                    color=f"C{color}",
                    markersize=4,
                    label=f"{column.replace('_', ' ')}, {name}",
                )
        axes.set(xlabel="step", ylabel=kind)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize="small")
    path = folder / PICTURE
    replace_file(path, lambda temporary: figure.savefig(temporary, format="png"))
    return path
