"""Cleaning, normalising and splitting, with sources."""

import random
import unicodedata

import pytest

from kbert.tokenization.normalizer import Normalizer
from tests.tokenization import google

UNCASED = Normalizer(lowercase=True, strip_accents=True, split_on_cjk=True)
CASED = Normalizer(lowercase=False, strip_accents=False, split_on_cjk=True)
KEEPING = Normalizer(lowercase=True, strip_accents=False, split_on_cjk=True)
STRIPPING = Normalizer(lowercase=False, strip_accents=True, split_on_cjk=True)
WHOLE_CJK = Normalizer(lowercase=True, strip_accents=True, split_on_cjk=False)


def texts(normalizer, text):
    return [word.text for word in normalizer.words(text)]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Unaffable!", ["unaffable", "!"]),
        ("a，b", ["a", "，", "b"]),
        ("a\u00a0b a\u3000b a\u202fb", ["a", "b"] * 3),
        ("a\u2028b\u2029c", ["a", "b", "c"]),
        ("a\x0bb a\x85b a\x1cb a\x00b", ["ab"] * 4),
        ("a\ufffdb a\u200bb a\u00adb \ufeffab", ["ab"] * 4),
        ("a\ue000b", ["a\ue000b"]),
        ("💩💩💩", ["💩💩💩"]),
        ("パンダ", ["ハンタ"]),
        ("한국", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"]),
        ("中文a豈", ["中", "文", "a", "豈"]),
        ("中\u0301a", ["中", "a"]),
        ("\u037e \u1fef ≠", [";", "`", "="]),
        ("#a@b€", ["#", "a", "@", "b€"]),
        ("\u0301 \u200d", []),
        ("", []),
    ],
)
def test_uncased(text, expected):
    assert texts(UNCASED, text) == expected


def test_cased_keeps_everything_but_what_is_dropped():
    assert texts(CASED, "Naïve a\u0301 パ\u200d") == ["Naïve", "a\u0301", "パ"]


def test_accents_are_kept_while_lower_casing():
    assert texts(KEEPING, "Mở BÀI A\u0301") == ["mở", "bài", "a\u0301"]


def test_accents_are_stripped_without_lower_casing():
    assert texts(STRIPPING, "Mở BÀI") == ["Mo", "BAI"]


def test_ideographs_may_stay_together():
    assert texts(WHOLE_CJK, "中文a，豈") == ["中文a", "，", "豈"]


@pytest.mark.parametrize(
    "text",
    [
        "ΟΔΥΣΣΕΥΣ",
        "Σ",
        "aΣ",
        "aΣ.b",
        "aΣ'.",
        "aΣ1",
        "1Σ",
        "ΣΣΣ",
        "a\u0301Σ\u0345",
        "'Σ",
        "a'Σ",
    ],
)
def test_sigma_ends_words_as_in_python(text):
    assert "".join(texts(KEEPING, text)) == text.lower()


def test_sigma_looks_past_dropped_characters_but_not_past_words():
    assert texts(UNCASED, "Α\u00adΣ\x00") == ["ας"]
    assert texts(UNCASED, "ΑΣ\x00Α") == ["ασα"]
    assert texts(UNCASED, "ΑΣ中Σ") == ["ας", "中", "σ"]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("a\u302e\u1b44", "a\u1b44\u302e"),
        ("a\u302e\u0300\u1b44", "a\u1b44\u302e"),
        ("a\u302e\x00\u1b44", "a\u1b44\u302e"),
        ("a\u302e\u034f\u1b44", "a\u302e\u1b44"),  # a joiner of class 0 ends the run
        ("a\u302eb\u1b44", "a\u302eb\u1b44"),
    ],
)
def test_marks_that_stay_are_reordered(text, expected):
    assert texts(UNCASED, text) == [expected]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("é e\u0301x", [("e", [0]), ("ex", [2, 4])]),
        ("\u00adab\u00ad!", [("ab", [1, 2]), ("!", [4])]),
        ("가x", [("\u1100\u1161x", [0, 0, 1])]),
        ("İ", [("i", [0])]),
        ("a\u302e\u1b44", [("a\u1b44\u302e", [0, 2, 1])]),
    ],
)
def test_sources(text, expected):
    assert [tuple(word) for word in UNCASED.words(text)] == expected


def test_against_python_on_random_text():
    generator = random.Random(3)
    pool = [
        c
        for c in map(chr, [*range(0x21, 0x600), *range(0x1E00, 0x2000), 0x302E, 0x1B44])
        if unicodedata.category(c) not in ("Cc", "Cf", "Zs", "Cn")
    ]
    for _ in range(2_000):
        text = "".join(generator.choices(pool, k=generator.randint(1, 12)))
        assert "".join(texts(KEEPING, text)) == text.lower()
        plain = unicodedata.normalize("NFD", text.lower())
        plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
        assert "".join(texts(UNCASED, text)) == plain


@pytest.mark.parametrize("normalizer", [UNCASED, CASED])
def test_every_character_is_googles(normalizer):
    for code in google.assigned_in_unicode_14():
        text = f"a{chr(code)}b"
        expected = google.words(text, uncased=normalizer.lowercase)
        assert texts(normalizer, text) == expected, hex(code)


def test_what_unicode_14_has_not_assigned_is_a_letter_like_any():
    free = set(google.CODES).difference(google.assigned_in_unicode_14())
    assert len(free) == 44_187
    for code in free:
        text = f"a{chr(code)}b"
        expected = list(text) if google.is_ideograph(code) else [text]
        assert texts(UNCASED, text) == texts(CASED, text) == expected, hex(code)


def test_the_stored_borders_are_those_of_unicode_14():
    if unicodedata.unidata_version != "14.0.0":
        pytest.skip("needs Python 3.11, whose Unicode data are frozen")
    assert google.stored_borders() == google.borders()


def test_answers_kept_are_bounded():
    normalizer = Normalizer(True, True, True)
    normalizer.words("".join(map(chr, range(0x20000, 0x21000))))
    normalizer.clean("".join(map(chr, range(0x20000, 0x21000))))
    assert len(normalizer._expanded) == len(normalizer._cleaned) == 0
