"""The first half of tokenization: a text becomes normalised words.

The rule is that of `BasicTokenizer` in google-research/bert, for each text:

1. drop NUL, U+FFFD, control and format characters (Cc and Cf, but tab, LF, CR);
2. put spaces round CJK ideographs; split at white space;
3. lower-case, as `str.lower` does, a word-final capital sigma included;
4. strip accents: decompose canonically (NFD) and remove non-spacing marks (Mn);
5. make every ASCII symbol and every character of category P* a word of its own.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from kbert.tokenization import unicode_tables as unicode

_SIGMA = unicode.CAPITAL_SIGMA
_NUM_KEPT = 0x20000

find_ascii_words = re.compile("[A-Za-z0-9]+|[^A-Za-z0-9 ]").findall
"""Splits clean ASCII text into words: letters and digits, or one symbol (step 5)."""


class Word(NamedTuple):
    """A normalised word and where it comes from.

    Args:
        text: the word as it is looked up in the vocabulary, at least one character.
        sources: for each of its characters, the index of the character of the
            original text that it came from.
    """

    text: str
    sources: list[int]


class Normalizer:
    """Cleans, normalises and splits text exactly as Google's code does.

    Args:
        lowercase: whether step 3 is done.
        strip_accents: whether step 4 is done; the released uncased models have both.
        split_on_cjk: whether ideographs are words of their own (step 2).
    """

    def __init__(self, lowercase: bool, strip_accents: bool, split_on_cjk: bool):
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_on_cjk = split_on_cjk
        self._tables = unicode.unicode_tables()
        self._cleaned = _CharacterMap(self._clean_character)
        self._expanded = _CharacterMap(self.expand)

    def is_ideograph(self, code: int) -> bool:
        """Tells whether the character is a word of its own by step 2."""
        return self.split_on_cjk and self._tables.kind[code] == unicode.IDEOGRAPH

    def clean(self, text: str) -> str:
        """Does steps 1 and 2 but for the split: white space becomes blanks."""
        return text.translate(self._cleaned)

    def _clean_character(self, code: int) -> str | None:
        """Does steps 1 and 2 on one character; None drops it."""
        kind = self._tables.kind[code]
        if kind == unicode.DROP:
            return None
        if kind == unicode.SPACE:
            return " "
        return f" {chr(code)} " if self.is_ideograph(code) else chr(code)

    def expand(self, code: int) -> str:
        """Lower-cases and decomposes one character; its marks are kept."""
        text = chr(code)
        if self.lowercase:
            text = self._tables.lower.get(code, text)
        return self._tables.decompose(text) if self.strip_accents else text

    def words(self, text: str) -> list[Word]:
        """Does all five steps, and remembers where every character came from.

        Args:
            text: any string, lone surrogates included.

        Returns:
            The words in order. Time and memory are linear in the text's length.
        """
        kind = self._tables.kind
        words, token, sources = [], [], []
        for index, character in enumerate(text):
            code = ord(character)
            if kind[code] == unicode.DROP:
                continue
            lone = self.is_ideograph(code)
            if token and (lone or kind[code] == unicode.SPACE):
                words += self._split(token, sources)
                token, sources = [], []
            if lone:
                words += self._split([character], [index])
            elif kind[code] != unicode.SPACE:
                token.append(character)
                sources.append(index)
        return words + self._split(token, sources) if token else words

    def _split(self, token: list[str], sources: list[int]) -> list[Word]:
        """Does steps 3 to 5 on one token without white space."""
        if self.lowercase and _SIGMA in token:
            token = self.end_sigmas(token)
        text, origins = [], []
        for character, source in zip(token, sources, strict=True):
            expanded = self._expanded[ord(character)]
            text += expanded
            origins += [source] * len(expanded)
        text = "".join(text)
        if self.strip_accents and not text.isascii():
            order = range(len(text))
            if not self._tables.spacing_marks.isdisjoint(text):
                order = self._tables.reorder(text)
            stays = [i for i in order if not self._tables.nonspacing[ord(text[i])]]
            text, origins = "".join(text[i] for i in stays), [origins[i] for i in stays]
        words, start = [], 0
        for index, character in enumerate(text):
            if self._tables.kind[ord(character)] == unicode.PUNCTUATION:
                words += [(start, index), (index, index + 1)]
                start = index + 1
        words.append((start, len(text)))
        return [Word(text[a:b], origins[a:b]) for a, b in words if a < b]

    def end_sigmas(self, token: list[str]) -> list[str]:
        """Replaces the capital sigmas that end a word by the final small letter.

        One ends a word where the nearest character before it that is not
        case-ignorable is cased, and the nearest after it is not (Unicode standard,
        section 3.13, "Final_Sigma"; Python's `str.lower` does the same).
        """
        casing = self._tables.casing
        token = list(token)
        # What stands beside each other once the ignorable characters are gone.
        places = [
            place
            for place, character in enumerate(token)
            if casing[ord(character)] != unicode.CASE_IGNORABLE
        ]
        cased = [casing[ord(token[place])] == unicode.CASED for place in places]
        for order, place in enumerate(places):
            if token[place] == _SIGMA:
                before = order > 0 and cased[order - 1]
                after = order + 1 < len(places) and cased[order + 1]
                if before and not after:
                    token[place] = unicode.FINAL_SIGMA
        return token


class _CharacterMap(dict):
    """What becomes of each character, found when first asked for.

    Answers are kept for the first two planes only, so that no text can fill the memory.

    Args:
        find: the function of a code point that gives the answer.
    """

    def __init__(self, find: Callable[[int], str | None]):
        self._find = find

    def __missing__(self, code: int) -> str | None:
        found = self._find(code)
        if code < _NUM_KEPT:
            self[code] = found
        return found
