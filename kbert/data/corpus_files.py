"""Files of running text: which ones, cut into parts, and their lines one by one."""

import glob
import gzip
import io
import lzma
import os
import pathlib
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

KINDS = ("lines", "paragraphs", "jsonl")
"""How the bytes of a file are documents; see `kbert.data.corpus.CorpusFormat`."""

DATASET = "dataset"
"""The kind of a folder that Hugging Face's `datasets` wrote."""

LONGEST_LINE = 1 << 26
_JSON_LINES = (".jsonl", ".ndjson")
_COMPRESSED = (".gz", ".xz", ".zst")
# Text shrinks to about a fourth.
_EXPANSION = 4
_DATASET_FILES = ("state.json", "dataset_dict.json")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BROKEN = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


class Piece(NamedTuple):
    """A stretch of one file that begins and ends between documents.

    Args:
        path: the file, or the folder of a dataset.
        kind: one of `KINDS`, or `DATASET`.
        start: first byte; first row of a dataset.
        stop: byte or row behind the last; None for the end.
    """

    path: str
    kind: str
    start: int
    stop: int | None


def find_files(
    sources: str | os.PathLike | Sequence[str | os.PathLike],
) -> list[pathlib.Path]:
    """Finds the files that paths and patterns name, those of a pattern sorted.

    Args:
        sources: files, folders of `datasets`, or patterns such as `wiki/**/*.gz`.

    Raises:
        FileNotFoundError: if one names nothing.
        ValueError: if a file comes twice, or a folder is no dataset.
    """
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    found: list[pathlib.Path] = []
    for source in sources:
        path = pathlib.Path(source)
        if path.exists():
            found.append(path)
            continue
        matches = sorted(glob.glob(os.fspath(source), recursive=True))
        matched = [match for match in map(pathlib.Path, matches) if match.is_file()]
        if not matched:
            raise FileNotFoundError(
                "A corpus must be files, or patterns such as 'wiki/**/*.txt.gz'. "
                f"Received: {os.fspath(source)!r}, which names no file."
            )
        found += matched
    resolved = [path.resolve() for path in found]
    twice = sorted({str(path) for path in resolved if resolved.count(path) > 1})
    if twice:
        raise ValueError(
            f"Every file of a corpus must come once. Received: {twice[0]} twice; let "
            "patterns not overlap."
        )
    if not found:
        raise ValueError("A corpus must have at least one file. Received: none.")
    return found


def kind_of(path: pathlib.Path, kind: str) -> str:
    """Returns how a file is to be read: as asked, or for "auto" by its name.

    Raises:
        ValueError: if it is a folder without a dataset, or of several splits.
    """
    if path.is_dir():
        present = [name for name in _DATASET_FILES if (path / name).exists()]
        if present == [_DATASET_FILES[0]]:
            return DATASET
        what = "several splits; name the folder of one" if present else "no dataset"
        raise ValueError(
            "A folder must be what `Dataset.save_to_disk` wrote. Received: "
            f"{path} with {what}. For the files in a folder pass a pattern: "
            f"'{path}/**/*.txt'."
        )
    if kind != "auto":
        return kind
    name = path.name.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return "jsonl" if name.endswith(_JSON_LINES) else "lines"


def find_parts(
    sources: str | os.PathLike | Sequence[str | os.PathLike],
    kind: str = "auto",
    part_bytes: int = 1 << 26,
) -> list[list[Piece]]:
    """Cuts a corpus into parts of about one size, which can be read side by side.

    A large file becomes several pieces, each from one document's beginning to
    another's; small files share a part. A compressed file is one piece, since it can
    only be read from its beginning.

    Args:
        sources: as for `find_files`.
        kind: one of `KINDS`, or "auto" for what the name of each file says.
        part_bytes: size of a part in bytes of text.

    Returns:
        The parts in order, each a list of pieces.
    """
    if kind not in ("auto", *KINDS):
        raise ValueError(
            f"The kind of a corpus must be 'auto' or one of {KINDS}. Received: "
            f"{kind!r}."
        )
    parts: list[list[Piece]] = [[]]
    size = 0
    for path in find_files(sources):
        for piece, estimate in _pieces(path, kind_of(path, kind), part_bytes):
            if parts[-1] and size + estimate > part_bytes:
                parts.append([])
                size = 0
            parts[-1].append(piece)
            size += estimate
    return parts


def _pieces(path, kind, part_bytes) -> Iterator[tuple[Piece, int]]:
    """Yields the pieces of a file, each with its bytes of text, as far as known."""
    name = str(path.resolve())
    if kind == DATASET:
        yield Piece(name, kind, 0, None), part_bytes
        return
    size = path.stat().st_size
    if path.suffix.lower() in _COMPRESSED:
        yield Piece(name, kind, 0, None), size * _EXPANSION
        return
    bounds = [0]
    with path.open("rb") as file:
        if file.read(2) in _WIDE_MARKS:
            raise ValueError(
                f"A corpus must be UTF-8. Received: {path}, which begins with the byte "
                "order mark of UTF-16. Convert it first: iconv -f utf-16 -t utf-8."
            )
        while bounds[-1] + part_bytes < size:
            file.seek(bounds[-1] + part_bytes)
            file.readline(LONGEST_LINE)
            if kind != "jsonl":
                while (line := file.readline(LONGEST_LINE)) and line.strip():
                    pass
            bounds.append(file.tell())
    bounds = [bound for bound in bounds if bound < size] or [0]
    for start, stop in zip(bounds, [*bounds[1:], size], strict=True):
        yield Piece(name, kind, start, stop), stop - start


def read_lines(piece: Piece) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a piece, with the byte of the text that each begins at.

    Raises:
        ValueError: if a line is longer than any text, or a compressed file damaged.
    """
    position = piece.start
    broken = (*_BROKEN, *_zstandard_errors(piece.path))
    try:
        with _open(piece.path) as file:
            if piece.start:
                file.seek(piece.start)
            while piece.stop is None or position < piece.stop:
                line = file.readline(LONGEST_LINE)
                if not line:
                    return
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    raise ValueError(
                        f"A line must have less than {LONGEST_LINE} bytes. Received: "
                        f"{piece.path} with a longer one at byte {position}."
                    )
                yield position, line
                position += len(line)
    except broken as error:
        raise ValueError(
            f"A compressed file must be whole. Received: {piece.path}, which ends or "
            f"is damaged behind byte {position} of its text: {error}."
        ) from error


def _open(path: str):
    """Opens a file for reading bytes, unpacked as its name says."""
    suffix = pathlib.Path(path).suffix.lower()
    if suffix == ".zst":
        return io.BufferedReader(_Unpacked(path), 1 << 20)
    openers = {".gz": gzip.open, ".xz": lzma.open}
    return openers.get(suffix, open)(path, "rb")


class _Unpacked(io.RawIOBase):
    """The bytes in a .zst file.

    The package's own reader takes a file that ends within a frame for a whole one; this
    one raises EOFError, as gzip does.

    Args:
        path: the file.
    """

    def __init__(self, path: str):
        self._file = open(path, "rb")
        self._begin = _zstandard().ZstdDecompressor().decompressobj
        self._frame = None
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self):
        """True."""
        return True

    def close(self):
        """Closes the file."""
        self._file.close()
        super().close()

    def readinto(self, buffer):
        """Fills a buffer with what follows; returns how many bytes, 0 at the end."""
        while not self._ready:
            packed = self._packed or self._file.read(1 << 14)
            if not packed:
                if self._frame is not None:
                    raise EOFError("a frame has no end")
                return 0
            self._frame = self._frame or self._begin()
            self._ready = memoryview(self._frame.decompress(packed))
            self._packed = b""
            if self._frame.eof:
                self._packed = self._frame.unused_data
                self._frame = None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _zstandard_errors(path: str) -> tuple[type[Exception], ...]:
    return (_zstandard().ZstdError,) if path.lower().endswith(".zst") else ()


def _zstandard():
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            "Files ending in .zst need the package zstandard. To install it: "
            "pip install 'keras-kbert[pretrain]'."
        ) from error
    return zstandard
