"""The scores of SQuAD 1.1 and 2.0, as their official scripts compute them.

The scripts are evaluate-v1.1.py and evaluate-v2.0.py of
https://rajpurkar.github.io/SQuAD-explorer. All scores are in percent.
"""

import collections
import re
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Threshold(NamedTuple):
    """The best threshold for a score.

    Args:
        score: the score with it, in percent.
        threshold: a question is answered where its margin is at most so much.
    """

    score: float
    threshold: float


def normalize_answer(text: str) -> str:
    """Lowercases, then takes out ASCII punctuation, articles and further blanks.

    >>> normalize_answer("The  Cat's  pyjamas!")
    'cats pyjamas'
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(predicted: str, gold: str) -> float:
    """1.0 where the normalised answers are equal, else 0.0."""
    return float(normalize_answer(predicted) == normalize_answer(gold))


def f1(predicted: str, gold: str, *, version: str = "1.1") -> float:
    """Harmonic mean of precision and recall over words of the normalised answers.

    Where one has no words, version 1.1 gives 0, version 2.0 whether both have none.

    >>> f1("in the month of May", "May")
    0.4
    >>> f1("", "", version="2.0"), f1("", "")
    (1.0, 0.0)
    """
    words = normalize_answer(predicted).split()
    gold_words = normalize_answer(gold).split()
    if version == "2.0" and not (words and gold_words):
        return float(words == gold_words)
    common = (collections.Counter(words) & collections.Counter(gold_words)).total()
    return 2 * common / (len(words) + len(gold_words)) if common else 0.0


def answer_scores(
    predicted: Sequence[str], gold: Sequence[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores every answer against the closest of its gold answers.

    Args:
        predicted: N answers, "" for none.
        gold: N lists of gold answers, [] where the context holds none. If there is
            such a one, the rules are those of 2.0, else of 1.1.

    Returns:
        Exact match and F1, each in [0, 1], float64 (N,).

    Raises:
        ValueError: if their numbers differ, or there is none.
    """
    if len(predicted) != len(gold) or not len(gold):
        raise ValueError(
            "Every question must have a predicted and a list of gold answers. "
            f"Received: {len(predicted)} predicted answers for {len(gold)} questions."
        )
    version = "1.1" if all(gold) else "2.0"
    scores = np.zeros((2, len(gold)))
    for index, (answer, answers) in enumerate(zip(predicted, gold, strict=True)):
        if version == "2.0":
            answers = [text for text in answers if normalize_answer(text)] or [""]
        scores[0, index] = max(exact_match(answer, text) for text in answers)
        scores[1, index] = max(f1(answer, text, version=version) for text in answers)
    return scores[0], scores[1]


def squad_scores(
    predicted: Sequence[str], gold: Sequence[Sequence[str]]
) -> dict[str, float]:
    """The official scores, in percent.

    Args:
        predicted: N answers, "" for none.
        gold: N lists of gold answers, [] where the context holds none.

    Returns:
        "exact_match" and "f1"; where some questions have no answer, the same for the
        questions that have one ("has_answer_exact_match", …) and for the others
        ("no_answer_exact_match", …).

    Raises:
        ValueError: as `answer_scores`.

    >>> scores = squad_scores(["the cat", ""], [["Cat", "a dog"], []])
    >>> scores["exact_match"], scores["no_answer_f1"]
    (100.0, 100.0)
    """
    exact, overlap = answer_scores(predicted, gold)
    has_answer = np.array([bool(answers) for answers in gold])
    scores = _means("", exact, overlap)
    if not has_answer.all():
        for name, part in (("has_answer_", has_answer), ("no_answer_", ~has_answer)):
            if part.any():
                scores |= _means(name, exact[part], overlap[part])
    return scores


def _means(name: str, exact: np.ndarray, overlap: np.ndarray) -> dict[str, float]:
    return {
        f"{name}exact_match": 100 * float(exact.mean()),
        f"{name}f1": 100 * float(overlap.mean()),
    }


def best_threshold(
    scores: np.ndarray, has_answer: np.ndarray, margins: np.ndarray
) -> Threshold:
    """Finds the margin up to which questions should be answered.

    Args:
        scores: of the answer to each question if it is given, in [0, 1]; float (N,).
        has_answer: whether its context holds an answer, bool (N,). Where not, the
            score is 1 for not answering and 0 for an answer.
        margins: how much likelier no answer is than the answer, float (N,).

    Returns:
        The best score and a threshold that reaches it. Among the smallest ones that do
        it is in the middle between two margins, so that no answer hangs on the last
        digit of its margin, or 1 beyond them all.

    Raises:
        ValueError: if the arrays are not (N,), N at least 1, or a margin is no number.

    >>> best_threshold(np.array([1.0, 0.0]), np.array([True, False]),
    ...     np.array([-3.0, 2.0]))
    Threshold(score=100.0, threshold=-0.5)
    """
    scores = np.asarray(scores, "float64")
    has_answer = np.asarray(has_answer, "bool")
    margins = np.asarray(margins, "float64")
    same = scores.shape == has_answer.shape == margins.shape
    if scores.ndim != 1 or not scores.size or not same or np.isnan(margins).any():
        raise ValueError(
            "Scores, answerability and margins must be numbers of the shape (N,), N at "
            f"least 1. Received: {scores.shape}, {has_answer.shape}, {margins.shape}, "
            f"{int(np.isnan(margins).sum())} of the margins not a number."
        )
    gains = np.where(has_answer, scores, -1.0)
    values, group = np.unique(margins, return_inverse=True)
    totals = np.cumsum(np.bincount(group, weights=gains, minlength=len(values)))
    best, nothing = int(totals.argmax()), int((~has_answer).sum())
    if totals[best] <= 0:
        return Threshold(100 * nothing / len(scores), float(values[0] - 1))
    edges = [values[best], *values[best + 1 : best + 2]]
    threshold = float(np.mean(edges)) if len(edges) > 1 else float(values[best] + 1)
    return Threshold(100 * float(nothing + totals[best]) / len(scores), threshold)
