"""Preset folders: find one, check its hashes, read its files, write one whole.

A preset is a Hugging Face checkpoint folder plus `kbert.json`, which holds what that
format has no place for. This module handles files, never classes.
"""

import dataclasses
import difflib
import functools
import itertools
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

from kbert import (
    archives,
    google_release,
    keras_hub_folder,
    metadata_schema,
    stale_files,
)
from kbert.bundles import saved_model_folder
from kbert.files import listing, path_inside, replace_folder, sha256
from kbert.hubs import builtin, handles, selection
from kbert.hubs.repository import Repository, open_repository
from kbert.strict_json import read_json, read_signed_json, signed_json

METADATA = "kbert.json"
WEIGHTS = selection.SAFETENSORS
VOCABULARY = "vocab.txt"

_MOST_FILES = 1000  # that are listed


@dataclasses.dataclass(frozen=True)
class Preset:
    """A folder of files that make up a model.

    Args:
        name: what the user called it, for messages.
        folder: where its files lie, absolute.
        format: whose folder it is: "hugging_face", "google", "tf_hub" or "keras_hub".
        derived: the JSON files that are made from others that it has, by name.
        places: where files lie that are called otherwise; None for nowhere.
        repository: where the files were fetched from; None for a folder of the user's.
        allow_pickle: whether its weights may be read from a pickle.
    """

    name: str
    folder: Path
    format: str = "hugging_face"
    derived: Mapping = dataclasses.field(default_factory=dict, compare=False)
    places: Mapping = dataclasses.field(default_factory=dict, compare=False)
    repository: Repository | None = dataclasses.field(default=None, compare=False)
    allow_pickle: bool = False

    @property
    def is_builtin(self) -> bool:
        """Whether the preset is one of those that kbert ships."""
        shipped = self.folder.parent == _presets_directory()
        return shipped and (self.folder / METADATA).is_file()

    def has(self, filename: str) -> bool:
        """Returns whether the preset has the file."""
        if filename in self.derived:
            return True
        hidden = filename in self.places and self.places[filename] is None
        return not hidden and self._locate(filename).is_file()

    def path(self, filename: str) -> Path:
        """Returns the path of a file that exists.

        Raises:
            FileNotFoundError: if the preset has no such file.
            ValueError: if the name, or a link under it, leaves the folder.
        """
        path = self._locate(filename)
        if not path.is_file():
            raise FileNotFoundError(
                f"The preset {self.name!r} must have the file {filename!r}. "
                f"In {self.folder} there are: {listing(self.folder)}."
            )
        return path

    def read_json(self, filename: str) -> dict:
        """Returns the JSON object that a file holds.

        Raises:
            FileNotFoundError: if the preset has no such file.
            ValueError: if the file is no JSON object, or damaged as in `verify`.
        """
        if filename in self.derived:
            return self.derived[filename]()
        content = read_json(self.path(filename))
        self.is_resaved(filename)
        return content

    def metadata(self) -> dict:
        """Returns the content of `kbert.json`, {} where there is none.

        Raises:
            ValueError: if a byte of it is not as written, or a value not as it must be.
        """
        if not self.has(METADATA):
            return {}
        return read_signed_json(self.path(METADATA), metadata_schema.SCHEMA)

    def verify(self) -> None:
        """Compares every file with the hash that `kbert.json` holds.

        Those of a hub are fetched first. Files that differ and are newer than
        `kbert.json` were saved by another library, as transformers does: told in a
        warning, once. A folder without `kbert.json` has nothing to compare.

        Raises:
            FileNotFoundError: if a listed file is missing.
            OSError: as `fetch_weights`.
            ValueError: if a file differs that is not newer than `kbert.json`.
        """
        self.fetch_weights()
        hashes = self.metadata().get("files", {})
        resaved = [filename for filename in hashes if self.is_resaved(filename, hashes)]
        if resaved:
            _tell_once(
                f"In the preset {self.name!r} ({self.folder}) {resaved} are newer than "
                f"{METADATA} and no longer match its hashes: another library has saved "
                "there. They are used as they are. Save with kbert to renew the hashes."
            )

    def is_resaved(self, filename: str, hashes: Mapping | None = None) -> bool:
        """Returns whether another library has saved a file since kbert did.

        Args:
            filename: of the file.
            hashes: those of all files, where the caller has read them.

        Raises:
            FileNotFoundError: if it is missing.
            ValueError: if it differs from what `kbert.json` says and is not newer.
        """
        hashes = self.metadata().get("files", {}) if hashes is None else hashes
        path, expected = self.path(filename), hashes.get(filename)
        if expected is None or (actual := sha256(path)) == expected:
            return False
        metadata = self.path(METADATA)
        # A hub's files have its own hashes, and the times at which they arrived.
        of_hub = self.repository is not None
        if not of_hub and path.stat().st_mtime_ns <= metadata.stat().st_mtime_ns:
            raise ValueError(_hash_message(path, expected, actual))
        return True

    def fetch_weights(self) -> None:
        """Fetches the weights of a hub's preset, unless they are there.

        Raises:
            ConnectionError, FileNotFoundError, PermissionError, ValueError: as
                `kbert.hubs.repository.Repository.fetch_weights`.
        """
        if self.repository is not None:
            self.repository.fetch_weights(self.format, self.allow_pickle)

    def provenance(self) -> dict:
        """Returns where a model comes from that starts here, for its `kbert.json`.

        Of a folder this is what its own `kbert.json` says; its path stays untold.
        """
        metadata = self.metadata()
        if self.is_builtin:
            told = {"preset": self.folder.name, "licence": metadata["licence"]}
            for source in metadata["sources"]:
                told |= {k: v for k, v in source.items() if k == "repository"}
            return told
        told = metadata.get("provenance", {})
        if self.repository is None:
            return told
        licence = {key: told[key] for key in ("licence",) if key in told}
        return licence | self.repository.provenance()

    def weights_path(self) -> Path:
        """Returns the file that holds the weights, its hash checked for a built-in.

        Returns:
            The path of a file of transformers': one of `selection.WEIGHTS` or, where
            that is allowed, of `selection.PICKLED`.

        Raises:
            ConnectionError, PermissionError: if a hub has those of a built-in preset,
                and cannot be asked, or refuses.
            FileNotFoundError: if there are none, or none that kbert can get, or
                pickles alone, which are not allowed.
            ValueError: if a file is not the one that is listed.
        """
        self.fetch_weights()
        for filename in selection.WEIGHTS + selection.PICKLED * self.allow_pickle:
            if self.has(filename):
                return self.path(filename)
        if self.is_builtin:
            sources = self.metadata().get("sources", [])
            return builtin.weights(self.name, sources, self.allow_pickle)
        there = f"In {self.folder} there are: {listing(self.folder)}."
        pickled = any(map(self.has, selection.PICKLED))
        raise selection.no_weights(self.name, there, pickled)

    def filenames(self) -> list[str]:
        """Returns what lies in the folder; of a hub, what was fetched of it."""
        if self.repository is not None:
            return sorted(self.repository.fetched)
        found = (path for path in self.folder.rglob("*") if not path.is_dir())
        some = itertools.islice(found, _MOST_FILES)
        return sorted(path.relative_to(self.folder).as_posix() for path in some)

    def _locate(self, filename: str) -> Path:
        """Returns where the file would lie; a built-in's vocabulary is shared."""
        if filename == VOCABULARY and self.is_builtin:
            shared = self.metadata()["vocabulary"]
            return path_inside(self.folder.parent / "vocabularies", shared)
        return path_inside(self.folder, self.places.get(filename) or filename)


def preset_names() -> list[str]:
    """Returns the names of the built-in presets.

    Example:
    >>> "bert_base_en_uncased" in preset_names()
    True
    """
    return sorted(
        path.parent.name for path in _presets_directory().glob("*/kbert.json")
    )


class Catalogue:
    """An attribute of a class: {name: content of `kbert.json`} of the built-in presets.

    The files are read when the attribute is.
    """

    def __get__(self, instance, owner=None) -> dict[str, dict]:
        """Reads the catalogue."""
        return {name: find_preset(name).metadata() for name in preset_names()}


def find_preset(
    spec: str | os.PathLike | Preset,
    *,
    network: bool = True,
    allow_pickle: bool = False,
) -> Preset:
    """Returns the preset of that name, in that folder, or of that hub.

    Of a hub all files are fetched but the weights; else the network is never used.

    Args:
        spec: a built-in name; the path of a folder, or of a zip of Google's;
            "hf://organisation/name@revision"; or
            "kaggle://owner/model/framework/variation/version". A preset is returned.
        network: False for what the caches of the hubs have.
        allow_pickle: whether the weights may be read from a pickle, by torch.

    Raises:
        ConnectionError, PermissionError: if a hub cannot be asked, or refuses.
        FileNotFoundError: if `spec` is a path and no folder is there.
        NotADirectoryError: if `spec` is the path of a file.
        TypeError: if `spec` is neither a string nor a path.
        ValueError: if no preset has that name, or it is a folder's name too.

    Example:
    >>> find_preset("bert_tiny_en_uncased").read_json("config.json")["hidden_size"]
    128
    """
    if isinstance(spec, Preset):
        asked = spec.allow_pickle or allow_pickle
        return dataclasses.replace(spec, allow_pickle=asked)
    if not isinstance(spec, str | os.PathLike):
        raise TypeError(
            "A preset must be a built-in name or the path of a folder. "
            f"Received: {spec!r} of type {type(spec).__name__}."
        )
    name = os.fspath(spec)
    if isinstance(spec, str) and handles.is_handle(name):
        repository = open_repository(name, network)
        there = repository.snapshot.folder
        found = Preset(name, there, repository=repository, allow_pickle=allow_pickle)
        return _understood(found)
    folder = Path(name).expanduser().resolve()
    shipped = _presets_directory() / name
    if isinstance(spec, str) and name in preset_names():
        if folder.is_dir() and folder != shipped:
            raise ValueError(
                f"{name!r} is a built-in preset and also a folder here. Write "
                f"{os.path.join('.', name)!r} for the folder, or rename the folder."
            )
        return Preset(name, shipped, allow_pickle=allow_pickle)
    if folder.suffix == ".zip" and folder.is_file():
        patterns = google_release.FILES
        folder = archives.unpacked(folder, google_release.CONFIG, patterns)
    if folder.is_dir():
        return _understood(Preset(name, folder, allow_pickle=allow_pickle))
    if folder.exists():
        raise NotADirectoryError(
            f"A preset must be a folder or a built-in name. Received a file: {name!r}."
        )
    if os.sep in name or name.startswith((".", "~")) or not isinstance(spec, str):
        raise FileNotFoundError(
            f"A preset's folder must exist. Received: {name!r}, which would be "
            f"{folder}. Built-in names are: {preset_names()}."
        )
    close = difflib.get_close_matches(name, preset_names())
    raise ValueError(
        f"A preset must be a built-in name or the path of a folder that exists. "
        f"Received: {name!r}. {f'Did you mean one of {close}? ' if close else ''}"
        f"Built-in names are: {preset_names()}."
    )


def _understood(preset: Preset) -> Preset:
    """Returns a preset with the files derived that another format lacks."""
    for family in (google_release, saved_model_folder, keras_hub_folder):
        preset = family.understood(preset)
    return preset


def write_preset(
    folder: str | os.PathLike,
    files: Mapping[str, bytes | Callable[[Path], None]],
    metadata: dict,
) -> None:
    """Writes a preset folder, whole or not at all.

    Everything is written into a new folder next to the old one, forced to the disk,
    and swapped in (in one step on Linux). Files of the old folder that are not
    the preset's, like a README.md, are kept; weights and tokenizers in formats that
    are not written anew are not, since they would contradict the new ones.

    Args:
        folder: where to; parents are made.
        files: the content of each file, or a function that writes it to a path.
        metadata: the content of `kbert.json`, without "files" and "sha256".

    Raises:
        NotADirectoryError: if a file is in the way.
        ValueError: if a name leaves the folder or a key is reserved, or the folder
            cannot be swapped since it holds the current directory or is a mount.
    """
    reserved = {"files", "sha256"} & set(metadata) | {METADATA} & set(files)
    if reserved:
        raise ValueError(
            f"A preset's hashes are written by kbert. Received: {sorted(reserved)}."
        )

    def keep(filename: str) -> bool:
        """Returns whether the new preset leaves the old folder's file alone."""
        ours = filename in files or filename == METADATA
        return not ours and not stale_files.is_stale(filename, files)

    def write(new: Path) -> None:
        """Writes the files and, last, their hashes."""
        for filename, content in files.items():
            path = path_inside(new, filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                content(path)
        hashes = {filename: sha256(new / filename) for filename in sorted(files)}
        (new / METADATA).write_bytes(metadata_bytes({**metadata, "files": hashes}))

    replace_folder(folder, write, keep)


def metadata_bytes(metadata: dict) -> bytes:
    """Returns the content of a `kbert.json`, with its own digest added."""
    return signed_json(metadata)


def _hash_message(path: Path, expected: str, actual: str) -> str:
    return (
        f"{path} is not the file that was saved: it is damaged, or was changed. Its "
        f"sha256 must be {expected}. Received: {actual}."
    )


@functools.cache
def _tell_once(message: str) -> None:
    """Warns; cached, so that a process tells the same thing once."""
    warnings.warn(message, stacklevel=3)


def _presets_directory() -> Path:
    """Returns the built-in presets: in the wheel, or at the top of a checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "_presets"
    return installed if installed.is_dir() else here.parent / "presets"
