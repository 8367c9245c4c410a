"""A random order of very many things, of which any place is found without the rest."""

from collections.abc import Sequence

import numpy as np

_ROUNDS = 6
# The finaliser of MurmurHash3 (Appleby, public domain): every bit moves every other.
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)


class Permutation:
    """A permutation of the numbers below N, from a seed, in no memory.

    A balanced Feistel network (Luby and Rackoff 1988) permutes the numbers below a
    power of four that holds N; one that lands outside is sent on until it lands inside
    (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains").

    Args:
        size: N, at least 1.
        seed: non-negative integers; others give another order.

    Example:
    >>> from kbert.pretraining.permutation import Permutation
    >>> order = Permutation(10, [3])(np.arange(10))
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> (Permutation(10, [3])(np.array([7])) == order[7]).item()
    True
    """

    def __init__(self, size: int, seed: Sequence[int]):
        self.size = size
        self._half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
        self._low = (np.uint64(1) << self._half) - np.uint64(1)
        state = np.random.SeedSequence(list(seed))
        self._keys = state.generate_state(_ROUNDS, np.uint64)

    def __call__(self, places) -> np.ndarray:
        """Returns what stands at places of the order, int64.

        Args:
            places: integers below N, of any shape.
        """
        places = np.asarray(places)
        found = self._sent(places.reshape(-1).astype(np.uint64))
        outside = found >= self.size
        while outside.any():
            found[outside] = self._sent(found[outside])
            outside = found >= self.size
        return found.astype(np.int64).reshape(places.shape)

    def _sent(self, numbers: np.ndarray) -> np.ndarray:
        """Permutes the numbers of the whole power of four once."""
        left, right = numbers >> self._half, numbers & self._low
        for key in self._keys:
            left, right = right, left ^ (self._mixed(right, key) & self._low)
        return (left << self._half) | right

    @staticmethod
    def _mixed(numbers, key):
        mixed = numbers ^ key
        for factor in _FACTORS:
            mixed = (mixed ^ (mixed >> _SHIFT)) * factor
        return mixed ^ (mixed >> _SHIFT)
