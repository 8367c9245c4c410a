"""Words, their pieces and the windows they lie in; no model."""

import numpy as np
import pandas
import pytest

import kbert
from kbert.preprocessing.words import NO_WORD, TEXT_BEGINS, encode_words, read_words
from tests import tiny

TOKENIZER = kbert.BertTokenizer(tiny.VOCABULARY)
WORDS = [["the", "films", "was", "\ufe0f", "good"], ["it"]]


def encoded(words, max_length=32):
    return encode_words(read_words(words, TOKENIZER), TOKENIZER, max_length)


def first_pieces(found, text):
    """The spelling of the first piece of every word of a text."""
    part = slice(*found.word_splits[text : text + 2])
    ids = found.windows.token_ids[found.sources[found.first_pieces[part]]]
    return [TOKENIZER.id_to_piece(int(i)) for i in ids]


def long_words(count, seed=0):
    """Words of one or two pieces, each unlike its neighbours."""
    rng = np.random.default_rng(seed)
    return [word + rng.choice(["", "s"]) for word in rng.choice(tiny.WORDS, count)]


# What is read


@pytest.mark.parametrize(
    "x",
    [
        WORDS,
        [tuple(text) for text in WORDS],
        [[word.encode() for word in text] for text in WORDS],
        [np.array(text) for text in WORDS],
        np.array([np.array(text, object) for text in WORDS], dtype=object),
        pandas.Series(WORDS, index=[7, 5]),
    ],
)
def test_every_kind_of_words(x):
    raw = read_words(x, TOKENIZER)
    assert raw.words == WORDS
    assert raw.texts == [" ".join(text) for text in WORDS]
    for text, words, spans in zip(raw.texts, raw.words, raw.spans, strict=True):
        assert [text[start:end] for start, end in spans] == words


@pytest.mark.parametrize(
    "x", ["Films,  it's a\u00e9 中文!", ["Films,  it's a\u00e9 中文!"]]
)
def test_a_text_is_cut_as_the_tokenizer_cuts(x):
    raw = read_words(x, TOKENIZER)
    assert raw.words == [["Films", ",", "it", "'", "s", "aé", "中", "文", "!"]]
    assert [raw.texts[0][a:b] for a, b in raw.spans[0]] == raw.words[0]


def test_a_word_of_a_text_is_all_of_its_pieces():
    raw = read_words("goods badly", TOKENIZER)
    assert raw.spans == [[(0, 5), (6, 11)]]


def test_a_text_without_words():
    found = encoded(["", "it"])
    assert found.word_splits.tolist() == [0, 0, 1]
    assert found.windows.lengths.tolist() == [2, 3]


@pytest.mark.parametrize(
    "x, error, message",
    [
        ([], ValueError, "at least one text"),
        ([["it"], []], ValueError, "at least one word. Received: none in text 1"),
        ([["it"], "it was"], TypeError, "Received: 'it was' as text 1"),
        ([["it", None]], TypeError, r"None of type NoneType at index \(0, 1\)"),
        ([["it", 3]], TypeError, "3 of type int"),
        ([["it", b"\xff"]], ValueError, "0xff"),
        ((["it"], ["was"]), TypeError, "Received: a tuple"),
        ({"first": ["it"]}, TypeError, "Received: a dict"),
        (["it", None], TypeError, "None"),
        (3, TypeError, "Received: 3 of type int"),
        ((text for text in WORDS), TypeError, "of type generator"),
    ],
)
def test_bad_words(x, error, message):
    with pytest.raises(error, match=message):
        read_words(x, TOKENIZER)


# Pieces


def test_the_first_piece_stands_for_a_word():
    found = encoded(WORDS)
    assert first_pieces(found, 0) == ["the", "film", "was", "[UNK]", "good"]
    assert first_pieces(found, 1) == ["it"]
    assert found.windows.lengths.tolist() == [8, 3]
    assert found.num_split == 0


def test_what_each_token_stands_for():
    words = encoded(WORDS).words_at()
    n, b = NO_WORD, TEXT_BEGINS
    assert words.tolist() == [b, 0, 1, n, 2, 3, 4, n, b, 5, n]


def test_a_window_needs_room():
    with pytest.raises(ValueError, match="at least 3.*Received: 2"):
        encoded(WORDS, 2)


# Windows


@pytest.mark.parametrize("max_length", [3, 4, 5, 8, 11, 32])
@pytest.mark.parametrize("count", [1, 6, 7, 30, 100])
def test_every_piece_of_a_long_text_counts_once(max_length, count):
    words = [long_words(3), long_words(count, seed=1), long_words(5)]
    found, whole = encoded(words, max_length), encoded(words, 1000)
    assert found.windows.lengths.max() <= max_length
    np.testing.assert_array_equal(
        found.windows.token_ids[found.sources], whole.windows.token_ids
    )
    assert len(set(found.sources.tolist())) == len(found.sources)
    np.testing.assert_array_equal(found.first_pieces, whole.first_pieces)
    marks = found.words_at()
    assert sorted(marks[marks >= 0]) == list(range(found.word_splits[-1]))
    assert found.num_windows.sum() == len(found.windows)


def test_a_piece_counts_where_it_sees_most():
    found = encoded([long_words(60)], 18)
    token_window = np.repeat(np.arange(len(found.windows)), found.windows.lengths)
    place = np.arange(found.windows.num_tokens)
    place = place - found.windows.row_splits[:-1][token_window]
    where, window = place[found.sources][1:-1], token_window[found.sources][1:-1]
    sides = np.minimum(where - 1, 16 - where)
    middle = (window > 0) & (window < window.max())
    assert sides[middle].min() >= 3  # a quarter of 16, but for the odd piece
    assert found.num_split == 1 and len(found.windows) > 5


def test_texts_are_selected_with_their_windows():
    words = [long_words(3), long_words(40, seed=1), long_words(5, seed=2)]
    for texts in ([0, 1, 2], [1], [2, 1], [0, 2]):
        some = encoded(words, 9).select(np.array(texts))
        again = encoded([words[i] for i in texts], 9)
        for name in ("num_windows", "row_splits", "sources", "word_splits"):
            np.testing.assert_array_equal(getattr(some, name), getattr(again, name))
        np.testing.assert_array_equal(some.first_pieces, again.first_pieces)
        np.testing.assert_array_equal(some.windows.token_ids, again.windows.token_ids)
