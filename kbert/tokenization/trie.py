"""A double-array trie: the pieces of a vocabulary as two arrays of integers.

From state `s` the letter `u` leads to `base[s] + u` if `check[base[s] + u] == s`, and
nowhere otherwise (Aoe 1989), so that one step of many walks at once is two gathers.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

ROOT, CONTINUATION_ROOT = 0, 1
"""Where the first piece of a word begins, and where those after it do."""

_SEARCHED = 4096


class Trie(NamedTuple):
    """The arrays; a state is an index into each.

    Args:
        base: int32 (states,), the offset of a state's followers.
        check: int32 (states,), the state that leads to a state; -1 for none.
        ids: int32 (states,), the id of the piece that ends there; -1 for none.
    """

    base: np.ndarray
    check: np.ndarray
    ids: np.ndarray


def build_trie(
    pieces: Iterable[tuple[int, Sequence[int], int]], num_letters: int
) -> Trie:
    """Builds the trie.

    Args:
        pieces: `(root, letters, id)` of every piece, letters in [0, num_letters).
            Of equal pieces the last counts.
        num_letters: the size of the alphabet.

    Returns:
        The arrays, long enough that any letter from any state stays inside.
    """
    edges: list[dict[int, int]] = [{}, {}]  # node: letter to node
    ids = [-1, -1]
    for root, letters, piece_id in pieces:
        node = root
        for letter in letters:
            child = edges[node].get(letter)
            if child is None:
                child = edges[node][letter] = len(edges)
                edges.append({})
                ids.append(-1)
            node = child
        ids[node] = piece_id
    places = _Places(2 * len(edges) + 2 * num_letters + _SEARCHED)
    base = np.zeros(len(edges), np.int64)
    # The widest first: they are the hardest to place.
    by_width = sorted(range(len(edges)), key=lambda n: -len(edges[n]))
    for node in by_width:
        if len(edges[node]) < 2:
            break
        base[node] = places.take(np.sort(np.fromiter(edges[node], np.int64)))
    # Most nodes have one child. It fits anywhere.
    narrow = [node for node in by_width if len(edges[node]) == 1]
    letters = np.array([next(iter(edges[node])) for node in narrow], np.int64)
    base[narrow] = places.take_each(len(narrow), num_letters) - letters
    state = np.zeros(len(edges), np.int64)
    state[CONTINUATION_ROOT] = 1
    for node, children in enumerate(edges):
        for letter, child in children.items():
            state[child] = base[node] + letter
    size = int(max(state.max(), base.max() + num_letters)) + 1
    arrays = Trie(*(np.full(size, fill, np.int32) for fill in (0, -1, -1)))
    arrays.base[state] = base
    arrays.ids[state] = ids
    for node, children in enumerate(edges):
        for child in children.values():
            arrays.check[state[child]] = state[node]
    return arrays


class _Places:
    """The places of the arrays that are still free."""

    def __init__(self, size: int):
        self._free = np.ones(size, bool)
        self._free[[ROOT, CONTINUATION_ROOT]] = False
        self._first = 2  # below it nothing is free
        self._hint: dict[int, int] = {}  # width: where the search last succeeded

    def take(self, letters: np.ndarray) -> int:
        """Finds and takes `base + letters`, all free; returns the base."""
        while self._first < len(self._free) and not self._free[self._first]:
            self._first += 1
        width = len(letters)
        # Narrow nodes fit nearly anywhere, so their search goes on where it ended.
        start = max(self._first - int(letters[0]), self._hint.get(width, 0), 0)
        while True:
            self._reserve(start + _SEARCHED + int(letters[-1]) + 1)
            fits = self._free[start + letters[0] : start + letters[0] + _SEARCHED]
            for letter in letters[1:]:
                begin = start + int(letter)
                fits = fits & self._free[begin : begin + _SEARCHED]
            if fits.any():
                base = start + int(fits.argmax())
                self._free[base + letters] = False
                self._hint[width] = base
                return base
            start += _SEARCHED

    def take_each(self, count: int, lowest: int) -> np.ndarray:
        """Takes the first free places from `lowest` on."""
        self._reserve(len(self._free) + count + lowest)
        return np.flatnonzero(self._free[lowest:])[:count] + lowest

    def _reserve(self, size: int) -> None:
        """Makes the arrays at least so long."""
        if size > len(self._free):
            more = np.ones(max(size, 2 * len(self._free)) - len(self._free), bool)
            self._free = np.concatenate([self._free, more])
