"""Answers as people write them to lists of `Answer`s, and their checks."""

from collections.abc import Iterable, Mapping

import numpy as np

from kbert.data.squad import Answer
from kbert.tokenization.encoding import as_text

_TEXT, _START = "text", "answer_start"
_HINT = (
    "An answer is (text, start), the index of its first character in the context; "
    "several to one question are a list of such, and [] says that the context holds "
    "none."
)


def read_answers(y, count: int) -> list[list[Answer]]:
    """Reads the answers to N questions.

    Args:
        y: for each question `(text, start)` or an `Answer`; a list of these; [] where
            the context holds no answer; or `{"text": …, "answer_start": …}` with one of
            each or lists. Or one such dictionary for all, of columns, in which an
            answer_start of -1 stands for no answer.
        count: N.

    Returns:
        N lists of answers.

    Raises:
        TypeError: if something is no answer; its index is named.
        ValueError: if there are not N, an answer is empty, or its start negative.

    Example:
    >>> read_answers([("May", 10), []], 2)
    [[Answer(text='May', start=10)], []]
    """
    if isinstance(y, Mapping):
        y = [
            [] if isinstance(start, int) and start == -1 else _row(text, start)
            for text, start in _pairs(y, "all questions")
        ]
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise TypeError(f"Answers must be a list. {_HINT} Received: {str(y)[:60]!r}.")
    rows = list(y)
    if len(rows) != count:
        raise ValueError(
            f"Every question needs its answers. Received: {count} questions, answers "
            f"to {len(rows)}."
        )
    return [_read(row, index) for index, row in enumerate(rows)]


def _row(text, start):
    """Returns what stands in one row of two columns: one answer, or lists."""
    if isinstance(text, str | bytes):
        return (text, start)
    return {_TEXT: text, _START: start}


def _pairs(answers: Mapping, where: str) -> list[tuple]:
    """Returns the texts of a dictionary, each with its start."""
    if set(answers) != {_TEXT, _START}:
        raise ValueError(
            f"A dictionary of answers must have the keys {[_START, _TEXT]}. Received: "
            f"{sorted(map(str, answers))} for {where}."
        )
    texts, starts = _listed(answers[_TEXT]), _listed(answers[_START])
    if len(texts) != len(starts):
        raise ValueError(
            f"Every answer needs its start. Received: {len(texts)} texts and "
            f"{len(starts)} starts for {where}."
        )
    return list(zip(texts, starts, strict=True))


def _listed(values) -> list:
    if isinstance(values, list | tuple):
        return list(values)
    array = np.asarray(values)  # numpy, pandas, an eager tensor, one text or number
    return array.reshape(-1).tolist() if array.ndim < 2 else array.tolist()


def _read(row, index: int) -> list[Answer]:
    """Reads the answers to one question."""
    where = f"question {index}"
    if isinstance(row, Mapping):
        row = _pairs(row, where)
    if isinstance(row, tuple) and row and isinstance(row[0], str | bytes):
        row = [row]
    if not isinstance(row, list | tuple):
        raise TypeError(f"{_HINT} Received: {str(row)[:60]!r} for {where}.")
    answers = []
    for answer in row:
        several = _pairs(answer, where) if isinstance(answer, Mapping) else [answer]
        answers += [_answer(one, where) for one in several]
    return answers


def _answer(answer, where: str) -> Answer:
    """Checks one answer."""
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TypeError(f"{_HINT} Received: {str(answer)[:60]!r} for {where}.")
    text, start = answer
    if isinstance(start, bool) or not isinstance(start, int | np.integer):
        raise TypeError(f"{_HINT} Received: the start {start!r} for {where}.")
    text = as_text(text)
    if not text.strip() or start < 0:
        raise ValueError(
            "An answer must have characters, and start in the context; [] stands for "
            f"no answer. Received: {text!r} with the start {start} for {where}."
        )
    return Answer(text, int(start))
