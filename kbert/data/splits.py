"""Divide labelled texts into a part to learn from and a part held out."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


def stratified_split(
    labels: Sequence, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hold out a part in which every class has its share.

    Exactly `N * fraction` (rounded) rows are held out, unless that cannot give every
    class a row in both parts.

    Args:
        labels: N labels, strings or numbers.
        fraction: of the rows to hold out, above 0 and below 1.
        seed: of the choice; the same seed gives the same parts on every machine.

    Returns:
        Indices to learn from and indices held out, int64, each in rising order; every
        class stands in both.

    Raises:
        ValueError: the fraction is out of range, or a class has one row only.

    >>> learn, held_out = stratified_split(["a", "b", "a", "b"], 0.5, seed=0)
    >>> len(learn), len(held_out)
    (2, 2)
    """
    if not 0 < fraction < 1:
        raise ValueError(
            "The fraction to hold out must lie between 0 and 1. "
            f"Received: fraction={fraction}."
        )
    names, classes, counts = np.unique(
        np.asarray(labels), return_inverse=True, return_counts=True
    )
    alone = [str(name) for name, count in zip(names, counts, strict=True) if count < 2]
    if alone or not len(names):
        raise ValueError(
            "Every class must have at least two rows, one for each part of the split. "
            f"Received: {len(classes)} rows, with one row only for {alone}. Add rows "
            "of these classes, merge them or leave them out."
        )
    held = _shares(counts, fraction)
    # Not the newer Generator, whose numbers may change between numpy versions (NEP 19).
    generator = np.random.RandomState(seed)
    chosen = np.zeros(len(classes), "bool")
    for index, number in enumerate(held):
        members = np.flatnonzero(classes == index)
        chosen[generator.permutation(members)[:number]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _shares(counts: np.ndarray, fraction: float) -> np.ndarray:
    """How many of each class to hold out: at least one, and not all, of each."""
    shares = counts * fraction
    held = np.clip(np.floor(shares).astype("int64"), 1, counts - 1)
    missing = round(counts.sum() * fraction) - held.sum()
    step = np.sign(missing)
    for _ in range(abs(missing)):
        able = (held + step >= 1) & (held + step < counts)
        if able.any():
            held[np.argmax(np.where(able, step * (shares - held), -np.inf))] += step
    return held


class Duplicate(NamedTuple):
    """A text (or pair) that stands in both parts, and how often in each."""

    text: str | tuple[str, str]
    in_first: int
    in_second: int


def normalized(text: str | tuple[str, str]) -> str | tuple[str, ...]:
    """The form in which two texts count as the same: letter case and spaces aside.

    >>> normalized(" Good   film")
    'good film'
    """
    if isinstance(text, str):
        return " ".join(text.casefold().split())
    return tuple(" ".join(part.casefold().split()) for part in text)


def duplicates_across(first: Sequence, second: Sequence) -> list[Duplicate]:
    """The texts that stand in both parts, letter case and spaces aside.

    A text that was learnt by heart is no test. Report them, or drop them from one part.

    Args:
        first: texts, or pairs of texts as tuples.
        second: the same of the other part.

    Returns:
        One entry a text, in the order of its first appearance in `first`.

    >>> duplicates_across(["Good film.", "Bad."], ["good  film.", "Good film."])
    [Duplicate(text='Good film.', in_first=1, in_second=2)]
    """
    in_first = Counter(normalized(text) for text in first)
    in_second = Counter(normalized(text) for text in second)
    found = {}
    for text in first:
        key = normalized(text)
        if key in in_second and key not in found:
            found[key] = Duplicate(text, in_first[key], in_second[key])
    return list(found.values())
