"""The names of a head's classes: given, counted, or those that a preset has."""

import numbers
from collections.abc import Sequence

from kbert.preprocessing.labels import check_names


def name_classes(
    labels, num_classes, *, at_least: int = 2, hint: str = ""
) -> tuple[str, ...]:
    """Returns the names of a head's classes, checked.

    Args:
        labels: the names; None for LABEL_0, LABEL_1, … as in transformers.
        num_classes: how many there are; None for as many as names.
        at_least: least number of classes.
        hint: as for `check_number`.

    Raises:
        TypeError: if `num_classes` is no integer, or as `check_names`.
        ValueError: if both are None or contradict each other, or as `check_names`.

    >>> name_classes(None, 2)
    ('LABEL_0', 'LABEL_1')
    """
    check_number(num_classes, at_least, hint)
    if labels is None:
        if num_classes is None:
            raise ValueError(
                "A classifier needs `labels` or `num_classes`. Received: neither."
            )
        labels = [f"LABEL_{index}" for index in range(num_classes)]
    labels = check_names(labels, at_least=at_least)
    if num_classes not in (None, len(labels)):
        raise ValueError(
            "`num_classes` must be the number of labels. Received: "
            f"num_classes={num_classes}, labels={labels!r}."
        )
    return labels


def check_number(num_classes, at_least: int, hint: str = "") -> None:
    """Refuses a number of classes that is none, or too small; None passes.

    Args:
        num_classes: the number.
        at_least: the least allowed.
        hint: what to do instead, a sentence.
    """
    if num_classes is None:
        return
    if isinstance(num_classes, bool) or not isinstance(num_classes, numbers.Integral):
        raise TypeError(
            f"`num_classes` must be an integer. Received: num_classes={num_classes!r}."
        )
    if num_classes < at_least:
        raise ValueError(
            f"`num_classes` must be at least {at_least}. Received: "
            f"num_classes={num_classes}.{hint and ' '}{hint}"
        )


def same_names(saved: Sequence[str], names: Sequence[str]) -> bool:
    """Says whether a saved head is for these classes.

    Nameless ones (LABEL_0, LABEL_1, …) take any names of the same number.
    """
    nameless = tuple(f"LABEL_{index}" for index in range(len(saved)))
    if len(saved) != len(names):
        return False
    return tuple(saved) in (tuple(names), nameless) or tuple(names) == nameless
