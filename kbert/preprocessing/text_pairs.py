"""Pairs of texts that belong together, each a text of its own with [CLS] and [SEP].

Not the pair of `[CLS] A [SEP] B [SEP]`, which is one text to BERT.
"""

import dataclasses

import numpy as np

from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.rows import Placement, lay, one_a_row


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedPairs:
    """N pairs of two texts each.

    Attributes:
        texts: the 2 N texts, those of one pair after those of another.
        together: whether the two lie one behind the other in a row; else each has a row
            of its own.
    """

    texts: EncodedTexts
    together: bool

    def __len__(self) -> int:
        """N, the number of pairs."""
        return len(self.texts) // 2

    @property
    def lengths(self) -> np.ndarray:
        """Positions that every pair needs in a row: int64 `(N,)`."""
        lengths = self.texts.lengths.reshape(-1, 2)
        return lengths.sum(axis=1) if self.together else lengths.max(axis=1)

    @property
    def num_tokens(self) -> float:
        """Tokens of all texts, to each of the rows that a pair takes."""
        return self.texts.num_tokens / (1 if self.together else 2)

    @property
    def num_texts(self) -> int:
        """The number of texts, of which `num_truncated` is a part."""
        return len(self.texts)

    @property
    def num_truncated(self) -> int:
        """How many texts lost tokens."""
        return self.texts.num_truncated

    def select(self, pairs) -> "EncodedPairs":
        """Returns the pairs at `pairs`, integers `(M,)`, in that order."""
        return EncodedPairs(self.texts.select(self.texts_of(pairs)), self.together)

    def texts_of(self, pairs) -> np.ndarray:
        """Returns the texts of some pairs, integers, in order.

        Example:
        >>> texts = EncodedTexts(np.zeros(4, "int32"), np.arange(5), np.ones(4, int))
        >>> EncodedPairs(texts, together=False).texts_of([1, 0]).tolist()
        [2, 3, 0, 1]
        """
        return (2 * np.asarray(pairs)[:, None] + [0, 1]).reshape(-1)


def lay_pairs(encoded: EncodedPairs, pairs, placement: Placement, pad_id: int) -> dict:
    """Lays pairs into rows.

    Args:
        encoded: the pairs.
        pairs: which of them, integers `(M,)`.
        placement: where each pair lies, where its texts lie together; else its width
            is used alone.
        pad_id: id that fills what no text takes.

    Returns:
        As `rows.lay`, of the 2 M texts in the order of the pairs.
    """
    texts = encoded.texts_of(pairs)
    if not encoded.together:
        places = one_a_row(len(texts), placement.width)
        return lay(encoded.texts, texts, places, pad_id)
    begins = np.zeros((len(texts) // 2, 2), np.int64)
    begins[:, 1] = encoded.texts.lengths[texts[::2]]
    places = Placement(
        np.repeat(placement.rows, 2),
        (placement.starts[:, None] + begins).reshape(-1),
        (2 * placement.numbers[:, None] - [1, 0]).reshape(-1),
        placement.num_rows,
        placement.width,
    )
    return lay(encoded.texts, texts, places, pad_id)


def equal_texts(texts: EncodedTexts) -> np.ndarray:
    """Returns a number for every text, the same for those of equal ids: int32 (N, 2).

    Args:
        texts: 2 N texts, as in `EncodedPairs`.
    """
    numbers: dict[bytes, int] = {}
    found = [
        numbers.setdefault(ids.tobytes(), len(numbers))
        for ids in np.split(texts.token_ids, texts.row_splits[1:-1])
    ]
    return np.array(found, np.int32).reshape(-1, 2)
