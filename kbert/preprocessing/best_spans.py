"""From the logits of windows to the best spans of each context.

As in run_squad.py of google-research/bert, but that what is no span of the context
never takes one of the `n_best_size` places.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kbert.preprocessing.spans import Windows


class Span(NamedTuple):
    """A part of a context.

    Args:
        text: the characters themselves.
        start: index of the first one in the context.
        end: index behind the last one.
        score: logit of the start plus logit of the end.
        probability: softmax of the score over the spans that were kept, and over no
            answer.
    """

    text: str
    start: int
    end: int
    score: float
    probability: float


class Found(NamedTuple):
    """What the windows of one question say.

    Args:
        null_score: of no answer: logit of the start plus logit of the end at [CLS], in
            the window where it is least.
        spans: the best spans, best first, no text twice; none for an empty context.
    """

    null_score: float
    spans: tuple[Span, ...]


@dataclasses.dataclass(frozen=True)
class QuestionAnswer:
    """The answer to one question.

    Args:
        text: the answer as it stands in the context; "" if that holds none.
        start: index of its first character in the context, None if there is none.
        end: index behind its last one, None if there is none.
        score: of the best span: logit of its start plus logit of its end; -inf if the
            context has no token.
        null_score: of no answer, the same sum at [CLS].
        alternatives: the best spans, best first, also where none is the answer.
    """

    text: str
    start: int | None
    end: int | None
    score: float
    null_score: float
    alternatives: tuple[Span, ...] = dataclasses.field(repr=False, default=())


def choose(found: Found, threshold: float | None) -> QuestionAnswer:
    """Returns the best span, or no answer where that is likelier by more than this.

    Args:
        found: the best spans.
        threshold: of `null_score - score`; None to answer always.
    """
    score = found.spans[0].score if found.spans else -math.inf
    nothing = threshold is not None and found.null_score - score > threshold
    text, start, end = "", None, None
    if found.spans and not nothing:
        text, start, end, *_ = found.spans[0]
    return QuestionAnswer(text, start, end, score, found.null_score, found.spans)


def best_spans(
    windows: Windows,
    start: np.ndarray,
    end: np.ndarray,
    *,
    n_best_size: int,
    max_answer_length: int,
) -> Iterator[Found]:
    """Yields, a question, the best spans of its context.

    Args:
        windows: W windows of N questions.
        start: logits of the answer's first token, float (W, S).
        end: logits of its last token, float (W, S).
        n_best_size: how many starts and ends of a window to combine, and how many spans
            to keep.
        max_answer_length: most tokens of a span.
    """
    example, window = 0, 0
    while window < len(windows):
        null_score, candidates = math.inf, []
        for number, window in enumerate(windows.of_example(example)):
            null_score = min(null_score, float(start[window, 0] + end[window, 0]))
            candidates += _candidates(
                windows,
                window,
                number,
                start[window],
                end[window],
                n_best_size,
                max_answer_length,
            )
        candidates.sort(key=lambda candidate: -candidate[0])
        yield Found(
            null_score,
            _spans(windows, example, candidates, null_score, n_best_size),
        )
        example, window = example + 1, window + 1


def _candidates(windows, window, number, start, end, n_best_size, max_answer_length):
    """Returns (score, first token, last token) of the best spans of a window."""
    begin, count = int(windows.begins[window]), int(windows.counts[window])
    first_token = int(windows.starts[window])
    inside = slice(begin, begin + count)
    starts = _largest(start[inside], n_best_size)
    ends = _largest(end[inside], n_best_size)
    owners = windows.owners[int(windows.examples[window])]
    starts = starts[owners[first_token + starts] == number]
    lengths = ends[None, :] - starts[:, None] + 1
    scores = start[inside][starts][:, None] + end[inside][ends][None, :]
    rows, columns = np.nonzero((lengths > 0) & (lengths <= max_answer_length))
    return [
        (float(scores[row, column]), int(first_token + starts[row]), int(last))
        for row, column, last in zip(
            rows, columns, first_token + ends[columns], strict=True
        )
    ]


def _largest(logits: np.ndarray, count: int) -> np.ndarray:
    """Returns the places of the largest logits, the largest first."""
    return (-logits).argsort(kind="stable")[:count]


def _spans(windows, example, candidates, null_score, n_best_size):
    """Returns the best candidates as `Span`s, of those with one text the best."""
    kept: dict[str, tuple[int, int, float]] = {}
    for score, first, last in candidates:
        begin, end = windows.characters_of(example, first, last)
        kept.setdefault(windows.contexts[example][begin:end], (begin, end, score))
        if len(kept) == n_best_size:
            break
    scores = np.array([null_score, *(score for _, _, score in kept.values())])
    weights = np.exp(scores - scores.max())
    return tuple(
        Span(text, *found, float(weight / weights.sum()))
        for (text, found), weight in zip(kept.items(), weights[1:], strict=True)
    )
