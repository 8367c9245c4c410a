"""Checkpoints as folders that are whole or do not count, whatever kills the writer.

A checkpoint is written into a folder of its own, every file forced to the disk, and the
folder renamed; the manifest, with the size and sha256 of each file, is written last.
Without a manifest there is no checkpoint, so that a store without renames may hold it
too; and what the manifest says is compared with every byte before a checkpoint is used.
"""

import dataclasses
import hashlib
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from kbert.files import flush, replace_file
from kbert.strict_json import own_digest, parse_json, signed_json

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{12})")
_SUFFIX = ".safetensors"

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class SavedCheckpoint:
    """One whole checkpoint.

    Args:
        step: that it was taken after.
        folder: where it lies.
        facts: what was saved beside the arrays, JSON.
    """

    step: int
    folder: Path
    facts: dict

    def arrays(self, group: str) -> dict[str, np.ndarray]:
        """Returns the arrays of a group by name; none where it was saved without.

        Args:
            group: its name.
        """
        path = self.folder / f"{group}{_SUFFIX}"
        return safetensors.numpy.load_file(path) if path.exists() else {}


class CheckpointFolder:
    """The checkpoints of one training; one process at a time writes them.

    Args:
        folder: where they lie, each in `step-` and twelve digits; made when needed.
        keep: how many to keep.

    Raises:
        ValueError: if none would be kept.

    Example:
    >>> import tempfile
    >>> from kbert.training.checkpoint_folder import CheckpointFolder
    >>> scratch = tempfile.TemporaryDirectory()
    >>> checkpoints = CheckpointFolder(scratch.name, keep=2)
    >>> for step in (10, 20, 30):
    ...     _ = checkpoints.write(step, {"weights": {"w": np.ones(3) * step}}, {})
    >>> checkpoints.steps(), checkpoints.newest().arrays("weights")["w"].tolist()
    ([20, 30], [30.0, 30.0, 30.0])
    >>> scratch.cleanup()
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 3):
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise ValueError(
                "At least one checkpoint must be kept; two or more, so that another is "
                f"there when a disk loses bytes. Received: keep={keep!r}."
            )
        self.folder = Path(folder).expanduser().absolute()
        self.keep = keep

    def steps(self) -> list[int]:
        """Returns the steps of all checkpoints that have a manifest, increasing."""
        if not self.folder.is_dir():
            return []
        found = [_NAME.fullmatch(entry.name) for entry in self.folder.iterdir()]
        steps = sorted(int(match[1]) for match in found if match)
        return [step for step in steps if (self._path(step) / MANIFEST).exists()]

    def newest(self) -> SavedCheckpoint | None:
        """Returns the newest checkpoint that is whole; None where none was written.

        Warns of each that is passed over since it is damaged.

        Raises:
            ValueError: if there are checkpoints, and every one is damaged.
        """
        damages: list[str] = []
        for step in reversed(self.steps()):
            try:
                found = self._verified(step)
            except ValueError as error:
                damages.append(str(error))
                continue
            except OSError as error:
                damages.append(f"{self._path(step)} is damaged: {error}.")
                continue
            for damage in damages:
                warnings.warn(
                    f"{damage} The training goes on from the checkpoint before it, "
                    f"of step {step}.",
                    stacklevel=2,
                )
            return found
        if damages:
            raise ValueError(
                "A training goes on from a checkpoint that is whole. Received: "
                f"{self.folder}, where none of {len(damages)} is. {damages[0]} To "
                "begin anew, delete that folder or name another one."
            )
        return None

    def write(self, step: int, groups: Mapping[str, Arrays], facts: dict) -> Path:
        """Writes a checkpoint, then deletes all but the newest `keep`.

        Args:
            step: that it is taken after. An older one of the same step is replaced,
                those of later steps are deleted: the training went back before them.
            groups: arrays by name, by the name of their group: a file each.
            facts: what JSON can hold, to be saved beside.

        Returns:
            The folder of the checkpoint.

        Raises:
            OSError: if the disk is full, the folder cannot be written, or another
                error of the system; what was there before is as it was.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._clear()
            path = self._write(step, groups, facts)
            for old in self.steps():
                if old > step:
                    self._delete(self._path(old))
            for old in self.steps()[: -self.keep]:
                self._delete(self._path(old))
        except (OSError, safetensors.SafetensorError) as error:
            steps = self.steps()
            left = f"The last one is of step {steps[-1]}" if steps else "There is none"
            raise OSError(
                f"A checkpoint of step {step} must be written into {self.folder}. "
                f"Received: {error}. {left}. Make room there, or let it be written, "
                "then start the same training again: it goes on."
            ) from error
        return path

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:012d}"

    def _write(self, step, groups, facts) -> Path:
        final = self._path(step)
        temporary = self.folder / f".{final.name}.{secrets.token_hex(8)}"
        try:
            temporary.mkdir()
            files = {}
            for group, arrays in groups.items():
                path = temporary / f"{group}{_SUFFIX}"
                contiguous = {k: np.ascontiguousarray(v) for k, v in arrays.items()}
                # A scalar became a vector.
                shaped = {k: v.reshape(arrays[k].shape) for k, v in contiguous.items()}
                safetensors.numpy.save_file(shaped, path)
                flush(path)
                files[path.name] = _described(path)
            flush(temporary)
            if final.exists():
                self._delete(final)
            os.rename(temporary, final)
            flush(self.folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        content = signed_json({"step": step, "facts": facts, "files": files})
        replace_file(final / MANIFEST, lambda path: _write_bytes(path, content))
        return final

    def _verified(self, step: int) -> SavedCheckpoint:
        """Returns a checkpoint after its bytes were compared with its manifest.

        Raises:
            ValueError: if a byte is not as written.
            OSError: if a file is missing or cannot be read.
        """
        folder = self._path(step)
        where = f"The checkpoint {folder}"
        manifest = parse_json((folder / MANIFEST).read_bytes(), str(folder / MANIFEST))
        expected, actual = manifest.get("sha256"), own_digest(manifest)
        if actual != expected or manifest["step"] != step:
            raise ValueError(
                f"{where} is damaged: its manifest must have the sha256 {expected!r}, "
                f"and be of step {step}. Received: {actual!r}."
            )
        for name, written in manifest["files"].items():
            found = _described(folder / name)
            if found != written:
                raise ValueError(
                    f"{where} is damaged: {name} must be {written}. Received: {found}."
                )
        return SavedCheckpoint(step, folder, manifest["facts"])

    def _clear(self) -> None:
        """Deletes what a process that was killed has left half written or deleted."""
        for entry in self.folder.iterdir():
            unfinished = _NAME.fullmatch(entry.name.lstrip(".").partition(".")[0])
            if unfinished and not (
                _NAME.fullmatch(entry.name) and (entry / MANIFEST).exists()
            ):
                shutil.rmtree(entry)

    @staticmethod
    def _delete(folder: Path) -> None:
        """Deletes a checkpoint, its manifest first: a half of it never counts."""
        (folder / MANIFEST).unlink(missing_ok=True)
        flush(folder)
        shutil.rmtree(folder)


def _described(path: Path) -> dict:
    """Returns size and sha256 of a file, read again from the file itself."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
