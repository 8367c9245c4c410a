"""The files of a checkpoint: an index of tensors, and files of their numbers.

The index, `PREFIX.index`, is a sorted table of keys and values as LevelDB has it
(https://github.com/google/leveldb/blob/main/doc/table_format.md), its values the
messages of tensorflow/core/protobuf/tensor_bundle.proto; the numbers lie in
`PREFIX.data-00000-of-00001` and its kin. Anyone can write such files: sizes are
compared with what is there before anything is read, and every checksum is checked.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from kbert.bundles.crc32c import masked_crc32c

# BERT-large with optimizer takes 60,000 bytes.
MAX_INDEX_BYTES = 1 << 24
_MAX_TENSORS = 1 << 16
_FOOTER_BYTES = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER_BYTES = 5  # of a block: how it is compressed, and a checksum
# DataType of tensorflow/core/framework/types.proto: numpy's name, and what numpy reads.
DTYPES = {
    1: ("float32", "<f4"),
    2: ("float64", "<f8"),
    3: ("int32", "<i4"),
    4: ("uint8", "u1"),
    6: ("int8", "i1"),
    9: ("int64", "<i8"),
    10: ("bool", "?"),
    14: ("bfloat16", "<u2"),
    19: ("float16", "<f2"),
}
_STRING = 7


@dataclasses.dataclass(frozen=True, eq=False)
class Entry:
    """A tensor in a checkpoint.

    Args:
        where: the file and the tensor's name, for messages.
        path: of the file that holds its numbers.
        dtype: as numpy spells it, "string", or "type N".
        shape: of the tensor.
        start: where in the file its bytes begin.
        size: how many they are.
        checksum: of them.
    """

    where: str
    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int
    checksum: int

    def read(self) -> np.ndarray:
        """Returns the numbers; bfloat16 becomes float32.

        Raises:
            ValueError: if they are damaged, or no numbers.
        """
        data = self._bytes()
        kinds = dict(DTYPES.values())
        if self.dtype not in kinds:
            raise ValueError(
                f"A tensor must be one of {list(kinds)}. Received: {self.dtype} for "
                f"{self.where}."
            )
        if masked_crc32c(data) != self.checksum:
            raise ValueError(_damaged(self.where, "another checksum than the index's"))
        array = data.view(kinds[self.dtype])
        if self.dtype == "bfloat16":
            array = float32_of_bfloat16(array)
        return array.reshape(self.shape)

    def read_string(self) -> bytes:
        """Returns the one string that the tensor is.

        Raises:
            ValueError: if it is damaged, or no single string.
        """
        if self.dtype != "string" or self.shape:
            raise ValueError(
                f"{self.where} must be a string. Received: {self.dtype} of the shape "
                f"{self.shape}."
            )
        data = self._bytes().tobytes()
        length, start = _varint(data, 0, self.where)
        if start + 4 + length != len(data):
            raise ValueError(_damaged(self.where, f"a string of {length} bytes"))
        return data[start + 4 :]

    def _bytes(self) -> np.ndarray:
        """Returns the tensor's bytes, mapped into memory."""
        if self.size == 0:
            return np.zeros(0, np.uint8)
        mapped = np.memmap(self.path, np.uint8, "r", self.start, (self.size,))
        return np.asarray(mapped)


def float32_of_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Returns bfloat16 numbers, each the upper half of a float32, exactly.

    Args:
        bits: uint16, little-endian.
    """
    return (bits.astype("<u4") << 16).view("<f4")


def read_index(prefix: Path) -> dict[str, Entry]:
    """Lists the tensors of a checkpoint; none of their numbers is read.

    Args:
        prefix: what its files' names begin with, like "folder/bert_model.ckpt". That
            none of them is a link, the caller has seen to.

    Returns:
        The tensors by name, in order.

    Raises:
        ValueError: if the index is damaged, or holds what kbert cannot read.
    """
    path = prefix.with_name(f"{prefix.name}.index")
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise ValueError(
            f"{path} must have at most {MAX_INDEX_BYTES} bytes. Received: "
            f"{path.stat().st_size}."
        )
    header, *found = _table(path.read_bytes(), str(prefix)) or [(b"", b"")]
    shards = _header(header, str(prefix))
    if len(found) > _MAX_TENSORS:
        raise ValueError(
            f"{prefix} must have at most {_MAX_TENSORS} tensors. Received: "
            f"{len(found)}."
        )
    entries = {}
    for key, value in found:
        name = key.decode("utf-8", errors="backslashreplace")
        entries[name] = _entry(prefix, name, value, shards)
    if len(entries) < len(found):
        raise ValueError(_damaged(str(prefix), "a name that is there twice"))
    _check_places(entries, str(prefix))
    return entries


def _check_places(entries: Mapping[str, Entry], where: str) -> None:
    """Refuses tensors that would lie beyond the end of a file, or on each other."""
    paths = {entry.path for entry in entries.values()}
    sizes = {path: path.stat().st_size if path.is_file() else 0 for path in paths}
    for entry in entries.values():
        if entry.start + entry.size > sizes[entry.path]:
            received = f"{sizes[entry.path]} bytes of {entry.path.name}, too few for it"
            raise ValueError(_damaged(entry.where, received))
    claimed, present = sum(e.size for e in entries.values()), sum(sizes.values())
    if claimed > present:
        received = f"tensors of {claimed} bytes in {present} bytes"
        raise ValueError(_damaged(where, received))


def _header(pair: tuple[bytes, bytes], where: str) -> int:
    """Returns the number of files, from the first value of the index."""
    key, value = pair
    message = message_fields(value, where)
    shards = _number(message, 1, where, default=1)
    if key != b"" or not 1 <= shards <= 10_000:
        raise ValueError(_damaged(where, f"an index of {shards} files"))
    if _number(message, 2, where) != 0:
        raise ValueError(
            f"{where} must be a checkpoint of a little-endian machine. Received: one "
            "of a big-endian machine."
        )
    return shards


def _entry(prefix: Path, name: str, value: bytes, shards: int) -> Entry:
    """Returns what the index says of one tensor, after a look at whether it can be."""
    where = f"{name!r} in {prefix}"
    message = message_fields(value, where)
    if 7 in message:
        raise ValueError(
            f"{prefix} must hold every tensor whole. Received: {name!r}, which is "
            "partitioned. Save it again from a program without a partitioner."
        )
    dimensions = [
        message_fields(dimension, where)
        for packed in inner_messages(message, 2, where)
        for dimension in inner_messages(message_fields(packed, where), 2, where)
    ]
    shape = tuple(_number(dimension, 1, where) for dimension in dimensions)
    kind, shard, start, size, checksum = (
        _number(message, field, where) for field in (1, 3, 4, 5, 6)
    )
    dtype, layout = DTYPES.get(kind, (f"type {kind}", None))
    dtype = "string" if kind == _STRING else dtype
    expected = math.prod(shape) * np.dtype(layout).itemsize if layout else size
    if size != expected or shard >= shards or len(shape) > 16:
        raise ValueError(
            _damaged(where, f"{size} bytes for {dtype} of the shape {shape}")
        )
    path = prefix.parent / f"{prefix.name}.data-{shard:05d}-of-{shards:05d}"
    return Entry(where, path, dtype, shape, start, size, checksum)


# The table ---------------------------------------------------------------------------


def _table(data: bytes, where: str) -> list[tuple[bytes, bytes]]:
    """Returns the keys and values of a table, in order."""
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or int.from_bytes(footer[-8:], "little") != _MAGIC:
        raise ValueError(_damaged(where, f"an index of {len(data)} bytes"))
    at = 0
    for _ in range(3):  # past the block of statistics, to the start of the index block
        start, at = _varint(footer, at, where)
    size, _ = _varint(footer, at, where)
    found = []
    for _, handle in _block(data, start, size, where):
        start, at = _varint(handle, 0, where)
        size, _ = _varint(handle, at, where)
        found += _block(data, start, size, where)
        if len(found) > 2 * _MAX_TENSORS:
            break
    return found


def _block(data: bytes, start: int, size: int, where: str) -> list[tuple[bytes, bytes]]:
    """Returns the keys and values of a block; a key shares its beginning."""
    end = start + size
    checksum = data[end + 1 : end + _TRAILER_BYTES]
    if len(checksum) != 4 or data[end] != 0:
        raise ValueError(_damaged(where, "a block that is compressed or cut off"))
    if masked_crc32c(data[start : end + 1]) != int.from_bytes(checksum, "little"):
        raise ValueError(_damaged(where, "a block with another checksum"))
    restarts = int.from_bytes(data[end - 4 : end], "little")
    end -= 4 * (restarts + 1)
    found, key, at = [], b"", start
    while at < end:
        shared, at = _varint(data, at, where)
        own, at = _varint(data, at, where)
        length, at = _varint(data, at, where)
        if at + own + length > end or shared > len(key) or shared + own > 1000:
            raise ValueError(_damaged(where, "a key or value without an end"))
        key = key[:shared] + data[at : at + own]
        found.append((key, data[at + own : at + own + length]))
        at += own + length
    return found


def _varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    """Returns a number of seven bits a byte, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
    raise ValueError(_damaged(where, "a number without an end"))


def message_fields(data: bytes, where: str) -> dict[int, list[int | bytes]]:
    """Returns the fields of a message as protocol buffers encode it.

    Args:
        data: the message.
        where: what it is called in errors.

    Returns:
        The values by the number of the field, each field's in order: integers as they
        stand, and bytes for strings and messages.

    Raises:
        ValueError: if it is no such message.
    """
    fields: dict[int, list[int | bytes]] = {}
    for number, value in _fields(data, where):
        fields.setdefault(number, []).append(value)
    return fields


def _number(
    fields: Mapping[int, list[int | bytes]], number: int, where: str, default: int = 0
) -> int:
    """Returns the value of a field that is an integer."""
    value = fields.get(number, [default])[0]
    if not isinstance(value, int):
        raise ValueError(_damaged(where, "a number that is none"))
    return value


def inner_messages(
    fields: Mapping[int, list[int | bytes]], number: int, where: str
) -> list[bytes]:
    """Returns the values of a field that are messages themselves.

    Raises:
        ValueError: if one is a number.
    """
    found = [value for value in fields.get(number, []) if isinstance(value, bytes)]
    if len(found) < len(fields.get(number, [])):
        raise ValueError(_damaged(where, "a number where a message must be"))
    return found


def _fields(data: bytes, where: str) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, where)
        kind, value = tag & 7, b""
        if kind == 0:
            number, at = _varint(data, at, where)
            yield tag >> 3, number
            continue
        length = {1: 8, 5: 4}.get(kind, 0)
        if kind == 2:
            length, at = _varint(data, at, where)
        value = data[at : at + length]
        if kind not in (1, 2, 5) or len(value) < length:
            raise ValueError(_damaged(where, "a message that is none"))
        at += length
        yield tag >> 3, value if kind == 2 else int.from_bytes(value, "little")


def _damaged(where: str, received: str) -> str:
    return (
        f"{where} must be a whole checkpoint of TensorFlow, with its index and all its "
        f"data; it is truncated or damaged. Received: {received}."
    )
