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
        fetched: the paths of the files that were found, and compared with the hashes.
    """

    handle: handles.Handle
    snapshot: selection.Snapshot
    network: bool
    fetched: dict[str, Path] = dataclasses.field(default_factory=dict, compare=False)

    def fetch_weights(self, format: str, allow_pickle: bool) -> dict[str, Path]:
        """Fetches the weights, unless they are there.

        Args:
            format: whose files they are, as of `kbert.presets.Preset`.
            allow_pickle: whether to fetch pickles, where there is nothing better.

        Returns:
            The paths of the files by name.

        Raises:
            ConnectionError, PermissionError: if the hub cannot be asked, or refuses.
            FileNotFoundError: if there are no weights that kbert reads.
            ValueError: if they are too large, damaged, or others than are locked.
        """
        names = list(self.snapshot.sizes)
        paths: dict[str, Path] = {}
        for group in selection.weights(format, names, allow_pickle):
            paths = paths or self.fetch(group)
        for index in (selection.INDEX, selection.PICKLED[1]):
            if index in paths:
                paths |= self.fetch(selection.shards(self.snapshot.folder, index))
        if paths:
            return paths
        if self.snapshot.offline or not self.network:
            raise selection.not_cached(
                self.handle.spec, selection.SAFETENSORS, self.snapshot
            )
        there = f"In the repository there are: {sorted(names)[:20]}."
        pickled = any(name in selection.PICKLED for name in names)
        raise selection.no_weights(self.handle.spec, there, pickled)

    def fetch(self, names: Iterable[str]) -> dict[str, Path]:
        """Fetches files, unless they are there; compares them with the lock file.

        Args:
            names: of the files.

        Returns:
            Their paths by name, without those that the repository lacks.

        Raises:
            As `fetch_weights`.
        """
        hub, wanted = _HUBS[self.handle.hub], list(names)
        paths = {
            name: hub.fetch(self.handle, self.snapshot, name, self.network)
            for name in wanted
            if name not in self.fetched
        }
        found = {name: path for name, path in paths.items() if path is not None}
        lock.check(self.handle.spec, self.snapshot.revision, found)
        self.fetched.update(found)
        return {name: self.fetched[name] for name in wanted if name in self.fetched}

    def provenance(self) -> dict[str, str]:
        """Returns where a model comes from that starts here, for its `kbert.json`."""
        told = {"preset": self.handle.spec, "revision": self.snapshot.revision}
        on_hub = self.handle.hub == "hf"
        return told | ({"repository": self.handle.repository} if on_hub else {})


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
    marks = [name for name in selection.CONFIGS if (snapshot.folder / name).is_file()]
    repository.fetch(dict.fromkeys((*selection.TEXTS, *marks)))
    return repository
