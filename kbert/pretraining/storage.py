"""Files of instances and of documents: Arrow IPC, mapped into memory, read anywhere.

Arrow's own format, so that any of its readers has them (polars, pandas, datasets, Rust,
Java). A file counts only where its marker lies beside it: a JSON file with its sha256,
its size and what was counted, which is written when the file is on the disk.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kbert.files import replace_file, sha256
from kbert.preprocessing.rows import entries
from kbert.pretraining.assembling import Instances
from kbert.pretraining.segments import Documents


def pyarrow():
    """Returns the package, with `ipc`.

    Raises:
        ImportError: if it is missing.
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise ImportError(
            "Instances are stored by the package pyarrow. To install it: "
            "pip install 'keras-kbert[pretrain]'."
        ) from error
    return pyarrow


def write_documents(path: Path, batches: Iterable[Documents], counts: dict) -> None:
    """Writes documents as lists of sentences of ids, in one column.

    Args:
        path: the file.
        batches: documents, several at a time.
        counts: what the marker is to say of them; may change until all are read.
    """
    arrow = pyarrow()

    def columns(documents):
        sentences = _lists(documents.tokens, documents.sentence_splits)
        splits = arrow.array(documents.document_splits.astype(np.int32))
        return {"sentences": arrow.ListArray.from_arrays(splits, sentences)}

    _write(path, map(columns, batches), {}, counts)


def write_instances(
    path: Path, blocks: Iterable[Instances], vocabulary_size: int, metadata: dict
) -> None:
    """Writes instances in columns, a record batch a block.

    Columns: `token_ids` (lists of ids), `second_start` (where segment 1 begins),
    `next_sentence` (0 or 1), `mask_positions` and `mask_labels` (lists). Ids take two
    bytes where the vocabulary allows it.

    Args:
        path: the file.
        blocks: instances, several at a time.
        vocabulary_size: of the ids.
        metadata: strings by name, for whoever reads the file alone.
    """
    counts = {"instances": [], "tokens": 0, "masked": 0, "random": 0}
    kind = np.uint16 if vocabulary_size <= 1 << 16 else np.int32

    def columns(block):
        counts["instances"].append(block.size)
        counts["tokens"] += len(block.token_ids)
        counts["masked"] += len(block.mask_labels)
        counts["random"] += int(block.labels.sum())
        return {
            "token_ids": _lists(block.token_ids.astype(kind), block.row_splits),
            "second_start": pyarrow().array(block.second_starts),
            "next_sentence": pyarrow().array(block.labels),
            "mask_positions": _lists(
                block.mask_positions.astype(np.uint16), block.mask_splits
            ),
            "mask_labels": _lists(block.mask_labels.astype(kind), block.mask_splits),
        }

    _write(path, map(columns, blocks), metadata, counts)


def _lists(values, splits):
    arrow = pyarrow()
    offsets = arrow.array(splits.astype(np.int32))
    return arrow.ListArray.from_arrays(offsets, arrow.array(values))


def _write(path: Path, batches, metadata, counts) -> None:
    """Writes a file of record batches, then its marker."""
    arrow = pyarrow()

    def write(temporary: Path):
        writer = None
        with arrow.OSFile(str(temporary), "wb") as file:
            for columns in batches:
                batch = arrow.record_batch(columns, metadata=metadata)
                writer = writer or arrow.ipc.new_file(file, batch.schema)
                writer.write_batch(batch)
            if writer is not None:
                writer.close()

    marker_of(path).unlink(missing_ok=True)
    replace_file(path, write)
    told = {"sha256": sha256(path), "size": path.stat().st_size, **counts}
    write_json(marker_of(path), told)


def write_json(path: Path, content: dict) -> None:
    """Writes a JSON file, whole or not at all."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"

    def write(temporary: Path):
        temporary.write_text(text, encoding="utf-8")

    replace_file(path, write)


def marker_of(path: Path) -> Path:
    """Returns the path of the marker beside a file."""
    return path.with_name(f"{path.name}.json")


def counts_of(path: Path) -> dict | None:
    """Returns what a file's marker says, None where the file is not complete."""
    try:
        told = json.loads(marker_of(path).read_text())
        size = path.stat().st_size
    except FileNotFoundError:
        return None
    return told if told["size"] == size else None


def opened(path: Path):
    """Maps a file into memory and returns Arrow's reader of its record batches."""
    arrow = pyarrow()
    return arrow.ipc.open_file(arrow.memory_map(str(path)))


def read_documents(path: Path, wanted: np.ndarray) -> list[Documents]:
    """Reads some documents of a file, by their numbers in it.

    Args:
        path: the file.
        wanted: increasing numbers, integers (M,).

    Returns:
        The documents in order, in several parts.
    """
    file, found, begin = opened(path), [], 0
    for number in range(file.num_record_batches):
        column = file.get_batch(number).column(0)
        end = begin + len(column)
        rows = wanted[slice(*np.searchsorted(wanted, (begin, end)))] - begin
        if len(rows):
            found.append(_selected(column, rows))
        begin = end
    return found


def _selected(column, rows) -> Documents:
    """Returns documents of an Arrow column of lists of lists."""
    document_splits = column.offsets.to_numpy()
    sentence_splits = column.values.offsets.to_numpy()
    tokens = column.values.values.to_numpy()
    sentences = entries(document_splits, rows)
    lengths = np.diff(sentence_splits)[sentences]
    sizes = np.diff(document_splits)[rows]
    return Documents(
        tokens[entries(sentence_splits, sentences)], _splits(lengths), _splits(sizes)
    )


def joined(parts: list[Documents]) -> Documents:
    """Returns several `Documents`, at least one, as one."""
    return Documents(
        np.concatenate([part.tokens for part in parts]),
        _splits(np.concatenate([np.diff(part.sentence_splits) for part in parts])),
        _splits(np.concatenate([np.diff(part.document_splits) for part in parts])),
    )


def _splits(lengths) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def read_block(file, number: int) -> Instances:
    """Returns a record batch of instances as arrays that lie in the mapped file.

    Args:
        file: what `opened` returned.
        number: of the record batch; it has rows.

    Returns:
        `Instances` with ids and positions as wide as the file has them.
    """
    batch = file.get_batch(number)
    tokens, positions = batch.column("token_ids"), batch.column("mask_positions")
    return Instances(
        tokens.values.to_numpy(),
        tokens.offsets.to_numpy(),
        batch.column("second_start").to_numpy(),
        batch.column("next_sentence").to_numpy(),
        positions.values.to_numpy(),
        batch.column("mask_labels").values.to_numpy(),
        positions.offsets.to_numpy(),
    )


def select(block: Instances, rows) -> Instances:
    """Returns instances at `rows` of a block, integers (M,), in that order."""
    tokens = entries(block.row_splits, rows)
    masked = entries(block.mask_splits, rows)
    return Instances(
        block.token_ids[tokens].astype(np.int32),
        _splits(np.diff(block.row_splits)[rows]),
        block.second_starts[rows],
        block.labels[rows],
        block.mask_positions[masked].astype(np.int32),
        block.mask_labels[masked].astype(np.int32),
        _splits(np.diff(block.mask_splits)[rows]),
    )
