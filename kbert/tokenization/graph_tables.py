"""The tables of the in-graph executor, made with numpy from the Python one.

Characters become *units*, small integers that the trie takes as letters. Unit 0 is
white space; the units up to `last_lone` are words of their own; the others build
words. All characters that the vocabulary does not know share a few units.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbert.tokenization import unicode_tables as unicode
from kbert.tokenization.normalizer import Normalizer
from kbert.tokenization.trie import CONTINUATION_ROOT, ROOT, Trie, build_trie

SPACE = 0
_PAGE_BITS = 7


class PagedTable(NamedTuple):
    """A table by code point in which equal pages are stored once.

    Args:
        page: int32, by code point >> 7, the first index of its page in `values`.
        values: int32, the pages one after another.
    """

    page: np.ndarray
    values: np.ndarray

    @classmethod
    def pack(cls, table: np.ndarray) -> "PagedTable":
        """Finds the equal pages of a table by code point."""
        pages = table.astype(np.int32).reshape(-1, 1 << _PAGE_BITS)
        index: dict[bytes, int] = {}
        page = [index.setdefault(row.tobytes(), len(index)) for row in pages]
        values = np.frombuffer(b"".join(index), np.int32)
        return cls(np.array(page, np.int32) << _PAGE_BITS, values)


class GraphTables(NamedTuple):
    """Everything that the graph looks up.

    Args:
        symbols: by code point: a unit, or `num_units` + the index of an expansion.
            Code points beyond Unicode are the special tokens.
        num_units: the number of units; the unit `num_units` marks a stripped mark
            that ends a run of combining marks.
        last_lone: the last unit that is a word of its own.
        expansion_starts: int32, where each expansion starts in `expansion_units`.
        expansion_units: int32, the units of all expansions.
        combining: int32 (num_units + 1,), combining classes.
        casing: by code point, what `str.lower` sees beside a sigma.
        trie: of the vocabulary, by units.
    """

    symbols: PagedTable
    num_units: int
    last_lone: int
    expansion_starts: np.ndarray
    expansion_units: np.ndarray
    combining: np.ndarray
    casing: PagedTable
    trie: Trie


def build_tables(
    piece_ids: dict[str, int], normalizer: Normalizer, special_ids: Sequence[int]
) -> GraphTables:
    """Makes the tables.

    Args:
        piece_ids: the id of every piece.
        normalizer: the rule.
        special_ids: the special tokens that are cut out of a text; the n-th is the
            code point 0x110000 + n.

    Returns:
        The tables; their size follows the vocabulary, about 2 MB for 30,522 pieces.
    """
    units = _Units(piece_ids, normalizer, len(special_ids))
    pieces = [
        (root, letters, index)
        for piece, index in piece_ids.items()
        for root, letters in [_spell(piece, units.unit_of)]
        if letters
    ]
    specials = zip(units.specials, special_ids, strict=True)
    pieces += [(ROOT, [unit], index) for unit, index in specials]
    symbols, starts, expanded = _expand_all(units, normalizer)
    tables = unicode.unicode_tables()
    casing = np.zeros(len(symbols), np.uint8)
    casing[: unicode.NUM_CODE_POINTS] = np.frombuffer(tables.casing, np.uint8)
    # A dropped character is as if it were not there.
    kind = np.frombuffer(tables.kind, np.uint8)
    casing[np.flatnonzero(kind == unicode.DROP)] = unicode.CASE_IGNORABLE
    return GraphTables(
        symbols=PagedTable.pack(symbols),
        num_units=units.num_units,
        last_lone=units.last_lone,
        expansion_starts=starts,
        expansion_units=expanded,
        combining=units.combining,
        casing=PagedTable.pack(casing),
        trie=build_trie(pieces, units.num_units + 1),
    )


def _spell(piece: str, unit_of: dict[str, int]) -> tuple[int, list[int]]:
    """Returns the root and the units of a piece."""
    if piece.startswith("##") and len(piece) > 2:
        return CONTINUATION_ROOT, [unit_of[c] for c in piece[2:]]
    return ROOT, [unit_of[c] for c in piece]


class _Units:
    """The numbering of units: white space, lone ones, then those that build words."""

    def __init__(
        self, piece_ids: dict[str, int], normalizer: Normalizer, num_specials: int
    ):
        self._tables = unicode.unicode_tables()
        self._normalizer = normalizer
        alphabet = sorted(set().union(*piece_ids))
        lone = [c for c in alphabet if self._is_lone(c)]
        others = [c for c in alphabet if not self._is_lone(c)]
        self.unknown_lone = 1
        self.specials = list(range(2, 2 + num_specials))
        first = 2 + num_specials
        self.unit_of = {c: first + n for n, c in enumerate(lone)}
        self.last_lone = first + len(lone) - 1
        # The unknown characters that build words, one unit for a combining class.
        classes = {0, *(self._tables.combining[ord(c)] for c in self._moving())}
        first = self.last_lone + 1
        self._unknown = {k: first + n for n, k in enumerate(sorted(classes))}
        first += len(classes)
        self.unit_of |= {c: first + n for n, c in enumerate(others)}
        self.num_units = first + len(others)
        self.combining = np.zeros(self.num_units + 1, np.int32)
        for combining, unit in self._unknown.items():
            self.combining[unit] = combining
        for character in self._moving() & self.unit_of.keys():
            unit = self.unit_of[character]
            self.combining[unit] = self._tables.combining[ord(character)]

    @property
    def unknown(self) -> int:
        """The unit of a character that builds words and that no piece holds."""
        return self._unknown[0]

    def find(self, character: str) -> int:
        """Returns the unit of a normalised character."""
        if character in self.unit_of:
            return self.unit_of[character]
        if self._is_lone(character):
            return self.unknown_lone
        if character in self._moving():
            return self._unknown[self._tables.combining[ord(character)]]
        return self.unknown

    def _moving(self) -> frozenset[str]:
        """The characters whose place canonical order can change in the result."""
        if self._normalizer.strip_accents:
            return self._tables.spacing_marks
        return frozenset()

    def _is_lone(self, character: str) -> bool:
        """Tells whether a normalised character is a word of its own."""
        code = ord(character)
        return self._tables.kind[
            code
        ] == unicode.PUNCTUATION or self._normalizer.is_ideograph(code)


def _expand_all(
    units: _Units, normalizer: Normalizer
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes the table of symbols, and the expansions.

    Returns:
        Symbols by code point, the starts of the expansions, and their units.
    """
    tables = unicode.unicode_tables()
    kind = np.frombuffer(tables.kind, np.uint8)
    by_kind = np.zeros(5, np.int32)
    by_kind[unicode.CHARACTER] = units.unknown
    by_kind[unicode.SPACE] = SPACE
    by_kind[unicode.PUNCTUATION] = units.unknown_lone
    lone = units.unknown_lone if normalizer.split_on_cjk else units.unknown
    by_kind[unicode.IDEOGRAPH] = lone
    page_size = 1 << _PAGE_BITS
    beyond = np.full(-(-len(units.specials) // page_size) * page_size, SPACE, np.int32)
    beyond[: len(units.specials)] = units.specials
    symbols = np.concatenate([by_kind[kind], beyond])
    changed = {ord(c) for c in units.unit_of} | tables.lower.keys()
    changed |= tables.decomposition.keys() | {ord(c) for c in tables.spacing_marks}
    changed |= set(np.flatnonzero(np.frombuffer(tables.nonspacing, np.uint8)).tolist())
    expansions: dict[tuple[int, ...], int] = {(): 0}
    starts, flat = [0, 0], []
    symbols[np.flatnonzero(kind == unicode.DROP)] = units.num_units
    for code in sorted(changed):
        if kind[code] in (unicode.DROP, unicode.SPACE):
            continue
        expansion = _expand(code, units, normalizer)
        is_plain = len(expansion) == 1 and not units.combining[expansion[0]]
        is_sigma = normalizer.lowercase and chr(code) == unicode.CAPITAL_SIGMA
        if is_plain and expansion[0] < units.num_units and not is_sigma:
            symbols[code] = expansion[0]
            continue
        if expansion not in expansions or is_sigma:
            expansions[expansion] = len(starts) - 1
            flat += expansion
            starts.append(len(flat))
        symbols[code] = units.num_units + expansions[expansion]
    flat.append(SPACE)  # never used: a table without expansions can be read, too
    return symbols, np.array(starts, np.int32), np.array(flat, np.int32)


def _expand(code: int, units: _Units, normalizer: Normalizer) -> tuple[int, ...]:
    """Returns the units that a character becomes.

    Of the stripped marks those of combining class 0 leave the unit `num_units`, since
    they end a run of marks that canonical order sorts.
    """
    tables, expansion = unicode.unicode_tables(), []
    for character in normalizer.expand(code):
        if not (normalizer.strip_accents and tables.nonspacing[ord(character)]):
            expansion.append(units.find(character))
        elif not tables.combining[ord(character)]:
            expansion.append(units.num_units)
    return tuple(expansion)
