"""The lock file: which revision of a preset was fetched, and the sha256 of its files.

Where the environment variable KBERT_LOCK names a file, what is fetched from a hub is
written there, under the handle as the user wrote it. Keep the file with your code: from
then on the handle means the same bytes, on every machine, whatever happens to a branch.
The locked revision is fetched instead of the newest, and a file of another content is
refused. Delete an entry, or the file, to take the newest and lock that.
"""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from kbert.files import sha256
from kbert.strict_json import Required, check_schema, read_json

VARIABLE = "KBERT_LOCK"
_SCHEMA = {
    Required("version"): range(1, 2),
    Required("presets"): {
        ...: {Required("revision"): str, Required("files"): {...: str}}
    },
}


def locked_revision(spec: str) -> str | None:
    """Returns the revision that a handle is locked to.

    Raises:
        ValueError: if the lock file is damaged.
    """
    entry = _read().get(spec)
    return entry and entry["revision"]


def check(spec: str, revision: str, paths: Mapping[str, Path]) -> None:
    """Compares fetched files with the lock file, and locks those that it lacks.

    Args:
        spec: the handle.
        revision: what it meant.
        paths: of the files, by name.

    Raises:
        ValueError: if a file is not the one that is locked.
    """
    if not os.environ.get(VARIABLE):
        return
    entries = _read()
    files = {name: sha256(path) for name, path in paths.items()}
    known = entries.get(spec, {"revision": revision, "files": {}})
    for name, actual in files.items():
        expected = known["files"].get(name, actual)
        if actual != expected:
            raise ValueError(
                f"{name!r} of {spec} is not the file that {_path()} locks at the "
                f"revision {known['revision']}. Its sha256 must be {expected}. "
                f"Received: {actual}. Find out who changed it; delete the entry to "
                "lock what is there now."
            )
    if spec not in entries or not files.keys() <= known["files"].keys():
        merged = dict(sorted((known["files"] | files).items()))
        entries[spec] = {"revision": known["revision"], "files": merged}
        _write(entries)


def _path() -> Path:
    return Path(os.environ[VARIABLE]).expanduser()


def _read() -> dict:
    """Returns the entries of the lock file, {} where there is none."""
    if not os.environ.get(VARIABLE) or not _path().exists():
        return {}
    content = read_json(_path())
    check_schema(content, _SCHEMA, str(_path()))
    return content["presets"]


def _write(entries: dict) -> None:
    """Replaces the lock file in one step."""
    content = {"version": 1, "presets": dict(sorted(entries.items()))}
    new = _path().with_name(f".{_path().name}.{secrets.token_hex(8)}")
    try:
        new.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
        os.replace(new, _path())
    finally:
        new.unlink(missing_ok=True)
