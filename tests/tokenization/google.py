"""Google's rule for words, told again by the standard library: an oracle for tests.

It is Google's under Python 3.11, whose Unicode 14 has not assigned what is listed in
the file that this program writes:

    python3.11 tests/tokenization/google.py
"""

import itertools
import json
import pathlib
import string
import unicodedata

import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "goldens" / "unassigned_14.json"

# Letters, marks, symbols, the borders of every block, and what is beyond the first
# plane; not the inside of the blocks of ideographs and Hangul, which are all alike.
CODES = list(
    itertools.chain(
        range(0x3400),
        range(0xA000, 0xAC20),
        range(0xD7A0, 0xD800),
        range(0xE000, 0x20010),
        range(0x2F800, 0x2FA20),
        range(0xE0000, 0xE0200),
    )
)
BLOCKS = "4E00-9FFF 3400-4DBF 20000-2A6DF 2A700-2B81F 2B820-2CEAF F900-FAFF 2F800-2FA1F"
IDEOGRAPHS = [[int(end, 16) for end in block.split("-")] for block in BLOCKS.split()]


def words(text, uncased):
    """The words of a text as BasicTokenizer of google-research/bert has them."""
    tokens = "".join(map(_clean, text)).split()
    if uncased:
        lower = (unicodedata.normalize("NFD", token.lower()) for token in tokens)
        tokens = [
            "".join(c for c in token if unicodedata.category(c) != "Mn")
            for token in lower
        ]
    return "".join(f" {c} " if _alone(c) else c for c in " ".join(tokens)).split()


def _clean(character):
    category = unicodedata.category(character)
    if category == "Zs" or character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or category in ("Cc", "Cf"):
        return ""
    return f" {character} " if is_ideograph(ord(character)) else character


def is_ideograph(code):
    """Whether a code point lies in Google's blocks, assigned or not."""
    return any(first <= code <= last for first, last in IDEOGRAPHS)


def _alone(character):
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


def assigned_in_unicode_14():
    """Those of `CODES` for which every Python from 3.11 on has the same answer."""
    places = np.searchsorted(stored_borders(), CODES, side="right")
    return [code for code, place in zip(CODES, places, strict=True) if place % 2 == 0]


def stored_borders():
    """What `borders` returned under Python 3.11."""
    return json.loads(PATH.read_text())


def borders():
    """The code points, in order, at which runs of unassigned ones begin and end."""
    free = [unicodedata.category(chr(code)) == "Cn" for code in CODES]
    return [
        code
        for code, before, now in zip(CODES, [False, *free], free, strict=False)
        if before != now
    ]


if __name__ == "__main__":
    PATH.write_text(json.dumps(borders()))
