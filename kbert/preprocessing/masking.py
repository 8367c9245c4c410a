"""The rule of masked tokens: which are hidden, and what stands in their place.

The one place of masking, for the instances of pre-training and for what is masked anew
in every epoch: plain numpy, and the same for the same random generator.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.raw_text import RawTexts


@dataclasses.dataclass(frozen=True)
class MaskingRule:
    """What is masked; the defaults are the paper's (section 3.1, "Task #1").

    Args:
        share: of a text's tokens, [CLS] and [SEP] counted, that are to be predicted.
            At least one, if there is one.
        most: most tokens of a text to predict; None for no limit.
        hidden: share of these that [MASK] replaces.
        random: share that a random piece of the vocabulary replaces; the rest stays.
        whole_words: whether a word is masked wholly or not at all, as in Google's
            whole-word models; each of its tokens is then replaced by itself.
        ngrams: most neighbours that are masked together, words if `whole_words`, else
            tokens: n of them with a chance in proportion to 1/n, as in ALBERT (Lan et
            al. 2019, section 4.1). 1 for each on its own.

    Raises:
        ValueError: if a share is out of range, or `most` or `ngrams` not positive.
    """

    share: float = 0.15
    most: int | None = None
    hidden: float = 0.8
    random: float = 0.1
    whole_words: bool = False
    ngrams: int = 1

    def __post_init__(self):
        """Checks every value."""
        if not 0 < self.share <= 1:
            raise ValueError(f"`share` must lie in (0, 1]. Received: {self.share}.")
        parts = (self.hidden, self.random, 1 - self.hidden - self.random)
        if min(parts) < -1e-9:
            raise ValueError(
                "`hidden` and `random` must be shares that leave none below 0. "
                f"Received: hidden={self.hidden}, random={self.random}."
            )
        if self.most is not None and self.most < 1:
            raise ValueError(
                f"`most` must be at least 1, or None. Received: {self.most}."
            )
        if self.ngrams < 1:
            raise ValueError(f"`ngrams` must be at least 1. Received: {self.ngrams}.")


class Masked(NamedTuple):
    """Texts one after another, some tokens of which are to be predicted.

    Attributes:
        token_ids: int32 (total,), as the model is to see them.
        positions: int64 (M,), which of them are to be predicted, increasing.
        labels: int32 (M,), what stood there.
    """

    token_ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


class TokenMasker:
    """Masks tokens of texts by a `MaskingRule`.

    [CLS], [SEP], [PAD] and [MASK] are never chosen, nor are extra special tokens; [UNK]
    stands for a word and may be. A random piece is any of the vocabulary's, as in
    google-research/bert, and never a row that a padded embedding has beyond it.

    Args:
        tokenizer: a `BertTokenizer`.
        rule: a `MaskingRule`.

    Example:
    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film"]
    >>> rule = MaskingRule(hidden=1, random=0)
    >>> masker = TokenMasker(kbert.BertTokenizer(pieces), rule)
    >>> ids = np.array([2, 5, 6, 3, 2, 6, 3])
    >>> masked = masker(ids, np.array([0, 4, 7]), np.random.default_rng(0))
    >>> masked.positions.tolist(), masked.labels.tolist()
    ([2, 5], [6, 6])
    >>> masked.token_ids.tolist()
    [2, 5, 4, 3, 2, 4, 3]
    """

    def __init__(self, tokenizer, rule: MaskingRule | None = None):
        self.rule = MaskingRule() if rule is None else rule
        self.mask_id = tokenizer.mask_id
        self.vocabulary_size = tokenizer.vocabulary_size
        self._may_be_chosen = np.ones(self.vocabulary_size, bool)
        never = [i for i in tokenizer.special_ids if i != tokenizer.unk_id]
        self._may_be_chosen[never] = False
        self._continues = np.array(
            [piece.startswith("##") for piece in tokenizer.vocabulary]
        )

    def __call__(self, token_ids, row_splits, rng: np.random.Generator) -> Masked:
        """Masks texts.

        Args:
            token_ids: int (total,), texts one after another, with [CLS] and [SEP].
            row_splits: int (N + 1,); text i is `token_ids[row_splits[i]:
                row_splits[i + 1]]`.
            rng: what decides; the same state gives the same masks.
        """
        token_ids = np.asarray(token_ids, np.int32)
        lengths = np.diff(row_splits)
        wanted = np.maximum(1, np.rint(lengths * self.rule.share).astype(np.int64))
        if self.rule.most is not None:
            wanted = np.minimum(wanted, self.rule.most)
        candidates = np.flatnonzero(self._may_be_chosen[token_ids])
        text_of = np.repeat(np.arange(len(lengths)), lengths)[candidates]
        if self.rule.whole_words or self.rule.ngrams > 1:
            words = np.arange(len(candidates))
            if self.rule.whole_words:
                words = self._words(token_ids, candidates, text_of)
            ngrams = self.rule.ngrams
            positions = _whole_words(candidates, text_of, words, wanted, ngrams, rng)
        else:
            positions = _single_tokens(candidates, text_of, wanted, rng)
        return self._replaced(token_ids, positions, rng)

    def _replaced(self, token_ids, positions, rng) -> Masked:
        """Puts [MASK], a random piece or the same one at the chosen positions."""
        labels = token_ids[positions]
        draws = rng.random(len(positions))
        pieces = rng.integers(self.vocabulary_size, size=len(positions))
        hidden, random = self.rule.hidden, self.rule.random
        shown = np.where(draws < hidden + random, pieces, labels)
        shown = np.where(draws < hidden, self.mask_id, shown)
        seen = token_ids.copy()
        seen[positions] = shown
        return Masked(seen, positions, labels)

    def _words(self, token_ids, candidates, text_of):
        """Returns for every candidate the number of its word, counted from 0."""
        begins = ~self._continues[token_ids[candidates]]
        begins |= np.diff(candidates, prepend=-2) != 1  # behind a special token
        begins |= np.diff(text_of, prepend=-1) != 0
        return np.cumsum(begins) - 1


def _single_tokens(candidates, text_of, wanted, rng):
    """Returns the positions of `wanted` random candidates of every text.

    What is sorted is one integer a candidate: its text, then a random number, then its
    place, which takes a fraction of the time of sorting by several keys.
    """
    count = len(candidates)
    of_place, of_text = count.bit_length(), len(wanted).bit_length()
    of_chance = 63 - of_place - of_text
    keys = rng.integers(1 << of_chance, size=count)
    keys |= text_of << of_chance
    keys <<= of_place
    keys |= np.arange(count)
    keys.sort()
    order = keys & ((1 << of_place) - 1)
    sizes = np.bincount(text_of, minlength=len(wanted))
    rank = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    taken = np.zeros(count, bool)
    taken[order[rank < np.repeat(wanted, sizes)]] = True
    return candidates[taken]


def _whole_words(candidates, text_of, words, wanted, ngrams, rng):
    """Returns the positions of random words of every text, `wanted` tokens at most.

    As in google-research/bert's `create_pretraining_data.py` a word that would be too
    much is passed over; but where every word of a text is, the first is taken. Of
    several neighbours as many are taken as are not too much.
    """
    if not len(candidates):
        return candidates
    sizes = np.bincount(words)
    firsts = np.searchsorted(words, np.arange(len(sizes)))
    text_of_word = text_of[firsts]
    order = np.lexsort((rng.random(len(sizes)), text_of_word))
    runs = np.ones(len(sizes), np.int64)
    if ngrams > 1:
        chances = 1 / np.arange(1, ngrams + 1)
        runs += rng.choice(ngrams, len(sizes), p=chances / chances.sum())
    # A special token or the end of the text may stand before a word.
    begins = candidates[firsts]
    follows = np.diff(begins, prepend=-1) == np.concatenate([[0], sizes[:-1]])
    taken = _taken_words(
        order.tolist(),
        runs.tolist(),
        text_of_word.tolist(),
        sizes.tolist(),
        follows.tolist(),
        wanted.tolist(),
    )
    return candidates[np.array(taken)[words]]


def _taken_words(order, runs, text_of_word, sizes, follows, wanted) -> list[bool]:
    """Returns for every word whether it is taken; all arguments are lists."""
    taken = [False] * len(sizes)
    left = wanted.copy()
    first: dict[int, int] = {}
    for word in order:
        text = text_of_word[word]
        first.setdefault(text, word)
        for neighbour in range(word, min(word + runs[word], len(sizes))):
            apart = neighbour > word and not follows[neighbour]
            if apart or taken[neighbour] or sizes[neighbour] > left[text]:
                break
            taken[neighbour] = True
            left[text] -= sizes[neighbour]
    for text, word in first.items():
        if left[text] == wanted[text]:
            taken[word] = True
    return taken


def ids_with_blanks(tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Returns the ids of texts in which [MASK] is the special token.

    The other special tokens are read as the tokenizer's options say: as text, unless
    the user chose otherwise.

    Args:
        tokenizer: a `BertTokenizer`.
        texts: the texts.
    """
    spelling = tokenizer.special_tokens["mask"]
    found = []
    for text in texts:
        first, *rest = tokenizer(text.split(spelling))
        found.append(
            [*first, *(i for part in rest for i in (tokenizer.mask_id, *part))]
        )
    return found


def check_blanks(texts: RawTexts, encoded: EncodedTexts, tokenizer) -> None:
    """Raises ValueError unless every text has a [MASK], and none was cut off.

    Args:
        texts: the texts, as strings.
        encoded: the same as ids.
        tokenizer: a `BertTokenizer`.
    """
    spelling = tokenizer.special_tokens["mask"]
    found = blanks_of(encoded, tokenizer.mask_id)
    seconds = texts.second or [""] * len(texts.first)
    for index, (first, second) in enumerate(zip(texts.first, seconds, strict=True)):
        written = first.count(spelling) + second.count(spelling)
        if not written:
            raise ValueError(
                f"Every text must have a {spelling} to fill in. Received: text "
                f"{index}, {first[:60]!r}, without one."
            )
        if written > found[index]:
            raise ValueError(
                f"Every {spelling} must lie within the tokens that fit. Received: text "
                f"{index} with {written}, of which {found[index]} are within its first "
                f"{encoded.lengths[index]} tokens. Shorten it."
            )


def blanks_of(encoded: EncodedTexts, mask_id: int) -> np.ndarray:
    """Returns how many [MASK] every text has, int64 (N,)."""
    before = np.concatenate([[0], np.cumsum(encoded.token_ids == mask_id)])
    return np.diff(before[encoded.row_splits])
