"""CRC-32C, the checksum in TensorFlow's files, over many bytes at once with numpy.

A CRC is linear: that of a row of bytes is the sum of those of its parts, each moved on
by the bytes behind it (Castagnoli 1993; RFC 3720, appendix B.4 has test vectors).
"""

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # of Castagnoli, bits reversed
_BITS = np.arange(32, dtype=np.uint32)
_ONES = 0xFFFFFFFF


def crc32c(data) -> int:
    """Returns the CRC-32C of bytes, or of what lies in memory like them.

    Example:
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    data = np.frombuffer(data, np.uint8)
    start = _moved(np.array([_ONES], np.uint32), len(data))[0]
    return int(start ^ _linear(data)) ^ _ONES


def masked_crc32c(data) -> int:
    """Returns the CRC-32C as TensorFlow's files hold it, turned and added to.

    (A CRC over bytes that hold their own CRC says little.)
    """
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _ONES


def _linear(data: np.ndarray) -> np.uint32:
    """Returns the CRC that starts from 0 and is not inverted.

    The bytes are read as the rows of a table, four bytes of each row a step; zeros in
    front change nothing.
    """
    rows = 4096 if len(data) >= 1 << 18 else 64
    zeros = np.zeros(-len(data) % (4 * rows), np.uint8)
    words = np.concatenate([zeros, data]).view("<u4").reshape(rows, -1)
    low, high = _tables()
    crc = np.zeros(rows, np.uint32)
    for column in range(words.shape[1]):
        crc ^= words[:, column]
        crc = low[crc & 0xFFFF] ^ high[crc >> 16]
    behind = 4 * words.shape[1]
    while len(crc) > 1:
        crc = _moved(crc[::2], behind) ^ crc[1::2]
        behind *= 2
    return crc[0]


@functools.cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Returns what each value of the lower and the upper half becomes after 4 bytes."""
    halves = np.arange(1 << 16, dtype=np.uint32)
    return _moved(halves, 4), _moved(halves << 16, 4)


def _moved(crc: np.ndarray, count: int) -> np.ndarray:
    """Returns CRCs after `count` bytes of zeros."""
    return _product(_power(8 * count), crc)


@functools.cache
def _power(bits: int) -> np.ndarray:
    """Returns the matrix over GF(2), a column a bit, of that many bits of zeros."""
    if bits == 0:
        return np.uint32(1) << _BITS
    if bits == 1:
        first = np.array([_POLYNOMIAL], np.uint32)
        return np.concatenate([first, np.uint32(1) << _BITS[:-1]])
    half = _power(bits // 2)
    whole = _product(half, half)
    return _product(_power(1), whole) if bits % 2 else whole


def _product(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Returns a matrix times vectors, over GF(2)."""
    result = np.zeros_like(vectors)
    for bit in range(32):
        result ^= matrix[bit] * (vectors >> np.uint32(bit) & np.uint32(1))
    return result
