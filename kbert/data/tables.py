"""A user's own table (CSV, TSV, JSON lines) to texts and labels.

Nothing is guessed and nothing is lost in silence: a file that cannot be read for sure
is refused with the row and the remedy, and every row left out is counted and told.
"""

import dataclasses
import os
import pathlib

from kbert.data.rows import Row, name_rows, read_rows


@dataclasses.dataclass(frozen=True)
class TableReport:
    """What became of the rows of a file.

    Args:
        path: the file.
        encoding: as which it was read.
        num_rows: rows of data in it, blank lines not counted.
        num_kept: rows that the table holds.
        skipped: reason -> numbers of the rows left out for it.
        notes: what a reader should know of the rows that were kept.
    """

    path: str
    encoding: str
    num_rows: int
    num_kept: int
    skipped: dict[str, list[int]]
    notes: list[str]

    def lines(self) -> list[str]:
        """The report as sentences, one a line."""
        told = [f"{self.path}: {self.num_kept:,} of {self.num_rows:,} rows read."]
        for reason, rows in self.skipped.items():
            told.append(f"Skipped {len(rows):,}: {reason} ({name_rows(rows)}).")
        return told + self.notes


@dataclasses.dataclass(frozen=True)
class Table:
    """The named columns of a file, row by row.

    Args:
        texts: the texts, N of them.
        seconds: the second texts of N pairs, or None.
        labels: the N labels as written in the file, or None.
        rows: N row numbers as a spreadsheet shows them: the header is row 1. In JSON
            lines, the line numbers.
        report: what was read and what was skipped.
    """

    texts: list[str]
    seconds: list[str] | None
    labels: list[str] | None
    rows: list[int]
    report: TableReport


def read_table(
    path: str | os.PathLike,
    text: str,
    label: str | None = None,
    second: str | None = None,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    keep_empty_texts: bool = False,
    keep_empty_labels: bool = False,
) -> Table:
    r"""Read the named columns of a CSV, TSV or JSON lines file.

    The ending of the name says the format: `.csv`, `.tsv` or `.tab`, `.jsonl` or
    `.ndjson`; for any other pass `delimiter`. In comma-separated files a cell may be
    quoted (RFC 4180), and then hold commas, line breaks and doubled quotation marks.
    In tab-separated files a quotation mark is a character like any other, as in GLUE's.

    Args:
        path: the file.
        text: the column of the texts.
        label: the column of the labels, if they are wanted. A JSON list of names is
            read as one cell, joined by `|`.
        second: the column of the second texts, for pairs.
        encoding: of the file. By default UTF-8, or what its byte order mark says.
        delimiter: the character between two cells. By default that of the ending.
        keep_empty_texts: keep rows whose text is empty, as predictions need it;
            otherwise they are skipped and told.
        keep_empty_labels: keep rows without a label, as several labels a text need it;
            otherwise they are skipped and told.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, of unknown format, in another encoding, holds NUL
            characters, a broken or ragged row, lacks a column or has no row to keep.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "reviews.csv"
    >>> _ = path.write_text('review,stars\n"Good, really.",5\n,1\n')
    >>> table = read_table(path, text="review", label="stars")
    >>> table.texts, table.labels
    (['Good, really.'], ['5'])
    >>> table.report.lines()[1]
    'Skipped 1: the cell "review" is empty (row 3).'
    >>> folder.cleanup()
    """
    path = pathlib.Path(path)
    wanted = [name for name in (text, second, label) if name is not None]
    rows, encoding, delimiter = read_rows(path, wanted, encoding, delimiter)
    optional = {text, second} if keep_empty_texts else set()
    optional |= {label} if keep_empty_labels else set()
    kept, skipped = _skip_empty(path, rows, optional)
    notes = _quotation_note(kept, delimiter)
    notes += _empty_text_note(kept, [name for name in wanted if name != label])
    return Table(
        texts=[cells[text] for _, cells in kept],
        seconds=None if second is None else [cells[second] for _, cells in kept],
        labels=None if label is None else [cells[label].strip() for _, cells in kept],
        rows=[number for number, _ in kept],
        report=TableReport(str(path), encoding, len(rows), len(kept), skipped, notes),
    )


def _skip_empty(
    path: pathlib.Path, rows: list[Row], optional: set[str | None]
) -> tuple[list[Row], dict[str, list[int]]]:
    """The rows whose cells are filled, and reason -> numbers of the other rows."""
    kept: list[Row] = []
    skipped: dict[str, list[int]] = {}
    for number, cells in rows:
        empty = [c for c in cells if not cells[c].strip() and c not in optional]
        if empty:
            skipped.setdefault(f'the cell "{empty[0]}" is empty', []).append(number)
        else:
            kept.append((number, cells))
    if not kept:
        reasons = [f"{len(rows):,} rows where {why}" for why, rows in skipped.items()]
        raise ValueError(
            "A table must have at least one row with its cells filled. Received: "
            f"{path} with {' and '.join(reasons) or 'a header and no rows'}."
        )
    return kept, skipped


def _quotation_note(rows: list[Row], delimiter: str) -> list[str]:
    """Spreadsheets quote cells of tab-separated files too; say that it was kept."""
    quoted = [
        number
        for number, cells in rows
        if any(len(c) > 1 and c[0] == c[-1] == '"' for c in cells.values())
    ]
    if delimiter != "\t" or not quoted:
        return []
    return [
        f"{len(quoted):,} rows have a cell between quotation marks "
        f"({name_rows(quoted)}); they are kept as part of the text, as in every "
        "tab-separated file. Save the file as CSV if a spreadsheet wrote them."
    ]


def _empty_text_note(rows: list[Row], columns: list[str]) -> list[str]:
    empty = [n for n, cells in rows if any(not cells[c].strip() for c in columns)]
    if not empty:
        return []
    return [f"Kept {len(empty):,} rows with an empty text ({name_rows(empty)})."]
