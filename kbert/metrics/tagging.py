"""Entities in the tags of words, and their scores as CoNLL-2003 counts them.

An entity is a run of words with tags of one type, such as B-LOC I-LOC. It is right
where its type, its first and its last word are: half of an entity counts as none.
"""

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

OUTSIDE = "O"
_PREFIXED = re.compile("([BIESLU])-(.+)", re.DOTALL)
# BILOU's letters in those of IOBES.
_LETTERS = {"L": "E", "U": "S"}


class Tag(NamedTuple):
    """A tag in its two parts.

    Args:
        prefix: "B", "I", "E" or "S"; "O" for a word outside of every entity.
        type: of the entity, such as "LOC"; "" outside.
    """

    prefix: str
    type: str


class Chunk(NamedTuple):
    """An entity among words.

    Args:
        type: such as "LOC".
        begin: index of its first word.
        end: index behind its last word.
    """

    type: str
    begin: int
    end: int


class Scores(NamedTuple):
    """How many entities were found; a score whose denominator is 0 is 0.

    Args:
        precision: the right ones among those found.
        recall: the right ones among those there are.
        f1: the harmonic mean of the two.
        support: how many there are.
    """

    precision: float
    recall: float
    f1: float
    support: int


@dataclasses.dataclass(frozen=True)
class TaggingScores:
    """The scores of all entities, and of those of each type.

    Args:
        overall: of all entities together, as the shared task ranks systems.
        by_type: of each type, in alphabetical order.
    """

    overall: Scores
    by_type: dict[str, Scores]


class Transitions(NamedTuple):
    """Where entities begin and end, as tables over C tags and, last, no word.

    Args:
        begins: bool `(C + 1, C + 1)`; an entity begins at the second of two tags.
        ends: bool `(C + 1, C + 1)`; one ends between the two.
        types: int32 `(C + 1,)`, the type of each tag by number.
    """

    begins: np.ndarray
    ends: np.ndarray
    types: np.ndarray


def has_entities(labels: Sequence[str]) -> bool:
    """Says whether tags mark entities: one at least is written as B-LOC is.

    >>> has_entities(["O", "B-LOC", "I-LOC"]), has_entities(["NOUN", "VERB"])
    (True, False)
    """
    return any(_PREFIXED.fullmatch(label) for label in labels)


def parse_tag(label: str) -> Tag:
    """Splits a tag; what is not written as B-LOC is lies outside of every entity.

    >>> parse_tag("U-LOC"), parse_tag("O")
    (Tag(prefix='S', type='LOC'), Tag(prefix='O', type=''))
    """
    match = _PREFIXED.fullmatch(label)
    if match is None:
        return Tag(OUTSIDE, "")
    letter, type_ = match.groups()
    return Tag(_LETTERS.get(letter, letter), type_)


def begins(before: Tag, after: Tag) -> bool:
    """Says whether an entity begins at the second of two tags.

    The rule is that of the CoNLL scorer: it holds for IOB1, where I-LOC may begin an
    entity, as well as for BIO and IOBES, and gives a meaning to every sequence.
    """
    if after.prefix == OUTSIDE:
        return False
    return after.prefix in "BS" or before.prefix in "ESO" or before.type != after.type


def ends(before: Tag, after: Tag) -> bool:
    """Says whether an entity ends between two tags; see `begins`."""
    if before.prefix == OUTSIDE:
        return False
    return before.prefix in "ES" or after.prefix in "BSO" or before.type != after.type


def transitions(labels: Sequence[str]) -> Transitions:
    """Returns the rule as tables over tags, for computing with indices."""
    tags = [parse_tag(label) for label in [*labels, OUTSIDE]]
    pairs = itertools.product(tags, tags)
    table = np.array([(begins(a, b), ends(a, b)) for a, b in pairs])
    begin, end = table.T.reshape(2, len(tags), len(tags))
    _, types = np.unique([tag.type for tag in tags], return_inverse=True)
    return Transitions(begin, end, types.astype(np.int32))


def chunks(tags: Sequence[str]) -> list[Chunk]:
    """Finds the entities in the tags of one text.

    Args:
        tags: one a word, in IOB1, BIO, IOBES or BILOU.

    Returns:
        The entities in order.

    >>> chunks(["I-PER", "I-PER", "B-PER", "O", "S-LOC"])
    [Chunk(type='PER', begin=0, end=2), Chunk(type='PER', begin=2, end=3), \
Chunk(type='LOC', begin=4, end=5)]
    """
    found, begin, before = [], 0, parse_tag(OUTSIDE)
    for index, label in enumerate([*tags, OUTSIDE]):
        tag = parse_tag(label)
        if ends(before, tag):
            found.append(Chunk(before.type, begin, index))
        if begins(before, tag):
            begin = index
        before = tag
    return found


def entity_scores(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> TaggingScores:
    """Scores entities: precision, recall and F1, micro-averaged and of each type.

    Args:
        truth: the tags of every text, one a word.
        predicted: the same, as predicted.

    Returns:
        `TaggingScores`; the numbers are those of seqeval, and of the script of the
        shared task (Tjong Kim Sang and De Meulder 2003).

    Raises:
        ValueError: if the numbers of texts, or of the words of one, differ.

    >>> entity_scores([["B-LOC", "I-LOC"]], [["B-LOC", "O"]]).overall.f1
    0.0
    """
    _check_lengths(truth, predicted)
    there, found = (
        {(i, chunk) for i, tags in enumerate(texts) for chunk in chunks(tags)}
        for texts in (truth, predicted)
    )
    types = sorted({chunk.type for _, chunk in there | found})
    counts = {type_: [0, 0, 0] for type_ in types}
    for column, chosen in enumerate((there & found, found, there)):
        for _, chunk in chosen:
            counts[chunk.type][column] += 1
    overall = [len(there & found), len(found), len(there)]
    return TaggingScores(
        scores(*overall), {type_: scores(*counts[type_]) for type_ in types}
    )


def scores(right: int, found: int, there: int) -> Scores:
    """Returns the scores that three counts of entities make.

    >>> scores(1, 2, 1)
    Scores(precision=0.5, recall=1.0, f1=0.6666666666666666, support=1)
    """
    return Scores(
        right / max(found, 1),
        right / max(there, 1),
        2 * right / max(found + there, 1),
        there,
    )


def _check_lengths(truth, predicted):
    """Refuses tags that do not stand beside each other."""
    if len(truth) != len(predicted):
        raise ValueError(
            "Every text must have true and predicted tags. Received: "
            f"{len(truth)} and {len(predicted)} texts."
        )
    for index, (ours, theirs) in enumerate(zip(truth, predicted, strict=True)):
        if len(ours) != len(theirs):
            raise ValueError(
                "Every word must have a true and a predicted tag. Received: "
                f"{len(ours)} and {len(theirs)} tags of text {index}."
            )
