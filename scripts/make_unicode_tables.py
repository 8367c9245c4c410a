"""Writes kbert/tokenization/unicode_14.npz from Python 3.11's Unicode 14 data.

Google's `tokenization.py` asks the running Python for character properties, so its
ids depend on the Python version (Python 3.10, 3.11 and 3.12 disagree on some 240 code
points). kbert freezes the answers of Python 3.11 in one small file.

    python3.11 scripts/make_unicode_tables.py
"""

import pathlib
import sys
import unicodedata

import numpy as np

PATH = (
    pathlib.Path(__file__).resolve().parents[1]
    / "kbert"
    / "tokenization"
    / "unicode_14.npz"
)
UNICODE_VERSION = "14.0.0"
# The numbers that kbert/tokenization/unicode_tables.py names.
CHARACTER, SPACE, PUNCTUATION, IDEOGRAPH, DROP = range(5)
CASED, CASE_IGNORABLE = 1, 2
# The blocks in `_is_chinese_char` of google-research/bert.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
HANGUL = range(0xAC00, 0xAC00 + 11172)  # decomposed by arithmetic, not by table


def kind(character):
    """The part a character plays in cleaning and splitting."""
    category, code = unicodedata.category(character), ord(character)
    if character in "\t\n\r" or category == "Zs":
        return SPACE
    if code in (0, 0xFFFD) or category in ("Cc", "Cf"):
        return DROP
    if character.isspace():  # U+2028 and U+2029: kept by cleaning, cut by `split`
        return SPACE
    if any(first <= code <= last for first, last in IDEOGRAPHS):
        return IDEOGRAPH
    is_ascii_symbol = 33 <= code < 127 and not character.isalnum()
    if is_ascii_symbol or category.startswith("P"):
        return PUNCTUATION
    return CHARACTER


def casing(character):
    """What `str.lower` sees when it looks for the end of a word beside a sigma.

    The properties are not in `unicodedata`; `str.lower` itself tells them.
    """
    if (character + "Σ").lower().endswith("ς"):
        return CASED
    if ("A" + character + "Σ").lower().endswith("ς"):
        return CASE_IGNORABLE
    return 0


def runs(values):
    """Run-length form of one value a code point: where runs start, and the values."""
    values = np.asarray(values, np.uint8)
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    return starts.astype(np.uint32), values[starts]


def mapping(pairs):
    """A table of strings: the code points, each string's length, all strings."""
    codes = np.array([code for code, _ in pairs], np.uint32)
    lengths = np.array([len(text) for _, text in pairs], np.uint8)
    joined = "".join(text for _, text in pairs)
    return codes, lengths, np.frombuffer(joined.encode("utf-32-le"), np.uint32)


def make_tables():
    """Returns the arrays of the file, by name."""
    characters = [chr(code) for code in range(0x110000)]
    tables = {}
    for name, values in {
        "kind": [kind(c) for c in characters],
        "combining": [unicodedata.combining(c) for c in characters],
        "nonspacing": [unicodedata.category(c) == "Mn" for c in characters],
        "casing": [casing(c) for c in characters],
    }.items():
        tables[f"{name}_starts"], tables[f"{name}_values"] = runs(values)
    changes = {
        "lower": [(c, c.lower()) for c in characters],
        "decomposition": [
            (c, unicodedata.normalize("NFD", c))
            for c in characters
            if ord(c) not in HANGUL
        ],
    }
    for name, pairs in changes.items():
        pairs = [(ord(c), text) for c, text in pairs if c != text]
        parts = zip(("codes", "lengths", "text"), mapping(pairs), strict=True)
        tables.update({f"{name}_{part}": array for part, array in parts})
    return tables


if __name__ == "__main__":
    if unicodedata.unidata_version != UNICODE_VERSION:
        sys.exit(
            f"The tables must come from Unicode {UNICODE_VERSION} (Python 3.11). "
            f"Received: Unicode {unicodedata.unidata_version}."
        )
    np.savez_compressed(PATH, **make_tables())
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")
