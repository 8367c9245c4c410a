"""How a good preset folder becomes a hostile one: what cases are made of."""

import dataclasses
import json
import os
import pathlib
import stat
import struct
from collections.abc import Callable

from kbert import presets


@dataclasses.dataclass(frozen=True)
class Case:
    """One hostile folder.

    Args:
        damage: changes a copy of the good folder, which lies beside `outside/`.
        told: a pattern that the message of every refusal meets.
        refused_by: who refuses it: (B)ackbone, (C)lassifier, (T)okenizer; the others
            load what the good folder holds.
    """

    damage: Callable[[pathlib.Path], object]
    told: str = ""
    refused_by: str = "BCT"


def each(*changes):
    """All of the changes, one after another."""
    return lambda folder: [change(folder) for change in changes]


def content(name, data):
    """The file has this content, or, where it is large, what a function returns."""

    def change(folder):
        (folder / name).write_bytes(data() if callable(data) else data)

    return change


def appended(name, data):
    """The file goes on with this."""
    return lambda f: (f / name).write_bytes((f / name).read_bytes() + data)


def without(*names):
    """The files are gone."""
    return lambda folder: [(folder / name).unlink() for name in names]


def sparse(name, size, start=b""):
    """The file has this size, but takes no place on the disk."""

    def change(folder):
        with (folder / name).open("wb") as file:
            file.write(start)
            file.truncate(size)

    return change


def link(name, target):
    """A link stands in the file's place."""

    def change(folder):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def directory(name):
    """A folder stands in the file's place."""

    def change(folder):
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return change


def node(name, kind):
    """A pipe or a socket stands in the file's place."""

    def change(folder):
        (folder / name).unlink(missing_ok=True)
        os.mknod(folder / name, kind | 0o600)

    return change


PIPE, SOCKET = stat.S_IFIFO, stat.S_IFSOCK


def values(name, **changes):
    """The JSON object in the file has these values; `section__key` goes deeper."""

    def change(folder):
        path = folder / name
        whole = json.loads(path.read_bytes()) if path.exists() else {}
        for key, value in changes.items():
            section, _, inner = key.partition("__")
            if inner:
                whole[section][inner] = value
            else:
                whole[key] = value
        path.write_text(json.dumps(whole))

    return change


def drop_keys(name, *keys):
    """The JSON object in the file lacks these keys."""

    def change(folder):
        whole = json.loads((folder / name).read_bytes())
        kept = {key: value for key, value in whole.items() if key not in keys}
        (folder / name).write_text(json.dumps(kept))

    return change


def signed(**metadata):
    """There is a `kbert.json` with these values and digests that are right."""
    return content("kbert.json", presets.metadata_bytes({"files": {}, **metadata}))


def index(target, count=1):
    """An index takes the place of the weights and names a file for each tensor."""

    def change(folder):
        names = ["embeddings.word_embeddings.weight"]
        names += [f"tensor.{number}" for number in range(count - 1)]
        whole = {"weight_map": {name: target(folder) for name in names}}
        (folder / "model.safetensors").unlink()
        text = json.dumps(whole, ensure_ascii=True)
        (folder / "model.safetensors.index.json").write_text(text)

    return change


def header_bytes(encoded, data=b"", length=None):
    """The weights have these bytes as their header, and say this of its length."""

    def whole():
        header = encoded() if callable(encoded) else encoded
        said = len(header) if length is None else length
        return struct.pack("<Q", said) + header + data

    return content("model.safetensors", whole)


def header(alter):
    """`alter` changes the header of the good weights; the numbers stay as they are."""

    def change(folder):
        path = folder / "model.safetensors"
        whole = path.read_bytes()
        start = 8 + int.from_bytes(whole[:8], "little")
        decoded = json.loads(whole[8:start])
        decoded = alter(decoded) or decoded
        encoded = (
            decoded if isinstance(decoded, bytes) else json.dumps(decoded).encode()
        )
        header_bytes(encoded, whole[start:])(folder)

    return change


def first_tensor(**changes):
    """The first tensor in the weights' header says something else of itself."""

    def alter(decoded):
        name = min(set(decoded) - {"__metadata__"})
        decoded[name].update(changes)

    return header(alter)
