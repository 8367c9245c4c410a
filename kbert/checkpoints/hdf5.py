"""HDF5 files from strangers: their own plain datasets, and nothing that leads away."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kbert.checkpoints.stored import StoredArray

_DEEPEST = 8  # groups within groups
_MOST_ENTRIES = 1 << 14  # BERT-large has 1,100


def read_datasets(path: Path) -> dict[str, StoredArray]:
    """Lists the datasets of an HDF5 file by the path in it; no number is read.

    Raises:
        ValueError: if it is damaged, holds links, virtual or external data, data that
            take less place than their numbers, or nests too deep.
    """
    with _opened(path) as file:
        found, size = {}, 0
        for name, dataset in _datasets(file, "", path, [0]):
            size += dataset.nbytes
            found[name] = StoredArray(
                f"{name!r} in {path}",
                str(dataset.dtype),
                tuple(dataset.shape),
                _reading(path, name),
            )
    if size > path.stat().st_size:
        raise ValueError(
            f"{path} must hold every dataset once. Received: datasets of {size} bytes "
            f"in a file of {path.stat().st_size}."
        )
    return found


def _reading(path: Path, name: str):
    def read() -> np.ndarray:
        with _opened(path) as file:
            return file[name][()]

    return read


def _datasets(group, prefix, path, count) -> Iterator[tuple[str, Any]]:
    """Yields the datasets below a group; what could lead out of the file is refused."""
    if prefix.count("/") > _DEEPEST:
        raise ValueError(
            f"{path} must not nest its groups deeper than {_DEEPEST}. Received: "
            f"{prefix!r}."
        )
    for key in group:
        name, link = prefix + key, group.get(key, getlink=True)
        count[0] += 1
        if count[0] > _MOST_ENTRIES:
            raise ValueError(
                f"{path} must have at most {_MOST_ENTRIES} groups and datasets. "
                "Received: more."
            )
        if not isinstance(link, h5py.HardLink):
            raise ValueError(
                f"{path} must hold its own weights. Received: {name!r}, a "
                f"{type(link).__name__}."
            )
        found = group[key]
        if isinstance(found, h5py.Group):
            yield from _datasets(found, f"{name}/", path, count)
            continue
        if not isinstance(found, h5py.Dataset):
            raise ValueError(
                f"{path} must hold groups and datasets. Received: {name!r}, a "
                f"{type(found).__name__}."
            )
        _check_plain(found, name, path)
        yield name, found


def _check_plain(dataset, name, path):
    """Refuses a dataset whose numbers do not all lie in the file as they are."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(
            f"{path} must hold its own weights. Received: {name!r}, whose data lie "
            "elsewhere."
        )
    if dataset.shape is None or dataset.id.get_storage_size() < dataset.nbytes:
        raise ValueError(
            f"{path} must hold every number of its weights, uncompressed. Received: "
            f"{name!r} of the shape {dataset.shape} in "
            f"{dataset.id.get_storage_size()} bytes."
        )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Opens an HDF5 file to read; turns the library's errors into one that names it."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, RuntimeError, TypeError, OverflowError) as error:
        raise ValueError(
            f"{path} must be a whole HDF5 file; it is truncated or damaged. h5py says: "
            f"{error}."
        ) from error
