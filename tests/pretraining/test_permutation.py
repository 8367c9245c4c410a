"""Orders of many things: each thing once, at any place alone, and no pattern."""

import numpy as np
import pytest

from kbert.pretraining.permutation import Permutation


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 1000, 4097])
def test_everything_comes_once(size):
    found = Permutation(size, [0])(np.arange(size))
    assert sorted(found.tolist()) == list(range(size))


def test_places_are_found_alone():
    order = Permutation(10**12, [1, 2])
    places = np.array([[0, 1], [10**12 - 1, 5 * 10**11]])
    found = order(places)
    assert found.shape == (2, 2) and found.dtype == np.int64
    assert found[1, 0] == order(10**12 - 1) and found.max() < 10**12
    assert len(np.unique(found)) == 4


def test_the_seed_decides():
    places = np.arange(100)
    one = Permutation(100, [1, 2])(places)
    np.testing.assert_array_equal(one, Permutation(100, [1, 2])(places))
    for seed in ([1, 3], [2, 2], [1]):
        assert not np.array_equal(one, Permutation(100, seed)(places))


def test_every_place_is_as_likely():
    # Where 0, 1 and 2 come to stand, over many seeds.
    size, count = 11, 3000
    found = np.array([Permutation(size, [n])(np.arange(3)) for n in range(count)])
    expected = count / size
    for column in found.T:
        seen = np.bincount(column, minlength=size)
        assert ((seen - expected) ** 2 / expected).sum() < 29.6  # 1 in 1000 for 10


def test_neighbours_do_not_stay_neighbours():
    found = Permutation(100_000, [7])(np.arange(100_000))
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.015
    runs = (np.diff(found) == 1).sum()
    assert runs < 8  # one is expected
