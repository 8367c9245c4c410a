"""Frozen character properties: those of Unicode 14, as Python 3.11 reports them.

Google's `tokenization.py` asks the running Python, so that its ids change with the
Python version. kbert reads one file instead, which
`scripts/make_unicode_tables.py` wrote; every executor is built from it.
"""

import dataclasses
import functools
import pathlib

import numpy as np

# The part a character plays when a text is cleaned and split (`UnicodeTables.kind`).
CHARACTER, SPACE, PUNCTUATION, IDEOGRAPH, DROP = range(5)
# What a character tells about the end of a word (`UnicodeTables.casing`).
CASED, CASE_IGNORABLE = 1, 2
NUM_CODE_POINTS = 0x110000
CAPITAL_SIGMA, FINAL_SIGMA = "\u03a3", "\u03c2"

_PATH = pathlib.Path(__file__).with_name("unicode_14.npz")
# Hangul syllables are decomposed by arithmetic (Unicode standard, section 3.12).
_HANGUL, _LEADING, _VOWEL, _TRAILING = 0xAC00, 0x1100, 0x1161, 0x11A7
_NUM_HANGUL, _NUM_VOWELS, _NUM_TRAILING = 11172, 21, 28


@dataclasses.dataclass(frozen=True)
class UnicodeTables:
    """Character properties by code point; tables of `bytes` are 0x110000 long.

    Args:
        kind: CHARACTER, SPACE, PUNCTUATION, IDEOGRAPH or DROP.
        combining: the canonical combining class; 0 for a character that starts anew.
        nonspacing: 1 for category Mn, the marks that accent stripping removes.
        casing: CASED, CASE_IGNORABLE or 0, as `str.lower` sees it.
        spacing_marks: the characters with a combining class that are not of category
            Mn; the only ones whose canonical order outlives accent stripping.
        lower: code point to lower-case string, where they differ.
        decomposition: code point to canonical decomposition, where they differ.
    """

    kind: bytes
    combining: bytes
    nonspacing: bytes
    casing: bytes
    spacing_marks: frozenset[str]
    lower: dict[int, str]
    decomposition: dict[int, str]

    def decompose(self, text: str) -> str:
        """Replaces every character by its canonical decomposition, not reordered."""
        return "".join(self.decomposition.get(ord(c), c) for c in text)

    def reorder(self, text: str) -> list[int]:
        """Finds the canonical order of combining marks (Unicode standard, 3.11).

        Args:
            text: a decomposed string.

        Returns:
            For every place in the ordered string, the index in `text` to take.
        """
        classes = [self.combining[ord(c)] for c in text]
        # Sorted by run of marks, then class; `sorted` is stable, as the rule asks.
        keys, run = [], 0
        for combining in classes:
            run += combining == 0
            keys.append((run, combining))
        return sorted(range(len(text)), key=keys.__getitem__)


@functools.cache
def unicode_tables() -> UnicodeTables:
    """Reads the tables, once a process (about 20 ms)."""
    with np.load(_PATH) as arrays:
        kind, combining, nonspacing, casing = (
            _unpack_runs(arrays[f"{name}_starts"], arrays[f"{name}_values"])
            for name in ("kind", "combining", "nonspacing", "casing")
        )
        lower, decomposition = (
            _unpack_mapping(
                *(arrays[f"{name}_{part}"] for part in ("codes", "lengths", "text"))
            )
            for name in ("lower", "decomposition")
        )
    decomposition.update(_hangul_decompositions())
    return UnicodeTables(
        kind=kind.tobytes(),
        combining=combining.tobytes(),
        nonspacing=nonspacing.tobytes(),
        casing=casing.tobytes(),
        spacing_marks=frozenset(
            map(chr, np.flatnonzero((combining > 0) & (nonspacing == 0)))
        ),
        lower=lower,
        decomposition=decomposition,
    )


def _unpack_runs(starts, values) -> np.ndarray:
    """Turns a run-length table into one byte a code point."""
    lengths = np.diff(np.append(starts, NUM_CODE_POINTS))
    return np.repeat(values, lengths)


def _unpack_mapping(codes, lengths, text) -> dict[int, str]:
    """Turns code points, string lengths and joined strings into a dictionary."""
    joined = text.astype("<u4").tobytes().decode("utf-32-le")
    ends = np.cumsum(lengths, dtype=np.int64)
    spans = zip(codes.tolist(), (ends - lengths).tolist(), ends.tolist(), strict=True)
    return {code: joined[start:end] for code, start, end in spans}


def _hangul_decompositions() -> dict[int, str]:
    """Decomposes all Hangul syllables into their leading, vowel and trailing jamo."""
    decompositions = {}
    for index in range(_NUM_HANGUL):
        rest, trailing = divmod(index, _NUM_TRAILING)
        leading, vowel = divmod(rest, _NUM_VOWELS)
        jamo = chr(_LEADING + leading) + chr(_VOWEL + vowel)
        if trailing:
            jamo += chr(_TRAILING + trailing)
        decompositions[_HANGUL + index] = jamo
    return decompositions
