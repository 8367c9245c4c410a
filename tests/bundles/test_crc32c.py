import numpy as np
import pytest

from kbert.bundles.crc32c import crc32c, masked_crc32c


def bit_by_bit(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_vectors_of_rfc_3720(data, expected):
    assert crc32c(data) == expected


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 255, 256, 257, 10_001, 262_147])
def test_any_length(length):
    data = np.random.default_rng(length).bytes(length)
    assert crc32c(data) == bit_by_bit(data)


def test_an_array_is_its_bytes():
    array = np.arange(10, dtype="<f4")
    assert crc32c(array) == bit_by_bit(array.tobytes())


def test_masked():
    crc = bit_by_bit(b"foo")
    assert masked_crc32c(b"foo") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
