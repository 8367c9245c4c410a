"""Zip archives from strangers, unpacked into a folder that goes when Python ends."""

import atexit
import contextlib
import fnmatch
import functools
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_MOST_ENTRIES = 1000
# Weights hardly shrink in a zip: what does by more than this is no model.
_MOST_GROWTH = 20
_FREE = 64 * 2**20  # bytes that may come out of any archive


def unpacked(path: Path, marker: str, patterns: Sequence[str]) -> Path:
    """Unpacks the files of one folder of a zip; an unchanged zip is unpacked once.

    Args:
        path: of the zip.
        marker: the file that tells which folder of the zip is meant.
        patterns: of the names of its files that are wanted.

    Returns:
        A temporary folder, called like the zip and the folder in it. It is removed
        when Python ends.

    Raises:
        ValueError: if it is no zip, or damaged, or not exactly one folder of it holds
            `marker`; if a name in it leaves the folder, is a link, is there twice or
            is encrypted; if it would grow beyond what weights do. Nothing is left.
    """
    state = path.stat()
    key = (state.st_ino, state.st_size, state.st_mtime_ns)
    return _unpacked_state(path.absolute(), marker, tuple(patterns), key)


@functools.cache
def _unpacked_state(path: Path, marker: str, patterns: tuple, state: tuple) -> Path:
    """Unpacks; what identifies the zip's state is part of the key of the cache."""
    with contextlib.ExitStack() as undo:
        root = Path(tempfile.mkdtemp(prefix="kbert-"))
        undo.callback(shutil.rmtree, root, ignore_errors=True)
        try:
            folder = _unpack(path, marker, patterns, root)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(
                f"{path} must be a whole zip archive; it is truncated or damaged. "
                f"Received: {error}."
            ) from error
        atexit.register(undo.pop_all().close)
    return folder


def _unpack(path: Path, marker: str, patterns: tuple, root: Path) -> Path:
    """Unpacks into a folder of `root`, and returns it."""
    with zipfile.ZipFile(path) as archive:
        entries = _checked(path, archive)
        inner = _folder_of(path, entries, marker)
        folder = root / "_".join(filter(None, (path.stem, inner.name)))
        folder.mkdir()
        for name, entry in entries.items():
            wanted = any(fnmatch.fnmatchcase(name.name, each) for each in patterns)
            if name.parent == inner and wanted:
                with (
                    archive.open(entry) as source,
                    (folder / name.name).open("xb") as target,
                ):
                    shutil.copyfileobj(source, target, 2**20)
    return folder


def _checked(
    path: Path, archive: zipfile.ZipFile
) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """Returns the files of an archive, after a look at all that it declares."""
    entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES:
        raise ValueError(
            f"{path} must have at most {_MOST_ENTRIES} files. Received: {len(entries)}."
        )
    size = path.stat().st_size
    grown = sum(entry.file_size for entry in entries)  # more is never unpacked
    if grown > _FREE + _MOST_GROWTH * size:
        raise ValueError(
            f"{path} must unpack to at most {_MOST_GROWTH} times its size of {size} "
            f"bytes. Received: {grown} bytes."
        )
    files: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for entry in entries:
        name = PurePosixPath(entry.filename)
        problem = _problem(entry, name)
        if name in files:
            problem = "is there twice"
        if problem:
            raise ValueError(
                f"Every file of {path} must lie in it once, plainly. Received: "
                f"{entry.filename!r}, which {problem}."
            )
        if not entry.is_dir():
            files[name] = entry
    return files


def _problem(entry: zipfile.ZipInfo, name: PurePosixPath) -> str | None:
    """Returns what is wrong with an entry of an archive."""
    kind = stat.S_IFMT(entry.external_attr >> 16)  # 0 where made on Windows
    if name.is_absolute() or ".." in name.parts:
        return "leaves the folder"
    if any(mark in entry.orig_filename for mark in ("\\", ":", "\0")):
        return "is no name that every system reads alike"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if entry.flag_bits & 1:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed as few zips are"
    return None


def _folder_of(path: Path, files, marker: str) -> PurePosixPath:
    """Returns the one folder in an archive that holds a file of that name."""
    folders = [name.parent for name in files if name.name == marker]
    if len(folders) != 1:
        raise ValueError(
            f"{path} must hold one {marker}. Received: {len(folders)}, among the files "
            f"{[str(name) for name in files][:20]}."
        )
    return folders[0]
