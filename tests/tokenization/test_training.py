"""Vocabularies that are learnt: their layout, their words, and that they come again."""

import random
import sys

import pytest

import kbert
from kbert.tokenization.normalizer import Normalizer
from kbert.tokenization.training import count_words, learn_vocabulary

TEXTS = [
    "The lower the lowest, the newer the newest: widest!",
    "lower lowest newer newest wider widest low new wide",
    "Ünïcode and caf\u00e9s; the caf\u00e9 of \u6771\u4eac and \u4eac.",
] * 20
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_the_layout_is_googles():
    pieces = learn_vocabulary(TEXTS, 80, unused=3).pieces
    assert pieces[:8] == [SPECIAL[0], *(f"[unused{n}]" for n in range(3)), *SPECIAL[1:]]
    rest = pieces[8:]
    alphabet = [piece for piece in rest if len(piece) == 1]
    assert alphabet == sorted(alphabet) == rest[: len(alphabet)]
    continuations = rest[len(alphabet) : 2 * len(alphabet)]
    assert continuations == [f"##{character}" for character in alphabet]
    assert all(len(p.removeprefix("##")) > 1 for p in rest[2 * len(alphabet) :])
    assert len(pieces) == len(set(pieces)) == 80
    assert {"the", "low", "new"} <= set(rest)


def test_no_known_character_is_unknown():
    # Case 26: also one that only began words.
    tokenizer = kbert.BertTokenizer(learn_vocabulary(TEXTS, 90).pieces)
    assert "[UNK]" not in tokenizer.tokenize(" ".join(TEXTS))
    assert tokenizer.tokenize("xtxu")[1:] != tokenizer.tokenize("[UNK]")
    assert "[UNK]" not in tokenizer.tokenize("wow stun tut")


def test_the_words_are_those_of_the_tokenizer():
    texts = [
        *TEXTS,
        "a\x1fb\u00a0c\u2028d A\u0301B\ufffd don't \u1e9e \x0c\u200bx \ud800",
    ]
    for lowercase in (True, False):
        normalizer = Normalizer(lowercase, lowercase, True)
        expected = {}
        for text in texts:
            for word in normalizer.words(text):
                expected[word.text] = expected.get(word.text, 0) + 1
        assert count_words(texts, normalizer) == expected


def test_many_different_words_are_counted_in_turns(monkeypatch):
    from kbert.tokenization import training

    normalizer = Normalizer(True, True, True)
    expected = count_words(TEXTS, normalizer)
    monkeypatch.setattr(training, "_MOST_TOKENS", 3)
    assert count_words(TEXTS, normalizer) == expected


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_order_does_not_matter(seed):
    words = [f"{a}{b}{c}" for a in "abcd" for b in "efgh" for c in "ijkl"]
    texts = words * 3  # all as frequent: nothing but ties
    expected = learn_vocabulary(texts, 90).pieces
    random.Random(seed).shuffle(texts)
    assert learn_vocabulary(texts, 90).pieces == expected
    assert len(expected) == 90


def test_case_and_accents():
    pieces = learn_vocabulary(TEXTS, 120).pieces
    assert "\u00fc" not in pieces and "T" not in pieces and "\u6771" in pieces
    pieces = learn_vocabulary(TEXTS, 120, lowercase=False).pieces
    assert {"T", "\u00dc", "\u00e9"} <= set(pieces)
    pieces = learn_vocabulary(TEXTS, 120, strip_accents=False).pieces
    assert {"\u00fc", "\u00e9"} <= set(pieces) and "T" not in pieces


def test_rare_pairs_are_left_apart():
    assert "xy" not in learn_vocabulary(["xy", "ab", "ab"], 100).pieces
    assert "xy" in learn_vocabulary(["xy", "ab", "ab"], 100, min_frequency=1).pieces


def test_a_small_alphabet_leaves_words_out():
    learned = learn_vocabulary(["aaa aab aac", "d" * 201], 40, max_characters=2)
    assert learned.characters == 2 and learned.left_out == 3
    assert {"a", "d"} <= set(learned.pieces)
    assert learned.lines()[-1].startswith("Left out 3 words")


def test_literal_special_tokens_are_text():
    pieces = learn_vocabulary(["[MASK] is not ##mask"] * 5, 60).pieces
    assert pieces.count("[MASK]") == 1 and "mask" in pieces and "#" in pieces


def test_half_a_character_is_in_no_alphabet():
    # A JSON file may spell it.
    learned = learn_vocabulary(["ab\ud800 ab", "ab"], 30)
    assert learned.left_out == 1 and "ab" in learned.pieces


def test_what_cannot_be_learnt(monkeypatch):
    with pytest.raises(ValueError, match="at least one word. Received: none"):
        learn_vocabulary(["", " \u00a0\x00"], 100)
    with pytest.raises(ValueError, match=r"the 3 characters twice, 11 .*: size=10"):
        learn_vocabulary(["abc"], 10)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"tokenizers.*keras-kbert\[pretrain\]"):
        learn_vocabulary(["abc"], 30)
