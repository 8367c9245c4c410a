"""Prompts with several choices each: pairs of texts, of which one is right.

Every choice is a text of its own, `[CLS] prompt [SEP] choice [SEP]` (section 4.4), in a
row of its own. Where examples have unlike numbers of choices, rows of padding stand
for those that lack, and `choice_mask` tells.
"""

import dataclasses

import numpy as np

from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.raw_text import split_pair
from kbert.preprocessing.rows import Placement, entries, lay
from kbert.preprocessing.words import listed

LEAST_CHOICES = 2


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedChoices:
    """N examples of several texts each.

    Attributes:
        texts: the texts, those of one example after those of another.
        splits: int64 `(N + 1,)`, where each example's texts begin.
        num_choices: K, for which every example has rows.
    """

    texts: EncodedTexts
    splits: np.ndarray
    num_choices: int

    def __len__(self) -> int:
        """N, the number of examples."""
        return len(self.splits) - 1

    @property
    def counts(self) -> np.ndarray:
        """Choices of every example: int64 `(N,)`."""
        return np.diff(self.splits)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of every example's longest text: int64 `(N,)`."""
        return np.maximum.reduceat(self.texts.lengths, self.splits[:-1])

    @property
    def num_tokens(self) -> float:
        """Tokens of all texts, to each of the K rows of an example."""
        return self.texts.num_tokens / self.num_choices

    @property
    def num_texts(self) -> int:
        """The number of texts, of which `num_truncated` is a part."""
        return len(self.texts)

    @property
    def num_truncated(self) -> int:
        """How many texts lost tokens."""
        return self.texts.num_truncated

    def select(self, examples) -> "EncodedChoices":
        """Returns the examples at `examples`, integers `(M,)`, in that order."""
        splits = np.concatenate([[0], np.cumsum(self.counts[examples])])
        return EncodedChoices(
            self.texts.select(self.texts_of(examples)), splits, self.num_choices
        )

    def texts_of(self, examples) -> np.ndarray:
        """Returns the texts of some examples, integers, in order."""
        return entries(self.splits, examples)


def lay_choices(encoded: EncodedChoices, examples, placement, pad_id: int) -> dict:
    """Lays examples into rows, K for each.

    Args:
        encoded: the examples.
        examples: which of them, integers `(M,)`.
        placement: one a row; its width is used.
        pad_id: id that fills what no text takes.

    Returns:
        As `rows.lay`, in M * K rows, and `choice_mask`, int32 `(M, K)`: 1 where an
        example has a choice.
    """
    examples = np.asarray(examples)
    count, width = encoded.num_choices, placement.width
    mask = np.arange(count) < encoded.counts[examples][:, None]
    rows = np.flatnonzero(mask)
    zeros = np.zeros(len(rows), np.int64)
    places = Placement(rows, zeros, zeros + 1, mask.size, width)
    inputs = lay(encoded.texts, encoded.texts_of(examples), places, pad_id)
    return {**inputs, "choice_mask": mask.astype(np.int32)}


def read_choices(x) -> tuple[list, list[list]]:
    """Reads prompts and their choices.

    Args:
        x: `(prompts, choices)` or `{"first": prompts, "second": choices}`: N texts, and
            for each a list of texts. Lists, arrays, Series, ragged tensors.

    Returns:
        N prompts and N lists.

    Raises:
        TypeError: if the choices of an example are no list.
        ValueError: if there is no example, the two parts differ in number, or an
            example has fewer than two choices.
    """
    prompts, choices = split_pair(x)
    if choices is None:
        raise ValueError(
            "Multiple choice takes (prompts, choices), with a list of choices for each "
            f"prompt. Received: a {type(x).__name__} without choices."
        )
    prompts, choices = listed(prompts, "Prompts"), listed(choices, "Choices")
    if len(prompts) != len(choices) or not prompts:
        raise ValueError(
            "Every prompt needs a list of choices. Received: "
            f"{len(prompts)} prompts and {len(choices)} lists of choices."
        )
    for index, texts in enumerate(choices):
        if not isinstance(texts, list | tuple | np.ndarray):
            raise TypeError(
                "The choices of a prompt must be a list of texts. Received: "
                f"{texts!r} as those of prompt {index}."
            )
        if len(texts) < LEAST_CHOICES:
            raise ValueError(
                f"Every prompt needs at least {LEAST_CHOICES} choices. Received: "
                f"{list(texts)} as those of prompt {index}."
            )
    return prompts, [list(texts) for texts in choices]


def encode_choices(x, preprocessor) -> EncodedChoices:
    """Tokenizes and packs raw prompts and choices.

    Args:
        x: as for `read_choices`.
        preprocessor: a `BertPreprocessor`.

    Raises:
        TypeError, ValueError: as `read_choices`, and as the preprocessor of a pair,
            which counts choices through all examples.
    """
    prompts, choices = read_choices(x)
    counts = [len(texts) for texts in choices]
    firsts = [
        prompt
        for prompt, count in zip(prompts, counts, strict=True)
        for _ in range(count)
    ]
    texts = preprocessor.encode((firsts, [text for texts in choices for text in texts]))
    splits = np.concatenate([[0], np.cumsum(counts)])
    return EncodedChoices(texts, splits, max(counts))


def choices_of_arrays(x) -> EncodedChoices:
    """Reads ready arrays as examples, each text without its padding.

    Args:
        x: numpy arrays `token_ids`, `segment_ids` and `padding_mask`, integers
            `(N, K, S)`, as transformers takes them. A choice without a token is none.

    Raises:
        ValueError: if a text does not begin at the first position, padding or the
            first segment lie between others, or a choice that is none before one.
    """
    mask = x["padding_mask"].astype(bool)
    lengths, counts = mask.sum(axis=-1), mask.any(axis=-1).sum(axis=-1)
    positions, places = np.arange(mask.shape[-1]), np.arange(mask.shape[1])
    in_order = (mask == (positions < lengths[..., None])).all()
    if not in_order or (mask.any(axis=-1) != (places < counts[:, None])).any():
        raise ValueError(
            "`padding_mask` must be 1 from the first position of a text to its last, "
            "and choices must come before those that are none. Received: other ones."
        )
    if counts.min() < LEAST_CHOICES:
        raise ValueError(
            f"Every example needs at least {LEAST_CHOICES} choices. Received: "
            f"{counts.min()} in example {counts.argmin()}."
        )
    first = (x["segment_ids"] == 0) & mask
    starts = first.sum(axis=-1)
    segments = ((positions >= starts[..., None]) & mask).astype(int)
    if (segments != x["segment_ids"] * mask).any():
        raise ValueError(
            "`segment_ids` must be 0, then 1, in every text. Received: others."
        )
    present = mask.any(axis=-1)
    texts = EncodedTexts(
        x["token_ids"][mask].astype(np.int32),
        np.concatenate([[0], np.cumsum(lengths[present])]),
        starts[present].astype(np.int32),
    )
    return EncodedChoices(texts, np.concatenate([[0], np.cumsum(counts)]), len(places))


def encode_answers(y, counts) -> np.ndarray:
    """Turns the indices of the right choices into targets.

    Args:
        y: N integers, each below the number of the example's choices.
        counts: those numbers, integers `(N,)`.

    Returns:
        int32 `(N,)`.

    Raises:
        TypeError: if one is no integer; its index is named.
        ValueError: if there are not N, or one is out of range.
    """
    values = listed(y, "Answers")
    if len(values) != len(counts):
        raise ValueError(
            "Every example needs the index of its right choice. Received: "
            f"{len(counts)} examples, {len(values)} indices."
        )
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(
                "The right choice must be told by its index, from 0. Received: "
                f"{value!r} for example {index}."
            )
        if value == -1:
            raise ValueError(
                "An answer of -1 marks a test split whose answers are hidden: use "
                f"predict. Received: -1 for example {index}."
            )
        if not 0 <= value < counts[index]:
            raise ValueError(
                "The index of the right choice must be below the number of choices, "
                f"{counts[index]}. Received: {value} for example {index}."
            )
    return np.array(values, np.int32)
