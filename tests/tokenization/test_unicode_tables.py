"""The frozen character tables."""

import importlib.util
import unicodedata

import numpy as np
import pytest

from kbert.tokenization import unicode_tables as unicode
from tests.conftest import PROJECT

SCRIPT = PROJECT / "scripts" / "make_unicode_tables.py"


if SCRIPT.exists():  # a wheel has no scripts

    def test_script_writes_the_same_tables():
        if unicodedata.unidata_version != "14.0.0":
            pytest.skip("needs Python 3.11, whose Unicode data are frozen")
        spec = importlib.util.spec_from_file_location("make_unicode_tables", SCRIPT)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        made = script.make_tables()
        with np.load(unicode._PATH) as stored:
            assert set(stored.files) == set(made)
            for name, array in made.items():
                np.testing.assert_array_equal(stored[name], array, err_msg=name)
                assert stored[name].dtype == array.dtype


@pytest.mark.parametrize(
    "character,kind",
    [
        ("a", unicode.CHARACTER),
        ("\ue000", unicode.CHARACTER),
        ("\U0001f971", unicode.CHARACTER),
        ("\u0378", unicode.CHARACTER),  # unassigned
        ("\ud800", unicode.CHARACTER),
        ("\t", unicode.SPACE),
        ("\u3000", unicode.SPACE),
        ("\u2028", unicode.SPACE),
        ("\x0b", unicode.DROP),
        ("\x85", unicode.DROP),
        ("\x00", unicode.DROP),
        ("\ufffd", unicode.DROP),
        ("\u200d", unicode.DROP),
        ("$", unicode.PUNCTUATION),
        ("\uff0c", unicode.PUNCTUATION),
        ("\u20ac", unicode.CHARACTER),  # only ASCII symbols count as punctuation
        ("中", unicode.IDEOGRAPH),
        ("\uf900", unicode.IDEOGRAPH),
        ("あ", unicode.CHARACTER),
    ],
)
def test_kind(character, kind):
    assert unicode.unicode_tables().kind[ord(character)] == kind


def test_casing():
    casing = unicode.unicode_tables().casing
    assert casing[ord("Σ")] == casing[ord("a")] == unicode.CASED
    assert casing[ord("'")] == casing[ord(".")] == unicode.CASE_IGNORABLE
    assert casing[ord("\u0301")] == unicode.CASE_IGNORABLE
    assert casing[ord("1")] == casing[ord("中")] == 0


def test_decompositions_with_reordering_are_nfd():
    tables = unicode.unicode_tables()
    texts = ["한국 가 힣", "ộ\u0327", "a\u0301\u0316\u0301", "\U0001d160\u0316", "Å≠"]
    for text in texts:
        decomposed = tables.decompose(text)
        ordered = "".join(decomposed[i] for i in tables.reorder(decomposed))
        assert ordered == unicodedata.normalize("NFD", text)


def test_lower_case_of_one_character_may_be_two():
    assert unicode.unicode_tables().lower[ord("İ")] == "i\u0307"


def test_spacing_marks_move():
    marks = unicode.unicode_tables().spacing_marks
    assert "\u302e" in marks and "\u1b44" in marks
    assert "\u0301" not in marks and "a" not in marks
