"""`flax_model.msgpack`, as transformers 4 wrote Flax models: nested maps of arrays.

The layout is that of `flax.serialization.to_bytes`: an array is msgpack's extension 1,
itself msgpack of (shape, name of the dtype, bytes); one above 2**30 bytes is a map of
its shape and chunks.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kbert.bundles.reading import float32_of_bfloat16
from kbert.checkpoints import names
from kbert.checkpoints.stored import StoredArray
from kbert.checkpoints.transformers_h5 import as_torch

_ARRAY = 1  # the extension's number
_CHUNKED = "__msgpack_chunked_array__"
_DTYPES = {
    "bfloat16": "<u2",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "int32": "<i4",
    "int64": "<i8",
}
_MOST_ENTRIES = 1 << 16
_DEEPEST = 16
_ENDS = {
    "kernel": "weight",
    "embedding": "weight",
    "scale": "weight",
    "gamma": "weight",
    "beta": "bias",
}


def hugging_face_name(path: str) -> tuple[str, str]:
    """Returns transformers' name for torch of an array, and how it lies otherwise.

    Args:
        path: the keys of the maps down to the array.

    Returns:
        The name, and NONE or TRANSPOSE of `names`.

    Example:
    >>> hugging_face_name("bert/encoder/layer/3/attention/self/query/kernel")
    ('bert.encoder.layer.3.attention.self.query.weight', 'transpose')
    >>> hugging_face_name("embeddings/LayerNorm/scale")
    ('embeddings.LayerNorm.weight', 'none')
    """
    *parents, end = path.split("/")
    transform = names.TRANSPOSE if end == "kernel" else names.NONE
    return ".".join([*parents, _ENDS.get(end, end)]), transform


def read_weights(path: Path) -> dict[str, StoredArray]:
    """Reads the file.

    Returns:
        The tensors by transformers' names for torch, in its layout.

    Raises:
        ImportError: if msgpack is not installed.
        ValueError: if the file is damaged, or holds anything but maps of arrays, or
            two arrays have one name.
    """
    msgpack = _msgpack()
    count = [0]

    def counted(pairs: list) -> dict:
        count[0] += len(pairs) + 1
        content = dict(pairs)
        if count[0] > _MOST_ENTRIES or len(content) < len(pairs):
            raise ValueError("too many entries, or a key that is there twice")
        return content

    def array(code: int, data: bytes) -> Any:
        if code != _ARRAY:
            raise ValueError(f"an extension of type {code}, where arrays have 1")
        return _array(msgpack, data)

    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            unpacker = msgpack.Unpacker(
                file,
                read_size=1 << 20,
                max_buffer_size=0,  # what the format allows
                ext_hook=array,
                object_pairs_hook=counted,
                strict_map_key=True,
                max_str_len=200,
                max_bin_len=0,
                max_array_len=0,
                max_map_len=10_000,
            )
            stored = dict(_leaves(unpacker.unpack(), "", path))
            if unpacker.tell() != size:
                raise ValueError(f"more behind the first {unpacker.tell()} of them")
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ValueError(
            f"{path} must be whole msgpack of nested maps of arrays, as Flax writes "
            f"it; it is truncated or damaged. Received: {size} bytes, "
            f"{type(error).__name__}: {str(error)[:500]}."
        ) from error
    return as_torch(stored, hugging_face_name, path)


def _msgpack():
    """Returns the library that reads the files."""
    try:
        import msgpack
    except ImportError as error:
        raise ImportError(
            "Weights of Flax are read by msgpack. Received: an environment without "
            "it. Run: pip install 'keras-kbert[flax]'"
        ) from error
    return msgpack


def _array(msgpack: Any, data: bytes) -> tuple[tuple[int, ...], str, Callable]:
    """Returns the shape, the dtype, and what reads the numbers, of an extension."""
    lists = []

    def few(items: list) -> list:
        lists.append(items)
        if len(lists) > 2:
            raise ValueError("an array of lists")
        return items

    parts = msgpack.unpackb(data, list_hook=few, max_array_len=32, max_map_len=0)
    shape, dtype, content = parts
    if dtype not in _DTYPES or not isinstance(content, bytes):
        raise ValueError(f"an array of {dtype!r}")
    if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"an array of the shape {shape!r}")
    kind = np.dtype(_DTYPES[dtype])
    if math.prod(shape) * kind.itemsize != len(content):
        raise ValueError(f"{len(content)} bytes for {dtype} of the shape {shape}")

    def read() -> np.ndarray:
        array = np.frombuffer(content, kind)
        if dtype == "bfloat16":
            array = float32_of_bfloat16(array)
        return array.reshape(shape)

    return tuple(shape), dtype, read


def _leaves(tree: Any, prefix: str, path: Path):
    """Yields the arrays in nested maps, by their keys."""
    if not isinstance(tree, dict):
        raise ValueError(f"a {type(tree).__name__} where maps must be")
    for key, value in tree.items():
        if not isinstance(key, str) or "/" in key or prefix.count("/") > _DEEPEST:
            raise ValueError(f"the key {key!r} below {prefix!r}")
        name = prefix + key
        if isinstance(value, dict) and _CHUNKED not in value:
            yield from _leaves(value, f"{name}/", path)
            continue
        shape, dtype, read = _joined(value, name)
        yield name, StoredArray(f"{name!r} in {path}", dtype, shape, read)


def _joined(value: Any, name: str) -> tuple[tuple[int, ...], str, Callable]:
    """Returns an array as `_array` does, one in chunks as a whole."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} under {name!r}")
    shape = tuple(_in_order(value.get("shape"), int, name))
    chunks = _in_order(value.get("chunks"), tuple, name)
    dtypes = {dtype for _, dtype, _ in chunks}
    size = sum(math.prod(part) for part, _, _ in chunks)
    if len(dtypes) != 1 or any(n < 0 for n in shape) or math.prod(shape) != size:
        raise ValueError(f"{size} numbers for the shape {shape} of {name!r}")

    def read() -> np.ndarray:
        parts = [read_part().reshape(-1) for _, _, read_part in chunks]
        return np.concatenate(parts).reshape(shape)

    return shape, dtypes.pop(), read


def _in_order(numbered: Any, kind: type, name: str) -> list:
    """Returns the values of a map whose keys are "0", "1", and so on."""
    found = numbered if isinstance(numbered, dict) else {}
    values = [found.get(str(index)) for index in range(len(found))]
    if not values or any(type(value) is not kind for value in values):
        raise ValueError(f"no array in chunks under {name!r}")
    return values
