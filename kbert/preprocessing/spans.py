"""Questions over windows of their contexts, and answers as spans of tokens.

The rule is that of run_squad.py of google-research/bert: `[CLS] question [SEP] window
[SEP]`, a new window every `doc_stride` tokens of the context, and where windows overlap
each token counts in the one that shows most of its surroundings. Characters are those
of the original context: the tokenizer's offsets map an answer to tokens and back.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbert.data.squad import Answer, stands_there
from kbert.preprocessing.packing import EncodedTexts, pack
from kbert.tokenization.unicode_tables import unicode_tables
from kbert.tokenization.wordpiece import BertTokenizer

_NOWHERE = (-1, -1)


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """W windows over the contexts of N questions, in the order of the questions.

    T is the number of tokens of a context.

    Attributes:
        encoded: the windows as ids, W of them.
        contexts: the N contexts.
        offsets: for each context the characters `(start, end)` of every token, int64
            (T, 2).
        examples: the question that each window is of, int64 (W,), not decreasing.
        starts: the first token of the context in each window, int64 (W,).
        counts: how many tokens of the context each window has, int64 (W,).
        begins: the position in the window where they begin, int64 (W,).
        owners: for each context the window, counted from 0, in which each token has
            most context, int64 (T,).
    """

    encoded: EncodedTexts
    contexts: list[str]
    offsets: list[np.ndarray]
    examples: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    begins: np.ndarray
    owners: list[np.ndarray]

    def __len__(self) -> int:
        """W, the number of windows."""
        return len(self.examples)

    def of_example(self, example: int) -> range:
        """Returns the windows of a question."""
        bounds = np.searchsorted(self.examples, [example, example + 1])
        return range(int(bounds[0]), int(bounds[1]))

    def span_of(self, example: int, answer: Answer) -> tuple[int, int]:
        """Returns the first and the last token of the context that hold an answer.

        Args:
            example: number of the question.
            answer: an answer to it.

        Returns:
            The numbers of two tokens; (-1, -1) if the answer does not stand where it
            says, or no token holds a character of it.
        """
        if not stands_there(answer, self.contexts[example]):
            return _NOWHERE
        end = answer.start + len(answer.text)
        starts, ends = self.offsets[example].T
        held = np.flatnonzero((ends > answer.start) & (starts < end))
        return (int(held[0]), int(held[-1])) if held.size else _NOWHERE

    def characters_of(self, example: int, first: int, last: int) -> tuple[int, int]:
        """Returns the characters `(start, end)` of the context that tokens stand for.

        An accent that follows as a character of its own belongs to its letter.

        Args:
            example: number of the question.
            first: the first token.
            last: the last token.
        """
        spans = self.offsets[example][first : last + 1]
        context, end = self.contexts[example], int(spans[:, 1].max())
        nonspacing = unicode_tables().nonspacing
        while end < len(context) and nonspacing[ord(context[end])]:
            end += 1
        return int(spans[:, 0].min()), end


class Targets(NamedTuple):
    """What windows should point to.

    Args:
        positions: where the answer starts and ends in each window, int32 (W, 2); 0,
            which is [CLS], where the window does not hold the whole of it.
        unplaced: the questions whose answers do not stand where they say.
        cut: the questions whose answer no window holds as a whole.
    """

    positions: np.ndarray
    unplaced: list[int]
    cut: list[int]


def make_windows(
    questions: Sequence[str],
    contexts: Sequence[str],
    tokenizer: BertTokenizer,
    *,
    max_length: int,
    doc_stride: int,
) -> Windows:
    """Cuts contexts into windows, each behind its question.

    A question is never cut. An empty context has one window without any of it.

    Args:
        questions: N questions.
        contexts: N contexts.
        tokenizer: cuts both.
        max_length: positions of a window, special tokens included.
        doc_stride: tokens of the context from one window's beginning to the next's;
            where a window has room for fewer, as many as it has.

    Returns:
        The `Windows`.

    Raises:
        ValueError: if a question leaves no room for a token of its context.
    """
    question_ids = tokenizer(list(questions))
    rooms = max_length - 3 - np.array([len(ids) for ids in question_ids])
    _check_rooms(rooms, max_length)
    encodings = {}
    for context in contexts:  # several questions share one
        if context not in encodings:
            encoding = tokenizer.encode(context)
            offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
            encodings[context] = (encoding.ids, offsets)
    first, second, owners, windows = [], [], [], []
    for example, (ids, context) in enumerate(zip(question_ids, contexts, strict=True)):
        context_ids, room = encodings[context][0], int(rooms[example])
        starts = window_starts(len(context_ids), room, doc_stride)
        owners.append(most_context(len(context_ids), starts, room))
        for start in starts.tolist():
            first.append(ids)
            second.append(context_ids[start : start + room])
            windows.append((example, start, len(second[-1]), len(ids) + 2))
    examples, starts, counts, begins = np.array(windows, np.int64).T
    return Windows(
        pack(
            first,
            second,
            cls_id=tokenizer.cls_id,
            sep_id=tokenizer.sep_id,
            max_length=max_length,
        ),
        list(contexts),
        [encodings[context][1] for context in contexts],
        examples,
        starts,
        counts,
        begins,
        owners,
    )


def _check_rooms(rooms: np.ndarray, max_length: int) -> None:
    full = np.flatnonzero(rooms < 1)
    if full.size:
        length = max_length - 3 - int(rooms[full[0]])
        raise ValueError(
            "A question must leave room for its context in a window. Received: "
            f"question {full[0]} of {length} tokens, where windows have {max_length} "
            f"and 3 are special tokens ({full.size:,} such questions). Make the "
            "preprocessor's `sequence_length` larger, or the question shorter."
        )


def window_starts(length: int, room: int, doc_stride: int) -> np.ndarray:
    """Returns the first token of each window over a context.

    Args:
        length: tokens of the context.
        room: most tokens of it that a window holds.
        doc_stride: see `make_windows`.

    Returns:
        int64 (K,), K at least 1.

    >>> window_starts(10, room=6, doc_stride=3).tolist()
    [0, 3, 6]
    """
    step = min(doc_stride, room)
    return np.arange(1 + max(0, -(-(length - room) // step))) * step


def most_context(length: int, starts: np.ndarray, room: int) -> np.ndarray:
    """Returns for each token the window in which it has most context.

    The smaller of the numbers of tokens to its left and right counts, and a hundredth
    of the window's length; the first window of equal ones.

    Args:
        length: tokens of the context, T.
        starts: the first token of each window, (K,).
        room: most tokens of it that a window holds.

    Returns:
        int64 (T,).
    """
    best, owners = np.full(length, -np.inf), np.zeros(length, np.int64)
    for window, start in enumerate(starts):
        held = np.arange(start, min(start + room, length))
        left, right = held - start, min(start + room, length) - 1 - held
        score = np.minimum(left, right) + 0.01 * len(held)
        better = score > best[held]
        best[held[better]], owners[held[better]] = score[better], window
    return owners


def find_targets(windows: Windows, gold: Sequence[Sequence[Answer]]) -> Targets:
    """Finds what the windows should point to: the first answer that stands in place.

    Args:
        windows: W windows of N questions.
        gold: N lists of answers, [] where the context holds none.

    Returns:
        `Targets`.
    """
    spans = np.full((len(gold), 2), -1)
    unplaced = []
    for example, answers in enumerate(gold):
        found = (windows.span_of(example, answer) for answer in answers)
        spans[example] = next((span for span in found if span != _NOWHERE), _NOWHERE)
        if answers and spans[example, 0] < 0:
            unplaced.append(example)
    first, last = spans[windows.examples].T
    ends = windows.starts + windows.counts
    inside = (first >= windows.starts) & (first >= 0) & (last < ends)
    shift = windows.begins - windows.starts
    positions = np.stack([first + shift, last + shift], axis=1)
    positions = np.where(inside[:, None], positions, 0).astype(np.int32)
    whole = np.bincount(windows.examples[inside], minlength=len(gold)) > 0
    cut = np.flatnonzero((spans[:, 0] >= 0) & ~whole)
    return Targets(positions, unplaced, cut.tolist())
