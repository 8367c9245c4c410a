import numpy as np
import pytest

from kbert.bundles import reading
from tests.bundles import writer

ARRAYS = {
    "a/kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "a/bias": np.float64([1.5, -2]),
    "step": np.int64(7),
    "switch": np.bool_(True),
}


@pytest.fixture
def prefix(tmp_path):
    writer.write(tmp_path / "x.ckpt", ARRAYS, {"a/kernel": "kernel"})
    return tmp_path / "x.ckpt"


def forged(prefix, *pairs, data=bytes(64), header=writer.HEADER):
    """A checkpoint of one file, with whatever is said of it."""
    prefix.with_name(f"{prefix.name}.index").write_bytes(writer.table([header, *pairs]))
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)
    return prefix


def test_every_tensor_with_its_dtype_and_shape(prefix):
    found = reading.read_index(prefix)
    assert set(found) == {*ARRAYS, writer.GRAPH}
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (str(array.dtype), array.shape)
        np.testing.assert_array_equal(found[name].read(), array)
    assert b"kernel" in found[writer.GRAPH].read_string()


def test_bfloat16_is_exact(tmp_path):
    data = b"\x80\x3f\xc0\x7f\x80\xff"
    pair = (b"x", writer.entry(14, (3,), 0, data))
    entry = reading.read_index(forged(tmp_path / "x", pair, data=data))["x"]
    np.testing.assert_array_equal(entry.read(), np.float32([1.0, np.nan, -np.inf]))


@pytest.mark.parametrize("file", ["index", "data-00000-of-00001"])
def test_every_flipped_bit_and_lost_end_is_noticed(prefix, file):
    path = prefix.with_name(f"x.ckpt.{file}")
    content = path.read_bytes()
    damaged = [content[:length] for length in range(0, len(content), 5)]
    for at in range(0, 8 * len(content), 13):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << at % 8
        damaged.append(bytes(flipped))
    unnoticed = []
    for each in damaged:
        path.write_bytes(each)
        try:
            found = reading.read_index(prefix)
            arrays = {name: found[name].read() for name in ARRAYS}
            found[writer.GRAPH].read_string()
        except ValueError as error:
            assert str(prefix) in str(error)
        else:
            unnoticed += [
                name
                for name in ARRAYS
                if not np.array_equal(arrays[name], ARRAYS[name])
            ]
    assert unnoticed == []


@pytest.mark.parametrize(
    ("pair", "received"),
    [
        (writer.entry(1, (1 << 40,), 0, b"", crc=0), "0 bytes for float32"),
        (writer.entry(1, (1 << 62, 1 << 62), 0, b"", size=64), "64 bytes for float32"),
        (writer.entry(1, (16,), 8, b"", size=64), "64 bytes of x.data-00000"),
        (writer.entry(1, (16,), 0, b"", size=64, shard=3), "64 bytes for float32"),
        (writer.entry(1, (16,), 0, bytes(64), crc=1), "another checksum"),
        (writer.entry(3, (2,), 0, bytes(8), more=((7, b""),)), "which is partitioned"),
        (writer.entry(99, (16,), 0, bytes(64)), "type 99 for 'x'"),
        (b"\x0a\x7f", "a message that is none"),
        (b"\x0a\xff", "a number without an end"),
        (b"\x08", "a number without an end"),
        (b"\x0f\x01", "a message that is none"),
        (writer.message((1, b"x")), "a number that is none"),
        (writer.message((1, 1), (2, 3)), "a number where a message must be"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, pair, received):
    with pytest.raises(ValueError, match=received) as error:
        reading.read_index(forged(tmp_path / "x", (b"x", pair)))["x"].read()
    assert str(tmp_path / "x") in str(error.value)


@pytest.mark.parametrize(
    ("header", "received"),
    [
        ((b"", writer.message((1, 1), (2, 1))), "big-endian"),
        ((b"", writer.message((1, 10**9))), "an index of 1000000000 files"),
        ((b"x", b""), "an index of 1 files"),
    ],
)
def test_odd_headers(tmp_path, header, received):
    with pytest.raises(ValueError, match=received):
        reading.read_index(forged(tmp_path / "x", header=header))


def test_tensors_on_each_other(tmp_path):
    pairs = [(name, writer.entry(1, (16,), 0, bytes(64))) for name in (b"x", b"y")]
    with pytest.raises(ValueError, match="tensors of 128 bytes in 64 bytes"):
        reading.read_index(forged(tmp_path / "x", *pairs))


def test_a_name_that_is_there_twice(tmp_path):
    pair = (b"x", writer.entry(1, (16,), 0, bytes(64)))
    with pytest.raises(ValueError, match="there twice"):
        reading.read_index(forged(tmp_path / "x", pair, pair))


def test_a_compressed_block_is_refused(prefix):
    path = prefix.with_name("x.ckpt.index")
    content = bytearray(path.read_bytes())
    end = content.index(writer.block([])) - 5
    content[end] = 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="compressed"):
        reading.read_index(prefix)


def test_an_index_beyond_every_berts_is_not_read(prefix):
    with prefix.with_name("x.ckpt.index").open("ab") as file:
        file.truncate(reading.MAX_INDEX_BYTES + 1)
    with pytest.raises(ValueError, match="Received: 16777217"):
        reading.read_index(prefix)
