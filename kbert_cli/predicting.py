"""What `kbert predict` and `kbert export` do."""

import contextlib
import csv
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import TextIO

import kbert
from kbert.data.rows import LABEL_SEPARATOR
from kbert.data.tables import read_table
from kbert_cli.console import tell
from kbert_cli.options import Format
from kbert_cli.source import Source

STANDARD_INPUT = "-"


def predict(
    source: Source,
    preset: str,
    output: pathlib.Path | None,
    format: Format | None,
    batch_size: int,
) -> None:
    """Write the columns of the texts and, beside them, the answers."""
    written = format or _format_of(output)
    if source.data == STANDARD_INPUT:
        columns = {"text": _lines(source.encoding)}
    else:
        columns = _columns(source)
    classifier = kbert.BertClassifier.from_preset(preset)
    texts, *seconds = columns.values()
    x = (texts, *seconds) if seconds else texts
    answers = classifier.classify(x, batch_size=batch_size)
    records = (
        dict(zip(columns, cells, strict=True)) | _record(answer)
        for *cells, answer in zip(*columns.values(), answers, strict=True)
    )
    with _opened(output) as stream:
        _write(records, written, stream)
    if output is not None:
        tell(f"Wrote {len(answers):,} answers to {output}.")


def export(preset: str, folder: pathlib.Path) -> None:
    """Write the SavedModel of a fine-tuned classifier."""
    kbert.BertClassifier.from_preset(preset).export(folder, verbose=False)
    tell(f"Wrote {folder}. Look at it: saved_model_cli show --dir {folder} --all")


def _columns(source: Source) -> dict[str, list[str]]:
    """The texts by the names of their columns: one, or two for pairs."""
    if source.text is None:
        raise ValueError(
            "The column of the texts must be named with --text. Received: the file "
            f"{source.data} and no --text."
        )
    table = read_table(
        source.data,
        source.text,
        second=source.second,
        encoding=source.encoding,
        delimiter=source.delimiter,
        keep_empty_texts=True,
    )
    for line in table.report.lines():
        tell(line)
    if table.seconds is None:
        return {source.text: table.texts}
    return {source.text: table.texts, str(source.second): table.seconds}


def _lines(encoding: str | None) -> list[str]:
    """The lines of standard input; an empty one is an empty text."""
    raw = sys.stdin.buffer.read()
    try:
        content = raw.decode(encoding or "utf-8-sig")
    except (UnicodeDecodeError, LookupError) as error:
        raise ValueError(
            "Standard input must be UTF-8, or its encoding be passed as --encoding. "
            f"Received: {error}."
        ) from None
    lines = content.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if lines == [""]:
        raise ValueError("Standard input must hold a text a line. Received: nothing.")
    return lines


def _record(answer) -> dict:
    """The answer as columns; several labels stand in one, with `|` between them."""
    values = dataclasses.asdict(answer)
    probabilities = values.pop("probabilities", {})
    if "labels" in values:
        values["labels"] = LABEL_SEPARATOR.join(values["labels"])
        values |= {f"probability of {name}": p for name, p in probabilities.items()}
    return values


def _format_of(output: pathlib.Path | None) -> Format:
    if output is None:
        return Format.csv
    try:
        return Format(output.suffix.lower().removeprefix("."))
    except ValueError:
        raise ValueError(
            "The output must end in .csv or .jsonl, or --format be passed. Received: "
            f"{output}."
        ) from None


@contextlib.contextmanager
def _opened(output: pathlib.Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
    else:
        with output.open("w", encoding="utf-8", newline="") as stream:
            yield stream


def _write(records: Iterator[dict], written: Format, stream: TextIO) -> None:
    if written == Format.jsonl:
        for record in records:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    writer = None
    for record in records:
        if writer is None:
            writer = csv.DictWriter(stream, list(record), lineterminator="\n")
            writer.writeheader()
        writer.writerow(record)
