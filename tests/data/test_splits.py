import numpy as np
import pytest

from kbert.data.splits import Duplicate, duplicates_across, stratified_split


def test_every_class_has_its_share():
    labels = np.repeat(["a", "b", "c"], [600, 300, 100])
    learn, held_out = stratified_split(labels, 0.1, seed=1)
    assert sorted([*learn, *held_out]) == list(range(1000))
    assert np.unique(labels[held_out], return_counts=True)[1].tolist() == [60, 30, 10]


def test_the_size_of_the_held_out_part_is_exact():
    labels = np.repeat([0, 1, 2], [7403, 5405, 3])
    for number in (1500, 1501, 1502):
        assert len(stratified_split(labels, number / 12811, seed=0)[1]) == number


def test_a_rare_class_stands_in_both_parts():
    labels = ["often"] * 100 + ["rare"] * 2
    for fraction in (0.01, 0.99):
        for part in stratified_split(labels, fraction, seed=0):
            assert {labels[index] for index in part} == {"often", "rare"}


def test_the_seed_decides():
    labels = ["a", "b"] * 500
    first, again, other = (
        stratified_split(labels, 0.3, seed)[1].tolist() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert first[:5] == [5, 7, 8, 9, 10]  # on every machine and version of numpy


def test_a_class_with_one_row_is_named():
    with pytest.raises(ValueError, match=r"3 rows, with one row only for \['b'\]"):
        stratified_split(["a", "a", "b"], 0.5, seed=0)


def test_no_rows():
    with pytest.raises(ValueError, match="0 rows"):
        stratified_split([], 0.5, seed=0)


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1])
def test_a_fraction_out_of_range(fraction):
    with pytest.raises(ValueError, match=f"fraction={fraction}"):
        stratified_split(["a", "a"], fraction, seed=0)


def test_duplicates_are_counted_in_each_part():
    first = ["One.", "two", "two", "three"]
    second = ["one.", "TWO", " two ", "t wo"]
    assert duplicates_across(first, second) == [
        Duplicate("One.", 1, 1),
        Duplicate("two", 2, 2),
    ]


def test_a_pair_is_the_same_only_in_both_its_texts():
    first = [("a", "b"), ("c", "d")]
    assert duplicates_across(first, [("A", "x"), ("C ", "d")]) == [
        Duplicate(("c", "d"), 1, 1)
    ]
