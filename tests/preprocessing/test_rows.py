import itertools
import time

import numpy as np
import pytest

from kbert.preprocessing.rows import (
    PositionValues,
    best_fit,
    collect,
    lay,
    lay_values,
    one_a_row,
)
from tests.preprocessing import toy
from tests.preprocessing.placements import check_placement

RNG = np.random.default_rng(0)
# Name: lengths and the width of a row.
CASES = {
    "short": (RNG.integers(3, 20, 200), 64),
    "skewed": (np.minimum(3 + RNG.geometric(0.04, 300), 128), 128),
    "of every length": (RNG.integers(1, 65, 300), 64),
    "long": (RNG.integers(33, 65, 50), 64),
    "of two lengths": (np.repeat([20, 44, 20], 30), 64),
    "of one length": (np.full(50, 13), 64),
    "as wide as a row": (np.full(5, 64), 64),
    "one": (np.array([7]), 64),
}
SPEED = 1_000_000 / 60  # texts a second


# Best fit.


def rooms_left(lengths, width, pick):
    """Pack longest first into the row that `pick` chooses; return what stays free."""
    rooms = []
    for length in sorted(lengths, reverse=True):
        fitting = [row for row, room in enumerate(rooms) if room >= length]
        if not fitting:
            fitting = [len(rooms)]
            rooms.append(width)
        rooms[pick(fitting, rooms)] -= length
    return rooms


def fullest(fitting, rooms):
    return min(fitting, key=rooms.__getitem__)


def foremost(fitting, rooms):
    return fitting[0]


def rooms_of(placement, lengths):
    used = np.bincount(placement.rows, lengths, placement.num_rows)
    return sorted((placement.width - used).astype(int).tolist())


@pytest.mark.parametrize("case", CASES)
def test_texts_lie_in_rows_apart_and_numbered(case):
    lengths, width = CASES[case]
    placement = best_fit(lengths, width)
    check_placement(placement, lengths)
    assert sorted(set(placement.rows)) == list(range(placement.num_rows))


@pytest.mark.parametrize("case", CASES)
def test_rows_are_as_few_and_as_full_as_a_slow_search_makes_them(case):
    lengths, width = CASES[case]
    placement = best_fit(lengths, width)
    best = rooms_left(lengths, width, fullest)
    assert placement.num_rows == len(best)
    assert rooms_of(placement, lengths) == sorted(best)
    assert placement.num_rows <= len(rooms_left(lengths, width, foremost))


def test_a_text_goes_where_it_leaves_least_room():
    placement = best_fit([1, 4, 3, 4, 3, 3], 10)
    assert placement.rows.tolist() == [1, 0, 1, 0, 1, 1]
    assert placement.starts.tolist() == [9, 0, 0, 4, 3, 6]
    assert placement.numbers.tolist() == [4, 1, 1, 2, 2, 3]


def test_best_fit_takes_any_sequence_of_lengths():
    for lengths in ([3, 5, 2], (3, 5, 2), np.array([3, 5, 2], np.int32)):
        assert best_fit(lengths, width=8).rows.tolist() == [0, 0, 1]


def test_best_fit_of_no_texts():
    placement = best_fit([], 8)
    check_placement(placement, [])
    assert (placement.num_rows, placement.width) == (0, 8)


def test_text_longer_than_a_row():
    with pytest.raises(ValueError, match="a text of 9 tokens, width=8"):
        best_fit([3, 9, 8], 8)


def test_best_fit_of_a_million_texts_a_minute():
    lengths = np.minimum(3 + np.random.default_rng(0).geometric(0.04, 50_000), 128)

    def seconds(batch_size):
        began = time.perf_counter()
        for at in range(0, len(lengths), batch_size):
            best_fit(lengths[at : at + batch_size], 128)
        return time.perf_counter() - began

    for batch_size in (len(lengths), 32):
        fastest = min(seconds(batch_size) for _ in range(3))
        assert len(lengths) / fastest > SPEED


# A part of a placement.


def test_selected_texts_keep_their_places_in_other_rows():
    placement = best_fit([4, 5, 3, 6], 8)
    assert placement.rows.tolist() == [2, 1, 1, 0]
    part = placement.select(np.array([2, 0, 1]), np.array([1, 0, 1]), 3)
    assert part.rows.tolist() == [1, 0, 1]
    assert part.starts.tolist() == [5, 0, 0]
    assert part.numbers.tolist() == [2, 1, 1]
    assert (part.num_rows, part.width) == (3, 8)


def test_one_a_row():
    placement = one_a_row(3, 8)
    check_placement(placement, [8, 8, 8])
    assert (placement.num_rows, placement.width) == (3, 8)


# Laying.


def test_texts_one_a_row():
    rows = lay(toy.encoded([6, 4, 3]), [2, 0], one_a_row(2, 7), pad_id=9)
    assert {array.dtype.name for array in rows.values()} == {"int32"}
    first, second = rows["token_ids"].tolist()
    assert (first[0], first[2], first[3:]) == (1, 2, [9, 9, 9, 9])
    assert (second[0], second[5], second[6:]) == (1, 2, [9])
    assert rows["padding_mask"].tolist() == [
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 0],
    ]
    assert rows["segment_ids"].tolist() == [[0] * 7, [0, 0, 0, 0, 1, 1, 0]]
    assert rows["first_positions"].tolist() == [0, 7]


def test_texts_several_a_row():
    encoded = toy.encoded([6, 4, 3])  # the first is a pair
    rows = lay(encoded, [0, 1, 2], best_fit([6, 4, 3], 9), pad_id=9)
    ids = [part.tolist() for part in np.split(encoded.token_ids, [6, 10])]
    assert rows["token_ids"].tolist() == [ids[0] + ids[2], ids[1] + [9] * 5]
    assert rows["padding_mask"].tolist() == [[1] * 6 + [2] * 3, [1] * 4 + [0] * 5]
    assert rows["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0, 0], [0] * 9]
    assert rows["first_positions"].tolist() == [0, 9, 6]


def test_laid_rows_hold_the_texts_and_nothing_else():
    lengths = np.minimum(3 + np.random.default_rng(1).geometric(0.07, 75), 60)
    encoded = toy.encoded(lengths)
    chosen = np.random.default_rng(2).permutation(75)[:40]
    placement = best_fit(lengths[chosen], 64)
    rows = lay(encoded, chosen, placement, pad_id=77)
    assert {array.dtype.name for array in rows.values()} == {"int32"}
    flat = {key: array.reshape(-1) for key, array in rows.items()}
    assert len(flat["token_ids"]) == 64 * placement.num_rows
    firsts = flat.pop("first_positions")
    assert (flat["token_ids"][firsts] == 1).all()  # [CLS]
    pad = np.ones(64 * placement.num_rows, bool)
    for text, first, number in zip(chosen, firsts, placement.numbers, strict=True):
        begin, end = encoded.row_splits[text : text + 2]
        at = slice(first, first + end - begin)
        second = encoded.second_starts[text]
        ids = encoded.token_ids[begin:end].tolist()
        segments = [int(place >= second) for place in range(end - begin)]
        assert flat["token_ids"][at].tolist() == ids
        assert flat["segment_ids"][at].tolist() == segments
        assert (flat["padding_mask"][at] == number).all()
        pad[at] = False
    assert set(flat["segment_ids"]) == {0, 1}
    assert set(flat["token_ids"][pad]) == {77}
    for key in ("segment_ids", "padding_mask"):
        assert not flat[key][pad].any()


def test_neighbours_in_a_row_bear_different_numbers():
    lengths = np.full(12, 5)
    mask = lay(toy.encoded(lengths), range(12), best_fit(lengths, 32), 0)
    for row in mask["padding_mask"]:
        runs = [number for number, _ in itertools.groupby(row.tolist())]
        assert runs == [1, 2, 3, 4, 5, 6, 0]


def test_a_text_laid_twice_at_its_place_is_there_once():
    encoded = toy.encoded([6, 4, 3])
    placement = best_fit([6, 4, 3], 9)
    once = lay(encoded, [0, 1, 2], placement, pad_id=9)
    twice = np.array([0, 1, 2, 2, 0])
    again = lay(
        encoded, twice, placement.select(twice, placement.rows[twice], 2), pad_id=9
    )
    firsts = again.pop("first_positions")
    assert firsts.tolist() == [0, 9, 6, 6, 0]
    for key, array in again.items():
        np.testing.assert_array_equal(array, once[key])


def test_empty_rows_are_padding():
    placement = one_a_row(2, 7)
    placement = placement.select(np.arange(2), np.array([0, 2]), 4)
    rows = lay(toy.encoded([6, 4]), [0, 1], placement, pad_id=9)
    assert rows["first_positions"].tolist() == [0, 14]
    assert (rows["token_ids"][[1, 3]] == 9).all()
    assert not rows["padding_mask"][[1, 3]].any()


@pytest.mark.parametrize("place", [one_a_row, lambda count, width: best_fit([], width)])
def test_no_text_laid(place):
    rows = lay(toy.encoded([6]), [], place(0, 7), pad_id=9)
    assert rows["token_ids"].shape == (0, 7)
    assert rows["first_positions"].shape == (0,)


def test_row_narrower_than_its_text():
    with pytest.raises(ValueError, match="6 tokens, width=5"):
        lay(toy.encoded([6]), [0], one_a_row(1, 5), pad_id=0)


# What belongs to tokens.


def numbered(encoded):
    """A number of its own for every token of the texts, from 1."""
    values = np.arange(1, encoded.num_tokens + 1)
    return PositionValues(values, encoded.row_splits, fill=-1)


@pytest.mark.parametrize(
    "pack", [best_fit, lambda lengths, w: one_a_row(len(lengths), w)]
)
def test_values_lie_beside_their_tokens(pack):
    encoded = toy.encoded([3, 7, 5, 2])
    indices = np.array([3, 0, 2])
    placement = pack(encoded.lengths[indices], 8)
    inputs = lay(encoded, indices, placement, pad_id=0)
    laid = lay_values(numbered(encoded), indices, placement)
    assert laid.shape == inputs["token_ids"].shape
    assert ((laid == -1) == (inputs["padding_mask"] == 0)).all()
    there = laid > 0
    np.testing.assert_array_equal(
        encoded.token_ids[laid[there] - 1], inputs["token_ids"][there]
    )


def test_values_a_text_are_chosen():
    placement = one_a_row(2, 4)
    laid = lay_values(np.array([[1, 2], [3, 4], [5, 6]]), [2, 0], placement)
    assert laid.tolist() == [[5, 6], [1, 2]]


def test_values_are_selected_as_texts_are():
    encoded = toy.encoded([3, 7, 5, 2])
    some = numbered(encoded)[[2, 0]]
    assert some.values.tolist() == [11, 12, 13, 14, 15, 1, 2, 3]
    assert (len(some), some.row_splits.tolist(), some.fill) == (2, [0, 5, 8], -1)


def test_outputs_are_collected_from_rows():
    encoded = toy.encoded([3, 7, 5, 2])
    batches = [np.array([1, 3]), np.array([0, 2])]
    planned = [(some, best_fit(encoded.lengths[some], 9)) for some in batches]
    laid = [lay_values(numbered(encoded), *batch) for batch in planned]
    outputs = np.stack([np.concatenate(laid)] * 2, axis=-1)
    collected = collect(outputs, encoded.row_splits, planned)
    np.testing.assert_array_equal(collected[:, 1], numbered(encoded).values)
