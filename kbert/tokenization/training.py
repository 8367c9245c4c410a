"""A WordPiece vocabulary of one's own, learnt from a corpus.

Pieces are merged by the trainer of the package tokenizers, which counts pairs of pieces
as BPE does (Sennrich et al. 2016); words are those of kbert's own normalisation, so
that every piece can occur. The result depends on the counts of the words alone: not on
their order, and not on the order in which a hash table lists them.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from kbert.tokenization.normalizer import Normalizer, find_ascii_words
from kbert.tokenization.vocabulary import SPECIAL_TOKENS

CONTINUES = "##"

_ORDER = ("pad", "unk", "cls", "sep", "mask")
# Tokens between blanks, many of them with punctuation, before they become words.
_MOST_TOKENS = 1 << 20
_LONGEST_WORD = 200
# `str.split` cuts at these, but Google's code drops them as control characters.
_DROPPED_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]").search
# Words in one text for the trainer.
_WORDS_A_TEXT = 1 << 10


@dataclasses.dataclass(frozen=True)
class LearnedVocabulary:
    """A vocabulary, and what it was learnt from.

    Args:
        pieces: in the order of their ids: special tokens, characters, characters that
            continue a word, then longer pieces, as they were found.
        words: words of the corpus.
        different_words: how many differ.
        characters: in the alphabet.
        left_out: words that hold a character outside of the alphabet, or more than 200.
    """

    pieces: list[str]
    words: int
    different_words: int
    characters: int
    left_out: int

    def lines(self) -> list[str]:
        """What was learnt as sentences, one a line."""
        told = [
            f"Learnt {len(self.pieces):,} pieces with {self.characters:,} characters "
            f"from {self.words:,} words, {self.different_words:,} of them different."
        ]
        if self.left_out:
            told.append(
                f"Left out {self.left_out:,} words that are longer than "
                f"{_LONGEST_WORD} characters or have one outside of the alphabet."
            )
        return told


def learn_vocabulary(
    texts: Iterable[str],
    size: int = 30_000,
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_on_cjk: bool = True,
    min_frequency: int = 2,
    max_characters: int = 1000,
    unused: int = 0,
) -> LearnedVocabulary:
    """Learns the pieces of a WordPiece vocabulary.

    The first ids are those of Google's vocabularies: [PAD], pieces that nothing uses,
    [UNK], [CLS], [SEP], [MASK]. Every character of the alphabet follows, alone and as a
    continuation, so that no word of known characters is an [UNK].

    Args:
        texts: the corpus; read once, and not kept.
        size: most pieces; fewer where the corpus has no more pairs.
        lowercase: as for `BertTokenizer`, which must be made with the same.
        strip_accents: the same.
        split_on_cjk: the same.
        min_frequency: how often a pair must occur to become a piece.
        max_characters: size of the alphabet; the most frequent ones are in it.
        unused: how many pieces [unused0], [unused1], … to keep for later; Google's have
            99 behind [PAD].

    Returns:
        A `LearnedVocabulary`.

    Raises:
        ValueError: if there is no word, or `size` has no room for the alphabet.
        ImportError: if the package tokenizers is missing.
    """
    normalizer = Normalizer(
        lowercase=lowercase,
        strip_accents=lowercase if strip_accents is None else strip_accents,
        split_on_cjk=split_on_cjk,
    )
    counts = count_words(texts, normalizer)
    if not counts:
        raise ValueError("A corpus must have at least one word. Received: none.")
    alphabet = _alphabet(counts, max_characters)
    known = set(alphabet)
    words = {
        word: count
        for word, count in counts.items()
        if len(word) <= _LONGEST_WORD and known.issuperset(word)
    }
    continuations = [CONTINUES + character for character in alphabet]
    first = [*_special_tokens(unused), *alphabet, *continuations]
    if size < len(first):
        raise ValueError(
            f"`size` must hold the special tokens and each of the {len(alphabet)} "
            f"characters twice, {len(first)} pieces. Received: size={size}. Ask for "
            "more pieces, or for a smaller alphabet (max_characters)."
        )
    merged = _merged(words, alphabet, continuations, size - len(first), min_frequency)
    return LearnedVocabulary(
        first + merged,
        words=sum(counts.values()),
        different_words=len(counts),
        characters=len(alphabet),
        left_out=sum(counts.values()) - sum(words.values()),
    )


def count_words(texts: Iterable[str], normalizer: Normalizer) -> Counter[str]:
    """Counts the normalised words of texts.

    Stretches between blanks are counted first and normalised once each, since most
    come again.

    Args:
        texts: any strings.
        normalizer: what makes words of them.
    """
    words: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for text in texts:
        if _DROPPED_SPACES(text):
            text = normalizer.clean(text)
        tokens.update(text.split())
        if len(tokens) > _MOST_TOKENS:
            _add_words(words, tokens, normalizer)
            tokens.clear()
    _add_words(words, tokens, normalizer)
    return words


def _add_words(words, tokens, normalizer) -> None:
    for token, count in tokens.items():
        if token.isascii() and token.isprintable():
            for word in find_ascii_words(
                token.lower() if normalizer.lowercase else token
            ):
                words[word] += count
        else:
            for found in normalizer.words(token):
                words[found.text] += count


def _alphabet(counts: Counter[str], most: int) -> list[str]:
    """Returns the most frequent characters, sorted; of equal ones the lower code."""
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    whole = (c for c in characters if not "\ud800" <= c <= "\udfff")
    by_count = sorted(whole, key=lambda c: (-characters[c], c))
    return sorted(by_count[:most])


def _special_tokens(unused: int) -> list[str]:
    pad, *others = (SPECIAL_TOKENS[role] for role in _ORDER)
    return [pad, *(f"[unused{number}]" for number in range(unused)), *others]


def _merged(words, alphabet, continuations, most, min_frequency) -> list[str]:
    """Returns up to so many longer pieces, in the order in which they were found."""
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "Learning a vocabulary needs the package tokenizers. To install it: "
            "pip install 'keras-kbert[pretrain]'."
        ) from error
    # What the trainer is given by name has its id by that order, and of pairs that are
    # as frequent it merges the one with lower ids: so every character is named.
    named = [*alphabet, *continuations]
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=len(named) + most,
        min_frequency=min_frequency,
        special_tokens=named,
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    model.train_from_iterator(_repeated(words), trainer)
    ids = model.get_vocab()
    return sorted(ids, key=ids.__getitem__)[len(named) :]


def _repeated(words: dict[str, int]) -> Iterator[str]:
    """Yields texts that have every word as often as it was counted."""
    for word in sorted(words):
        for _ in range(words[word] // _WORDS_A_TEXT):
            yield " ".join([word] * _WORDS_A_TEXT)
        rest = words[word] % _WORDS_A_TEXT
        if rest:
            yield " ".join([word] * rest)
