import numpy as np
import pandas
import pytest

from kbert.preprocessing import choices
from kbert.preprocessing.rows import one_a_row
from tests import tiny

PREPROCESSOR = tiny.preprocessor()
PROMPTS = ["we saw it", "the film was", "it"]
CHOICES = [["good film", "bad"], ["dull", "very very good", "a"], ["was", "we saw"]]


def encoded(prompts=PROMPTS, texts=CHOICES):
    return choices.encode_choices((prompts, texts), PREPROCESSOR)


@pytest.mark.parametrize(
    "x",
    [
        (PROMPTS, CHOICES),
        {"first": PROMPTS, "second": CHOICES},
        (np.array(PROMPTS), pandas.Series(CHOICES)),
        ([p.encode() for p in PROMPTS], [tuple(c) for c in CHOICES]),
        (PROMPTS, [np.array(c) for c in CHOICES]),
    ],
)
def test_every_kind_of_choices(x):
    found = choices.encode_choices(x, PREPROCESSOR)
    np.testing.assert_array_equal(found.texts.token_ids, encoded().texts.token_ids)
    assert found.counts.tolist() == [2, 3, 2] and found.num_choices == 3


def test_every_choice_is_a_pair():
    found = encoded()
    pairs = [(p, c) for p, row in zip(PROMPTS, CHOICES, strict=True) for c in row]
    expected = PREPROCESSOR.encode(tuple(map(list, zip(*pairs, strict=True))))
    np.testing.assert_array_equal(found.texts.token_ids, expected.token_ids)
    np.testing.assert_array_equal(found.texts.second_starts, expected.second_starts)
    lengths = [max(expected.lengths[part]) for part in np.split(range(7), [2, 5])]
    assert found.lengths.tolist() == lengths
    assert (len(found), found.num_texts, found.num_truncated) == (3, 7, 0)


def test_rows_of_padding_stand_for_choices_that_lack():
    found = encoded()
    laid = choices.lay_choices(found, [1, 0], one_a_row(2, 12), pad_id=0)
    assert laid["choice_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert laid["token_ids"].shape == (6, 12)
    assert laid["padding_mask"].any(axis=1).tolist() == [True] * 5 + [False]
    expected = PREPROCESSOR((["we saw it"], ["bad"]))["token_ids"][0]
    row = laid["token_ids"][4]
    assert row[: len(expected)].tolist() == expected.tolist()
    assert not row[len(expected) :].any()


def test_examples_are_selected():
    some = encoded().select(np.array([2, 1]))
    again = encoded([PROMPTS[2], PROMPTS[1]], [CHOICES[2], CHOICES[1]])
    np.testing.assert_array_equal(some.texts.token_ids, again.texts.token_ids)
    np.testing.assert_array_equal(some.splits, again.splits)


@pytest.mark.parametrize(
    "x, error, message",
    [
        (["a", "b"], ValueError, "a list without choices"),
        ((PROMPTS, CHOICES[:2]), ValueError, "3 prompts and 2 lists"),
        (([], []), ValueError, "0 prompts"),
        ((["it"], [[]]), ValueError, r"Received: \[\] as those of prompt 0"),
        ((["it"], [["one"]]), ValueError, "at least 2 choices.*'one'"),
        ((["it"], ["one"]), TypeError, "'one' as those of prompt 0"),
        ((["it"], [["one", None]]), TypeError, "None"),
        (([None], [["one", "two"]]), TypeError, "None"),
        ((["a"], [["b", "c"]], ["d"]), ValueError, "a tuple of 3"),
        (("it", ["one", "two"]), TypeError, "Prompts must be a list"),
    ],
)
def test_bad_choices(x, error, message):
    with pytest.raises(error, match=message):
        choices.encode_choices(x, PREPROCESSOR)


@pytest.mark.parametrize(
    "y, error, message",
    [
        ([0, 1], ValueError, "3 examples, 2 indices"),
        ([0, 3, 0], ValueError, "3. Received: 3 for example 1"),
        ([2, 0, 0], ValueError, "2. Received: 2 for example 0"),
        ([0, -1, 0], ValueError, "hidden.*-1 for example 1"),
        ([0, 1.5, 0], TypeError, "Received: 1.5"),
        ([0, True, 0], TypeError, "Received: True"),
        ([0, "one", 0], TypeError, "Received: 'one'"),
        (1, TypeError, "Received: 1 of type int"),
    ],
)
def test_bad_answers(y, error, message):
    with pytest.raises(error, match=message):
        choices.encode_answers(y, encoded().counts)


def test_answers():
    for y in ([1, 2, 0], np.array([1, 2, 0]), pandas.Series([1, 2, 0])):
        assert choices.encode_answers(y, encoded().counts).tolist() == [1, 2, 0]


# Ready arrays


def arrays():
    found = encoded()
    laid = choices.lay_choices(found, [0, 1, 2], one_a_row(3, 12), pad_id=0)
    names = ("token_ids", "segment_ids", "padding_mask")
    return {name: laid[name].reshape(3, 3, 12) for name in names}


def test_ready_arrays_are_the_texts_again():
    found = choices.choices_of_arrays(arrays())
    for name in ("token_ids", "row_splits", "second_starts"):
        np.testing.assert_array_equal(
            getattr(found.texts, name), getattr(encoded().texts, name)
        )
    np.testing.assert_array_equal(found.splits, encoded().splits)


@pytest.mark.parametrize(
    "name, index, value, message",
    [
        ("padding_mask", (0, 0, 0), 0, "padding_mask.*first position"),
        ("padding_mask", (0, 2, 0), 1, None),
        ("padding_mask", (1, 0), 0, "choices must come before"),
        ("padding_mask", (0, 1), 0, "at least 2 choices.*1 in example 0"),
        ("segment_ids", (0, 0, 0), 1, "segment_ids.*0, then 1"),
    ],
)
def test_ready_arrays_that_are_no_texts(name, index, value, message):
    changed = arrays()
    changed[name][index] = value
    if message is None:
        assert choices.choices_of_arrays(changed).counts.tolist() == [3, 3, 2]
        return
    with pytest.raises(ValueError, match=message):
        choices.choices_of_arrays(changed)
