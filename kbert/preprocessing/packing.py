"""The rule of `[CLS] A [SEP] B [SEP]`, written once for every executor.

`keep` says how many tokens of each text survive, `sources` which token lies at which
position. Both are index arithmetic over an array namespace `xp` (numpy, `keras.ops` or
`tensorflow`), so that `pack` below, the layer `SentencePairPacker` and the in-graph
`pack_graph` cannot drift apart.

The rule is that of Google's `run_classifier.py`: segment 0 is `[CLS] A [SEP]`, segment
1 is `B [SEP]`; a pair that is too long loses tokens of its longer text first, of the
second where both are equally long. A text B without tokens, before or after that,
brings no `[SEP]` of its own: the pair is then a single text.
"""

import dataclasses
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

LONG_TEXT = ("truncate", "head_tail")

# Texts packed at once: the temporary arrays stay in the processor's cache.
_CHUNK = 4096


class Spans(NamedTuple):
    """Where the tokens of each pair lie in a flat pool of ids (integer arrays)."""

    first_lengths: Any
    second_lengths: Any
    first_starts: Any
    second_starts: Any


class Kept(NamedTuple):
    """Tokens kept of each text, and the length with [CLS] and [SEP]."""

    first: Any
    second: Any
    length: Any


def keep(xp, first_lengths, second_lengths, max_length) -> Kept:
    """Says how many tokens of each pair fit into `max_length` positions.

    The closed form of popping from the longer text until both fit, from the second
    where they are equal (`_truncate_seq_pair` of Google's `run_classifier.py`).

    Args:
        xp: numpy, `keras.ops` or `tensorflow`.
        first_lengths: tokens of the first texts, integers.
        second_lengths: tokens of the second texts, same shape; 0 where there is none.
        max_length: most positions a pair may take.

    Returns:
        `Kept`, each field in the shape of `first_lengths`.
    """
    budget = max_length - 2 - xp.where(second_lengths > 0, 1, 0)
    first = xp.minimum(
        first_lengths, xp.maximum(budget - second_lengths, (budget + 1) // 2)
    )
    second = xp.minimum(second_lengths, xp.maximum(budget - first_lengths, budget // 2))
    return Kept(first, second, first + second + 2 + xp.where(second > 0, 1, 0))


def sources(xp, positions, spans: Spans, kept: Kept, specials, long_text):
    """Says which entry of the pool of ids lies at each position.

    Args:
        xp: numpy, `keras.ops` or `tensorflow`.
        positions: positions in the packed text, integers.
        spans: the texts in the pool; fields broadcast against `positions`.
        kept: what `keep` returned for them; fields broadcast against `positions`.
        specials: index in the pool of the ids of [CLS], [SEP] and [PAD], in a row.
        long_text: "truncate" keeps the beginning of a text that is too long,
            "head_tail" its first quarter and the rest from its end: of 510 tokens 128
            and 382, which worked best in Sun et al. 2019, "How to Fine-Tune BERT for
            Text Classification?", table 3.

    Returns:
        Indices into the pool, in the shape of `positions`.
    """
    first_sep = kept.first + 1
    first = positions - 1
    second = positions - first_sep - 1
    if long_text == "head_tail":
        first = _skip_middle(xp, first, kept.first, spans.first_lengths)
        second = _skip_middle(xp, second, kept.second, spans.second_lengths)
    index = xp.where(
        positions < first_sep, spans.first_starts + first, spans.second_starts + second
    )
    is_sep = (positions == first_sep) | (positions == kept.length - 1)
    index = xp.where(is_sep, specials + 1, index)
    index = xp.where(positions == 0, specials, index)
    return xp.where(positions >= kept.length, specials + 2, index)


def _skip_middle(xp, token, kept, length):
    return token + xp.where(token >= (kept + 2) // 4, length - kept, 0)


def masks(positions, kept: Kept):
    """Says of every position, as booleans, whether it is segment 1 and no padding."""
    inside = positions < kept.length
    return inside & (positions > kept.first + 1), inside


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedTexts:
    """N packed texts, one after another, without padding.

    Attributes:
        token_ids: int32 `(total,)`, with [CLS] and [SEP].
        row_splits: int64 `(N + 1,)`; text i is `token_ids[row_splits[i]:
            row_splits[i + 1]]`.
        second_starts: int32 `(N,)`; index in the text where segment 1 begins, the
            length of the text where it has no second part.
        num_truncated: how many of the N texts or pairs lost tokens.
    """

    token_ids: np.ndarray
    row_splits: np.ndarray
    second_starts: np.ndarray
    num_truncated: int = 0

    def __len__(self) -> int:
        """N, the number of texts."""
        return len(self.second_starts)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of every text, [CLS] and [SEP] included: int64 `(N,)`."""
        return np.diff(self.row_splits)

    @property
    def num_tokens(self) -> int:
        """The tokens of all texts."""
        return int(self.row_splits[-1])

    @property
    def num_texts(self) -> int:
        """N, of which `num_truncated` is a part."""
        return len(self)

    def select(self, indices) -> "EncodedTexts":
        """Returns the texts at `indices`, in that order.

        `num_truncated` remains that of the whole, since which ones were truncated is
        not kept.

        Args:
            indices: integers `(M,)`, each in [0, N).
        """
        indices = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[indices]
        row_splits = _splits(lengths)
        offsets = np.repeat(self.row_splits[indices] - row_splits[:-1], lengths)
        return EncodedTexts(
            self.token_ids[np.arange(row_splits[-1]) + offsets],
            row_splits,
            self.second_starts[indices],
            self.num_truncated,
        )

    @classmethod
    def concatenate(cls, parts: Sequence["EncodedTexts"]) -> "EncodedTexts":
        """Joins several, in order."""
        return cls(
            np.concatenate([part.token_ids for part in parts]),
            _splits(np.concatenate([part.lengths for part in parts])),
            np.concatenate([part.second_starts for part in parts]),
            sum(part.num_truncated for part in parts),
        )


def pack(
    first: Sequence[Sequence[int]],
    second: Sequence[Sequence[int]] | None = None,
    *,
    cls_id: int,
    sep_id: int,
    max_length: int,
    long_text: str = "truncate",
) -> EncodedTexts:
    """Packs lists of ids into `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

    Args:
        first: N lists of ids, without special tokens.
        second: N lists of ids, or None for single texts.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        max_length: most positions of a packed text.
        long_text: "truncate" or "head_tail", see `sources`.

    Returns:
        `EncodedTexts`.

    Raises:
        ValueError: if `first` and `second` differ in number, `long_text` is unknown,
            or `max_length` has no room for the special tokens.

    Example:
    >>> pack([[7, 8]], [[9]], cls_id=2, sep_id=3, max_length=8).token_ids.tolist()
    [2, 7, 8, 3, 9, 3]
    """
    check_long_text(long_text)
    check_room(max_length, pair=second is not None)
    if second is None:
        second = [()] * len(first)
    if len(first) != len(second):
        raise ValueError(
            "Every first text needs a second one. Received: "
            f"{len(first)} first and {len(second)} second texts."
        )
    specials = (cls_id, sep_id, sep_id)  # flat texts have no padding
    parts = [
        _pack_chunk(
            first[at : at + _CHUNK],
            second[at : at + _CHUNK],
            specials,
            max_length,
            long_text,
        )
        for at in range(0, max(len(first), 1), _CHUNK)
    ]
    return parts[0] if len(parts) == 1 else EncodedTexts.concatenate(parts)


def _pack_chunk(first, second, specials, max_length, long_text) -> EncodedTexts:
    count = len(first)
    lengths = np.fromiter(map(len, chain(first, second)), np.int32, 2 * count)
    starts = _splits(lengths).astype(np.int32)  # of a chunk: 32 bits suffice
    end = int(starts[-1])
    pool = np.fromiter(chain(*first, *second, specials), np.int32, end + 3)
    spans = Spans(lengths[:count], lengths[count:], starts[:count], starts[count:-1])
    kept = keep(np, spans.first_lengths, spans.second_lengths, max_length)
    row_splits = _splits(kept.length)
    rows = np.repeat(np.arange(count, dtype=np.int32), kept.length)
    positions = np.arange(len(rows), dtype=np.int32)
    index = sources(
        np,
        positions - row_splits[:-1].astype(np.int32)[rows],
        Spans(*(field[rows] for field in spans)),
        Kept(*(field[rows] for field in kept)),
        end,
        long_text,
    )
    truncated = kept.first + kept.second < spans.first_lengths + spans.second_lengths
    second_starts = (kept.first + 2).astype(np.int32)
    return EncodedTexts(pool[index], row_splits, second_starts, int(truncated.sum()))


def _splits(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def check_long_text(long_text) -> None:
    """Raises ValueError unless `long_text` is a known way to shorten a text."""
    if long_text not in LONG_TEXT:
        raise ValueError(
            f"`long_text` must be one of {LONG_TEXT}. Received: {long_text!r}."
        )


def check_room(max_length, *, pair: bool, name: str = "max_length") -> None:
    """Raises ValueError unless `max_length` holds the special tokens.

    Args:
        max_length: positions of a packed text.
        pair: whether a second text may come.
        name: what the caller calls `max_length`.
    """
    if isinstance(max_length, bool) or not isinstance(max_length, int | np.integer):
        raise ValueError(f"`{name}` must be an integer. Received: {max_length!r}.")
    specials = "[CLS] A [SEP] B [SEP]" if pair else "[CLS] A [SEP]"
    if max_length < 2 + pair:
        raise ValueError(
            f"`{name}` must be at least {2 + pair}, the special tokens of {specials}. "
            f"Received: {max_length}."
        )
