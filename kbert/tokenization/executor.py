"""The Python executor of WordPiece: text to ids, with a memory of words.

`in_graph.py` is the other executor; their ids are equal.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from kbert.tokenization.normalizer import Normalizer, find_ascii_words

# Bounds of the memory of words: entries, and the characters of one.
_CACHE_SIZE = 1 << 16
_CACHED_LENGTH = 48
# `str.split` cuts at these, but Google's code drops them as control characters.
_DROPPED_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]").search


class WordPieceExecutor:
    """Cuts words into the longest pieces of a vocabulary, from left to right.

    Greedy longest match first (Wu et al. 2016), as in google-research/bert.

    Args:
        piece_ids: the id of every piece.
        normalizer: turns a text into words.
        special_pieces: the pieces that are cut out of a text before anything else:
            the leftmost, and of those the longest; empty for untrusted text.
        unk_id: the id of a word that the vocabulary cannot spell.
        max_word_length: a word of more characters is one `unk_id`.
    """

    def __init__(
        self,
        piece_ids: Mapping[str, int],
        normalizer: Normalizer,
        *,
        special_pieces: Sequence[str],
        unk_id: int,
        max_word_length: int,
    ):
        self.normalizer = normalizer
        self.unk_id = unk_id
        self.max_word_length = max_word_length
        self._ids = piece_ids
        self._continuations = {
            piece[2:]: i for piece, i in piece_ids.items() if piece.startswith("##")
        }
        self._piece_lengths = {i: len(piece) for piece, i in piece_ids.items()}
        self._longest = max(map(len, piece_ids))
        self._split = None
        if special_pieces:
            # Longest first: `re` takes the first alternative that matches.
            longest_first = sorted(special_pieces, key=len, reverse=True)
            alternatives = "|".join(map(re.escape, longest_first))
            self._split = re.compile(f"({alternatives})").split
        self._cache = _WordCache(self._whole_words(), self._ids_of_token)

    def _whole_words(self) -> dict[str, tuple[int, ...]]:
        """Finds the pieces that are whole ASCII words after normalisation."""
        return {
            piece: (i,)
            for piece, i in self._ids.items()
            if piece.isascii()
            and (piece.isalnum() or (len(piece) == 1 and piece.isprintable()))
            and len(piece) <= self.max_word_length
            and not (self.normalizer.lowercase and piece != piece.lower())
        }

    def ids(self, text: str) -> list[int]:
        """Returns the ids of a text, by the fast path (no offsets)."""
        if self._split is None:
            return self._ids_of_section(text)
        ids = []
        for _, section, special in self._sections(text):
            ids += [self._ids[section]] if special else self._ids_of_section(section)
        return ids

    def trace(self, text: str) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yields every id of a text with the span of the text that it stands for.

        The span `(start, end)` is the smallest one of the original's characters whose
        normalisation holds the piece, or for `unk_id` the whole word.
        """
        for start, section, special in self._sections(text):
            if special:
                yield self._ids[section], (start, start + len(section))
                continue
            for word in self.normalizer.words(section):
                first, ids = 0, self._ids_of_word(word.text)
                for i, length in zip(ids, self._lengths(ids, word.text), strict=True):
                    # Sorted only as far as combining marks were not reordered.
                    sources = word.sources[first : first + length]
                    yield i, (start + min(sources), start + max(sources) + 1)
                    first += length

    def _sections(self, text: str) -> Iterator[tuple[int, str, bool]]:
        """Yields `(start, section, is special)` for the text, cut at special tokens."""
        if self._split is None:
            yield 0, text, False
            return
        start = 0
        for index, section in enumerate(self._split(text)):
            yield start, section, index % 2 == 1
            start += len(section)

    def _ids_of_section(self, text: str) -> list[int]:
        """Returns the ids of a text in which nothing is special."""
        if text.isascii():
            text = text.lower() if self.normalizer.lowercase else text
            if not text.isprintable():
                text = self.normalizer.clean(text)
            tokens = find_ascii_words(text)
        else:
            if _DROPPED_SPACES(text):
                text = self.normalizer.clean(text)
            tokens = text.split()
        ids = []
        for found in map(self._cache.__getitem__, tokens):
            ids += found
        return ids

    def _ids_of_token(self, token: str) -> tuple[int, ...]:
        """Returns the ids of a stretch of text without white space."""
        if not token.isascii():
            parts = self.normalizer.clean(token).split()
        elif not token.isalnum():
            parts = find_ascii_words(self.normalizer.clean(token))
        elif self.normalizer.lowercase:
            return self._ids_of_word(token.lower())
        else:
            return self._ids_of_word(token)
        if len(parts) > 1:
            return tuple(i for part in parts for i in self._cache[part])
        words = self.normalizer.words(token)
        return tuple(i for word in words for i in self._ids_of_word(word.text))

    def _ids_of_word(self, word: str) -> tuple[int, ...]:
        """Cuts a normalised word into the longest pieces."""
        length = len(word)
        if length > self.max_word_length:
            return (self.unk_id,)
        i = self._ids.get(word)
        if i is not None:
            return (i,)
        ids, start, find = [], 0, self._ids.get
        while start < length:
            for end in range(min(length, start + self._longest), start, -1):
                i = find(word[start:end])
                if i is not None:
                    break
            else:
                return (self.unk_id,)
            ids.append(i)
            start, find = end, self._continuations.get
        return tuple(ids)

    def _lengths(self, ids: tuple[int, ...], word: str) -> list[int]:
        """Returns how many characters of a word each of its pieces holds."""
        if len(ids) == 1:
            return [len(word)]  # the whole word, or one that is unknown
        lengths = [self._piece_lengths[i] for i in ids]
        return [lengths[0], *(length - len("##") for length in lengths[1:])]


class _WordCache(dict):
    """The ids of tokens, found when first asked for.

    Words that are pieces of the vocabulary are known from the start. It starts anew
    when full, and never holds long tokens, so that its memory is bounded whatever the
    texts are. Threads may share it: they can only find an entry or make it again.

    Args:
        known: the ids of tokens that stand for themselves.
        find: the function of a token that gives its ids.
    """

    def __init__(
        self,
        known: dict[str, tuple[int, ...]],
        find: Callable[[str], tuple[int, ...]],
    ):
        super().__init__(known)
        self._known = known
        self._find = find

    def __missing__(self, token: str) -> tuple[int, ...]:
        ids = self._find(token)
        if len(token) <= _CACHED_LENGTH:
            if len(self) >= _CACHE_SIZE + len(self._known):
                self.clear()
                self.update(self._known)
            self[token] = ids
        return ids
