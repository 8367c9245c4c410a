"""Writes checkpoints as TensorFlow lays them out, and as a forger might."""

import struct

import numpy as np

from kbert.bundles.crc32c import masked_crc32c

MAGIC = 0xDB4775248B80FB57
NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "bool": 10}
STRING = 7
GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def varint(number):
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def message(*fields):
    """A message of protocol buffers: (number, an integer or bytes) for each field."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
        else:
            encoded += varint(number << 3 | 2) + varint(len(value)) + value
    return encoded


def entry(dtype, shape, start, data, size=None, shard=0, crc=None, more=()):
    """A BundleEntryProto."""
    dimensions = message(*((2, message((1, each))) for each in shape))
    checksum = masked_crc32c(data) if crc is None else crc
    fixed = varint(6 << 3 | 5) + struct.pack("<I", checksum)
    fields = ((1, dtype), (2, dimensions), (3, shard), (4, start))
    size = len(data) if size is None else size
    return message(*fields, (5, size), *more) + fixed


def block(pairs):
    """A block of a table, which shares no beginnings of keys, and its trailer."""
    body = b"".join(
        varint(0) + varint(len(key)) + varint(len(value)) + key + value
        for key, value in pairs
    )
    body += struct.pack("<II", 0, 1)
    return body + b"\0" + struct.pack("<I", masked_crc32c(body + b"\0"))


def table(pairs):
    """An index of one block."""
    data, statistics = block(pairs), block([])
    handle = varint(0) + varint(len(data) - 5)
    places = block([(b"\xff", handle)])
    start = len(data) + len(statistics)
    footer = varint(len(data)) + varint(len(statistics) - 5)
    footer += varint(start) + varint(len(places) - 5)
    return (
        data + statistics + places + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)
    )


HEADER = (b"", message((1, 1)))


def string(data):
    """A tensor of one string."""
    length = varint(len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data


def graph(named):
    """A TrackableObjectGraph of {key in the checkpoint: name that Keras gave}."""
    nodes = []
    for key, name in named.items():
        attribute = ((1, b"VARIABLE_VALUE"), (2, name.encode()), (3, key.encode()))
        nodes.append((1, message((2, message(*attribute)))))
    return message(*nodes)


def write(prefix, arrays, named=None):
    """Writes arrays by name and, with `named`, the graph of what Keras calls them."""
    tensors = {
        name: (NUMBERS[str(array.dtype)], array.shape, array.tobytes())
        for name, array in ((n, np.asarray(a)) for n, a in arrays.items())
    }
    if named is not None:
        tensors[GRAPH] = (STRING, (), string(graph(named)))
    data, pairs = b"", [HEADER]
    for name, (dtype, shape, content) in sorted(tensors.items()):
        pairs.append((name.encode(), entry(dtype, shape, len(data), content)))
        data += content
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(pairs))
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)
