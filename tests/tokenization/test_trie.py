"""The double-array trie."""

import random

import numpy as np

from kbert.tokenization.trie import CONTINUATION_ROOT, ROOT, build_trie


def walk(trie, root, letters):
    """Returns the id at the end of a walk, -1 where it stops before."""
    state = root
    for letter in letters:
        target = trie.base[state] + letter
        if trie.check[target] != state:
            return -1
        state = target
    return trie.ids[state]


def test_finds_what_was_put_in_and_nothing_else():
    generator = random.Random(1)
    num_letters = 300
    pieces = {}
    for index in range(3_000):
        letters = tuple(generator.choices(range(12), k=generator.randint(1, 6)))
        pieces[generator.choice((ROOT, CONTINUATION_ROOT)), letters] = index
    for letter in range(num_letters):
        pieces[ROOT, (letter,)] = 3_000 + letter
    trie = build_trie(((r, k, i) for (r, k), i in pieces.items()), num_letters)
    for (root, letters), index in pieces.items():
        assert walk(trie, root, letters) == index
    for _ in range(5_000):
        letters = tuple(generator.choices(range(num_letters), k=3))
        for root in (ROOT, CONTINUATION_ROOT):
            assert walk(trie, root, letters) == pieces.get((root, letters), -1)


def test_every_letter_from_every_state_stays_inside():
    trie = build_trie([(ROOT, [9], 0), (CONTINUATION_ROOT, [0, 5], 1)], 10)
    assert trie.base.max() + 10 <= len(trie.check)
    assert trie.base.dtype == trie.check.dtype == trie.ids.dtype == np.int32


def test_the_last_of_equal_pieces_counts():
    trie = build_trie([(ROOT, [1], 3), (ROOT, [1], 8)], 2)
    assert walk(trie, ROOT, [1]) == 8


def test_without_pieces():
    trie = build_trie([], 4)
    assert [walk(trie, ROOT, [letter]) for letter in range(4)] == [-1] * 4
