"""Files and folders: names that stay inside, hashes, a folder replaced whole."""

import ctypes
import functools
import hashlib
import itertools
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath


def path_inside(folder: Path, filename: str) -> Path:
    """Returns `folder / filename` for a name that stays in the folder.

    Links are followed where they stay in the folder, and from the snapshots of the
    Hugging Face cache to its blobs, those of one repository or of all, which is how
    that cache stores files.

    Raises:
        ValueError: if the name or a link under it leaves the folder, or what is there
            is no regular file: a folder, a pipe or a device.
    """
    parts = PurePosixPath(filename).parts if isinstance(filename, str) else ()
    escapes = not parts or parts[0] == "/" or ".." in parts
    # Systems take 255 bytes a name and more a path; no preset's file needs as much.
    odd = escapes or len(filename) > 200 or not filename.isprintable()
    if odd or any(mark in filename for mark in ("\\", ":")):
        raise ValueError(
            f"A preset's file must lie in its folder {folder}. Received the name: "
            f"{repr(filename)[:200]}."
        )
    path = folder / filename
    roots = [folder.resolve()]
    if folder.parent.name == "snapshots":
        repository = folder.parent.parent.resolve()
        roots.append(repository / "blobs")
        if repository.name.startswith("models--"):
            roots.append(repository.parent / "blobs")
    target = Path(os.path.realpath(path))  # `resolve` fails where links form a ring
    if not any(target.is_relative_to(root) for root in roots):
        raise ValueError(
            f"A preset's file must lie in its folder {folder}. Received: {filename!r}, "
            f"a link to {target}. Copy the file into the folder."
        )
    if os.path.lexists(path) and not target.is_file():
        kind = stat.filemode(os.lstat(target).st_mode)[0] if target.exists() else "l"
        kinds = {"d": "a folder", "p": "a pipe", "l": "a link to nothing"}
        raise ValueError(
            f"A preset's file must be a regular file. Received: {path}, "
            f"{kinds.get(kind, 'a device or a socket')}."
        )
    return path


def sha256(path: Path) -> str:
    """Returns the sha256 of a file in hexadecimal; an unchanged file is read once."""
    state = path.stat()
    times = (state.st_mtime_ns, state.st_ctime_ns)  # the second cannot be set back
    return _sha256_of_state(path, state.st_dev, state.st_ino, state.st_size, *times)


@functools.lru_cache(maxsize=1024)
def _sha256_of_state(path: Path, *state: int) -> str:
    """Reads the file; what identifies its state is the key of the cache."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def listing(folder: Path) -> str:
    """Returns the names in a folder for a message, of many the first twenty."""
    with os.scandir(folder) as entries:
        found = sorted(entry.name[:60] for entry in itertools.islice(entries, 21))
    return f"{found[:20]}{' and more' if len(found) > 20 else ''}"


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Writes a file, whole or not at all, and forces it to the disk.

    Args:
        path: the file, in a folder that is there.
        write: writes the content to the path that it is given, in the same folder.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write(temporary)
        flush(temporary)
        os.replace(temporary, path)
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def replace_folder(
    folder: str | os.PathLike,
    write: Callable[[Path], None],
    keep: Callable[[str], bool],
) -> None:
    """Replaces a folder, whole or not at all.

    Everything is written into a new folder next to the old one, forced to the disk
    and swapped in; on Linux in one step, so that readers see the old or the new.

    Args:
        folder: where to; parents are made.
        write: writes the new files into the folder that it is given.
        keep: whether a file of the old folder, named relative to it with "/", is to
            stay. What stays is linked, not copied, where the file system can.

    Raises:
        NotADirectoryError: if a file is in the way.
        ValueError: if the folder holds the current directory or is a mount.
    """
    target = Path(folder).expanduser().resolve()
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(
            f"The path to save to must be a folder or free. Received a file: {target}."
        )
    if os.path.ismount(target) or Path.cwd().is_relative_to(target):
        raise ValueError(
            "The folder to save to is replaced whole, which a mount or the current "
            f"directory cannot be. Received: {target}. Name a folder in it."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        temporary.mkdir()
        if target.exists():
            _take_over(target, temporary, keep)
        write(temporary)
        for path in (*temporary.rglob("*"), temporary):
            flush(path)
        _swap(temporary, target)
        flush(target.parent)
    finally:
        if temporary.exists():
            shutil.rmtree(temporary)


def _take_over(old: Path, new: Path, keep: Callable[[str], bool]) -> None:
    """Links the files to keep, and the folders, into the new folder."""

    def unwanted(folder: str, names: list[str]) -> list[str]:
        """Returns the names in one folder that are not taken over."""
        paths = [Path(folder) / name for name in names]
        return [
            path.name
            for path in paths
            if not (path.is_dir() and not path.is_symlink())
            and not keep(path.relative_to(old).as_posix())
        ]

    shutil.copytree(
        old,
        new,
        symlinks=True,
        ignore=unwanted,
        copy_function=_link,
        dirs_exist_ok=True,
    )


def _link(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:  # a file system without hard links
        shutil.copy2(source, destination)


def flush(path: Path) -> None:
    """Forces a file, or a folder's list of names, to the disk."""
    folder = path.is_dir() and os.name == "posix"  # elsewhere it cannot be opened
    if path.is_symlink() or not (path.is_file() or folder):
        return  # a link has no content of its own; a pipe would wait for ever
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(new: Path, old: Path) -> None:
    """Puts `new` in the place of `old`; what was there ends up at `new`."""
    if not old.exists():
        os.rename(new, old)
    elif not _exchange(new, old):
        aside = new.with_name(f"{new.name}.old")
        os.rename(old, aside)
        try:
            os.rename(new, old)
        except OSError:
            os.rename(aside, old)
            raise
        os.rename(aside, new)


def _exchange(first: Path, second: Path) -> bool:
    """Swaps two folders in one step; False where the system cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of linux/fcntl.h, fs.h
    names = [os.fsencode(path) for path in (first, second)]
    return renameat2(here, names[0], here, names[1], exchange) == 0
