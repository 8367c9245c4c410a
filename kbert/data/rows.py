"""The bytes of a CSV, TSV or JSON lines file to numbered rows of named cells."""

import codecs
import csv
import io
import json
import pathlib
from collections.abc import Iterator
from typing import Any

LABEL_SEPARATOR = "|"
"""Stands between the names where one cell holds several labels."""

Row = tuple[int, dict[str, str]]
"""Row number as a spreadsheet shows it (the header is row 1), and column -> cell."""

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
# The byte order marks; UTF-32's begins with UTF-16's, so it is looked for first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LARGEST_CELL = 2**31 - 1  # characters; the csv module's own limit is 131,072
_ROWS_NAMED = 5


def read_rows(
    path: pathlib.Path,
    wanted: list[str],
    encoding: str | None,
    delimiter: str | None,
) -> tuple[list[Row], str, str]:
    """Read the wanted columns of every row; see `kbert.data.tables.read_table`.

    Returns:
        The rows, the encoding they were read as, and the delimiter ("" in JSON lines).
    """
    content, encoding = read_text(path, encoding)
    if path.suffix.lower() in _JSON_LINES and delimiter is None:
        return list(_json_rows(path, content, wanted)), encoding, ""
    delimiter = delimiter or _delimiter(path)
    return list(_delimited_rows(path, content, wanted, delimiter)), encoding, delimiter


def name_rows(rows: list[int]) -> str:
    """Name the first few: `row 3`, or `rows 3, 5, 8, 9, 11 and 20 more`."""
    named = ", ".join(str(row) for row in rows[:_ROWS_NAMED])
    more = f" and {len(rows) - _ROWS_NAMED:,} more" if len(rows) > _ROWS_NAMED else ""
    return f"row{'s' if len(rows) > 1 else ''} {named}{more}"


def read_text(
    path: pathlib.Path, encoding: str | None = None, *, may_choose: bool = True
) -> tuple[str, str]:
    """The file's characters, and the encoding that they were read as.

    Args:
        path: the file.
        encoding: of it; None for UTF-8, or what its byte order mark says.
        may_choose: whether the caller can name an encoding, for messages.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is empty, in another encoding, or holds NUL characters.
    """
    named = (
        'Pass its encoding="..." (--encoding on the command line), for example gb18030 '
        "for Chinese or cp1252 for Western European, or save"
    )
    remedy = f"{named if may_choose else 'Save'} the file as UTF-8."
    raw = path.read_bytes()
    marked = next((name for mark, name in _MARKS if raw.startswith(mark)), "utf-8")
    try:
        content = raw.decode(encoding or marked).removeprefix("\ufeff")
    except LookupError:
        raise ValueError(
            f"The encoding must be one that Python knows, such as gb18030, cp1252 or "
            f'utf-16. Received: encoding="{encoding}".'
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A table must be UTF-8{', or its encoding be named' * may_choose}. "
            f"Received: {path}, which is not {error.encoding} at byte {error.start} "
            f"(line {raw.count(10, 0, error.start) + 1}). {remedy}"
        ) from None
    if not content.strip():
        raise ValueError(f"A table must not be empty. Received: {path}, empty.")
    if "\0" in content:
        line = content.count("\n", 0, content.index("\0")) + 1
        raise ValueError(
            f"A table must not hold NUL characters. Received: {path} with "
            f"{content.count(chr(0)):,}, the first in line {line}. If the file is "
            "UTF-16 without a byte order mark, "
            + (
                'pass encoding="utf-16-le" (--encoding utf-16-le on the command line).'
                if may_choose
                else "save it as UTF-8."
            )
        )
    return content, encoding or marked


def _delimiter(path: pathlib.Path) -> str:
    try:
        return _DELIMITERS[path.suffix.lower()]
    except KeyError:
        raise ValueError(
            "A table's name must end in .csv, .tsv, .tab, .jsonl or .ndjson, or its "
            f"delimiter be passed. Received: {path}. Pass delimiter=',' (--delimiter "
            "on the command line) or whatever stands between its cells."
        ) from None


def _delimited_rows(
    path: pathlib.Path, content: str, wanted: list[str], delimiter: str
) -> Iterator[Row]:
    """Row number and wanted cells of every row of a CSV or TSV file."""
    if len(delimiter) != 1:
        raise ValueError(
            f"The delimiter must be one character. Received: delimiter={delimiter!r}."
        )
    numbered = enumerate(split_cells(path, content, delimiter), start=1)
    # Blank lines before the header count as rows, as in a spreadsheet.
    _, header = next((number, cells) for number, cells in numbered if cells)
    header = [name.strip() for name in header]
    places = {name: _place(path, name, header, delimiter) for name in wanted}
    ragged = []
    for number, cells in numbered:
        if cells and len(cells) != len(header):
            ragged.append((number, len(cells)))
        elif cells:
            yield number, {name: cells[place] for name, place in places.items()}
    if ragged:
        number, width = ragged[0]
        raise ValueError(
            f"Every row must have as many cells as the header, {len(header)}. "
            f"Received: {path} with {len(ragged):,} other "
            f"({name_rows([number for number, _ in ragged])}); row {number} has "
            f"{width}. Quote the cells that hold {delimiter!r}, or pass the delimiter "
            "of the file."
        )


def split_cells(
    path: pathlib.Path, content: str, delimiter: str
) -> Iterator[list[str]]:
    """The cells of every row; a blank line is a row without cells.

    Raises:
        ValueError: a quoted cell does not end as it must.
    """
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(
        io.StringIO(content, newline=""),
        delimiter=delimiter,
        quoting=quoting,
        strict=True,
    )
    line = 1
    before = csv.field_size_limit(_LARGEST_CELL)  # the module's only setting is global
    try:
        rows = []
        for cells in reader:
            rows.append(cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            "A quoted cell must end with a quotation mark followed by the delimiter "
            "or the end of the row, and hold its own quotation marks doubled. "
            f"Received: {path}, line {line}: {error}."
        ) from None
    finally:
        csv.field_size_limit(before)
    yield from rows


def _place(path: pathlib.Path, name: str, header: list[str], delimiter: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    other = next((c for c in ";\t,|" if c != delimiter and c in header[0]), None)
    hint = ""
    if len(header) == 1 and other is not None:
        hint = f" If {other!r} stands between the cells, pass it as the delimiter."
    raise ValueError(
        f'A table must have one column named "{name}". Received: {path} with '
        f"{header.count(name)} of that name; its columns are {header}.{hint}"
    )


def _json_rows(path: pathlib.Path, content: str, wanted: list[str]) -> Iterator[Row]:
    """Line number and wanted values of every line of a JSON lines file."""
    # JSON strings may hold U+2028 and its kin, which `splitlines` breaks at.
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"Every line of {path.suffix} must be a JSON object. Received: {path}, "
                f"line {number}: {error.msg} at character {error.pos + 1}."
            ) from None
        if not isinstance(record, dict):
            raise ValueError(
                f"Every line of {path.suffix} must be a JSON object. Received: {path}, "
                f"line {number}: {line.strip()[:40]}."
            )
        for name in wanted:
            if name not in record:
                raise ValueError(
                    f'Every line must have the key "{name}". Received: {path}, line '
                    f"{number}, whose keys are {list(record)}."
                )
        yield number, {name: _json_cell(path, number, record, name) for name in wanted}


def _json_cell(
    path: pathlib.Path, number: int, record: dict[str, Any], name: str
) -> str:
    """A JSON value as a cell: `null` is empty, `true` stays `true`."""
    value = record[name]
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list) and all(
        isinstance(item, str) and LABEL_SEPARATOR not in item for item in value
    ):
        return LABEL_SEPARATOR.join(value)
    raise ValueError(
        f'The value of "{name}" must be a string, a number, true, false, null or a '
        f'list of strings without "{LABEL_SEPARATOR}". Received: {path}, line '
        f"{number}: {json.dumps(value)[:80]}."
    )
