"""Where a command's texts come from."""

from typing import NamedTuple


class Source(NamedTuple):
    """A table and the columns that are asked for; see `kbert.data.tables.read_table`.

    Args:
        data: the file; "-" for standard input, a text a line.
        text: the column of the texts, None for standard input.
        label: the column of the labels, or None.
        second: the column of the second texts, or None.
        encoding: of the file, or None for UTF-8 or what its mark says.
        delimiter: of the cells, or None for that of the file's ending.
    """

    data: str
    text: str | None
    label: str | None
    second: str | None
    encoding: str | None
    delimiter: str | None
