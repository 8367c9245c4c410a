"""A repository of a hub: its small files at once, its weights when they are needed."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from kbert.hubs import handles, hugging_face, kaggle, lock, selection

_HUBS = {"hf": hugging_face, "kaggle": kaggle}


@dataclasses.dataclass(frozen=True)
class Repository:
    """A repository at one revision.

    Args:
        handle: its name.
        snapshot: what it holds.
        network: whether files may be fetched; else the cache must have them.
    """

    handle: handles.Handle
    snapshot: selection.Snapshot
    network: bool

    def fetch_weights(self, format: str) -> dict[str, Path]:
        """Fetches the weights, unless they are there.

        Args:
            format: whose files they are, as of `kbert.presets.Preset`.

        Returns:
            The paths of the files by name.

        Raises:
            ConnectionError, PermissionError: if the hub cannot be asked, or refuses.
            FileNotFoundError: if there are no weights that kbert reads.
            ValueError: if they are too large, damaged, or others than are locked.
        """
        names = list(self.snapshot.sizes)
        if format == "google":
            paths = self.fetch(selection.checkpoint(names))
        elif format == "keras_hub":
            paths = self.fetch(selection.KERAS_HUB)
        else:
            paths = self.fetch([selection.SAFETENSORS])
            paths = paths or self.fetch([selection.INDEX])
        if selection.INDEX in paths:
            paths |= self.fetch(selection.shards(self.snapshot.folder))
        if not paths and self.snapshot.offline:
            raise ConnectionError(
                f"{self.snapshot.offline} The weights of {self.handle.spec} are not in "
                "the cache."
            )
        if not paths:
            raise FileNotFoundError(selection.no_weights(self.handle.spec, names))
        return paths

    def fetch(self, names: Iterable[str]) -> dict[str, Path]:
        """Fetches files, unless they are there; compares them with the lock file.

        Args:
            names: of the files.

        Returns:
            Their paths by name, without those that the repository lacks.

        Raises:
            As `fetch_weights`.
        """
        hub = _HUBS[self.handle.hub]
        paths = {
            name: hub.fetch(self.handle, self.snapshot, name, self.network)
            for name in names
        }
        found = {name: path for name, path in paths.items() if path is not None}
        lock.check(self.handle.spec, self.snapshot.revision, found)
        return found


def open_repository(spec: str, network: bool) -> Repository:
    """Finds a repository, and fetches all files that kbert reads but the weights.

    Args:
        spec: its handle.
        network: False for what the cache has.

    Raises:
        ConnectionError, FileNotFoundError, PermissionError: as `hugging_face.find`.
        ImportError: if the library for it is not installed.
        ValueError: if the handle has none of the forms, or a file is too large,
            damaged, or another than is locked.
    """
    handle = handles.parse(spec)
    locked = lock.locked_revision(spec)
    if locked is not None:
        handle = handles.at_revision(handle, locked)
    snapshot = _HUBS[handle.hub].find(handle, network)
    repository = Repository(handle, snapshot, network)
    repository.fetch(selection.TEXTS)
    return repository
