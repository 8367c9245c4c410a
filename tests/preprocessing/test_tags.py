import numpy as np
import pandas
import pytest

import kbert
from kbert.preprocessing.tags import check_several_tags, check_target_array, encode_tags
from kbert.preprocessing.words import encode_words, read_words
from tests import tiny

LABELS = ["O", "B-A", "I-A"]
TOKENIZER = kbert.BertTokenizer(tiny.VOCABULARY)
WORDS = [["it", "was", "films"], ["good"]]
ENCODED = encode_words(read_words(WORDS, TOKENIZER), TOKENIZER, 32)
TAGS = [["O", "B-A", "I-A"], ["O"]]


@pytest.mark.parametrize(
    "tags",
    [
        TAGS,
        [tuple(row) for row in TAGS],
        [[tag.encode() for tag in row] for row in TAGS],
        [np.array(row) for row in TAGS],
        [[0, 1, 2], [0]],
        [np.array([0, 1, 2]), np.array([0])],
        pandas.Series(TAGS, index=[4, 2]),
    ],
)
def test_every_kind_of_tags(tags):
    found = encode_tags(tags, LABELS, ENCODED)
    assert found.tolist() == [0, 1, 2, 0] and found.dtype == np.int32


@pytest.mark.parametrize(
    "tags, error, message",
    [
        ([["O"] * 3], ValueError, "2 texts, 1 lists"),
        ([["O"] * 2, ["O"]], ValueError, "3 words and 2 tags in text 0"),
        ([["O"] * 3, ["X"]], ValueError, "'X' as the tag of word 0 in text 1"),
        ([["O", "O", 3], ["O"]], ValueError, "Received: 3 as the tag of word 2"),
        ([[0, 0, -100], [0]], ValueError, "Received: -100"),
        ([[0, 0, True], [0]], TypeError, "Received: True"),
        ([[0, 0, None], [0]], TypeError, "Received: None"),
        ([[0, 0, 1.5], [0]], TypeError, "Received: 1.5"),
        (["OOO", "O"], TypeError, "'OOO' as the tags of text 0"),
        ("O", TypeError, "Received: 'O' of type str"),
        (None, TypeError, "None"),
    ],
)
def test_bad_tags(tags, error, message):
    with pytest.raises(error, match=message):
        encode_tags(tags, LABELS, ENCODED)


def test_a_text_without_words_has_nothing_to_tag():
    encoded = encode_words(read_words(["it", ""], TOKENIZER), TOKENIZER, 32)
    with pytest.raises(ValueError, match="0 words and 0 tags in text 1"):
        encode_tags([["O"], []], LABELS, encoded)


def test_training_needs_two_tags():
    check_several_tags(np.array([0, -1, 1]), LABELS)
    with pytest.raises(ValueError, match="2 words, all of them 'O'"):
        check_several_tags(np.array([0, -1, 0]), LABELS)
    with pytest.raises(ValueError, match="0 words, all of them not scored"):
        check_several_tags(np.array([-1]), LABELS)


def test_targets_of_ready_arrays():
    found = check_target_array([[-100, 2, -1]], LABELS, (1, 3))
    assert found.tolist() == [[-1, 2, -1]] and found.dtype == np.int32
    with pytest.raises(
        ValueError, match=r"\(1, 4\). Received: int64 of shape \(1, 3\)"
    ):
        check_target_array([[0, 0, 0]], LABELS, (1, 4))
    with pytest.raises(ValueError, match="Received: float64"):
        check_target_array([[0.0]], LABELS, (1, 1))
    with pytest.raises(ValueError, match="below 3.*Received: 3"):
        check_target_array([[3]], LABELS, (1, 1))
