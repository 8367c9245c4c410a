"""Which stretches of documents become the segments of instances.

The procedure of google-research/bert's `create_pretraining_data.py`: sentences are
gathered until they reach the length aimed at, and cut between two of them at random;
in half of the cases the second segment then comes from another document, and the
sentences it takes the place of are used again. Here sentences are numbers alone, and
what is gathered is found by bisection, so that a pass costs little a sentence.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from kbert.pretraining.settings import InstanceSettings

# Tries to find another document than the one at hand, as in Google's code.
_TRIES = 10
_DRAWN = 1 << 14


class Documents(NamedTuple):
    """D documents of sentences of tokens, one after another.

    Attributes:
        tokens: integers (T,), the ids.
        sentence_splits: int64 (sentences + 1,); sentence s is
            `tokens[sentence_splits[s]:sentence_splits[s + 1]]`, not empty.
        document_splits: int64 (D + 1,), in sentences; no document is empty.
    """

    tokens: np.ndarray
    sentence_splits: np.ndarray
    document_splits: np.ndarray

    @property
    def size(self) -> int:
        """D, the number of documents."""
        return len(self.document_splits) - 1


class Segments(NamedTuple):
    """Where the segments of N instances lie in `Documents.tokens`.

    Attributes:
        first_starts: int64 (N,).
        first_lengths: int64 (N,), at least 1.
        second_starts: int64 (N,).
        second_lengths: int64 (N,), 0 where there is no second segment.
        labels: int64 (N,): 0 where the second segment is the next one, 1 where it is
            a random one or, of swapped ones, the one before.
    """

    first_starts: np.ndarray
    first_lengths: np.ndarray
    second_starts: np.ndarray
    second_lengths: np.ndarray
    labels: np.ndarray

    def select(self, indices) -> "Segments":
        """Returns those at `indices`, integers (M,), in that order."""
        return Segments(*(field[indices] for field in self))


def plan_segments(
    documents: Documents, settings: InstanceSettings, rng: np.random.Generator
) -> Segments:
    """Goes through documents once, and says what the segments of instances are.

    Segments may be longer than fits; `assembling.assemble` cuts them.

    Args:
        documents: at least two where a second segment may be random.
        settings: what instances are to be like.
        rng: what decides.

    Returns:
        `Segments` in the order of the documents.
    """
    draw = _draws(rng).__next__
    starts = documents.sentence_splits.tolist()
    bounds = documents.document_splits.tolist()
    plan = {"random": _with_random, "order": _with_order, "none": _without_second}
    found: list[int] = []
    for number in range(documents.size):
        target = settings.budget
        if draw() < settings.short_seq_prob:
            target = 2 + int(draw() * (target - 1))
        plan[settings.next_sentence](found, starts, bounds, number, target, draw)
    return Segments(*np.array(found, np.int64).reshape(-1, 5).T)


def _draws(rng) -> Iterator[float]:
    """Yields random numbers from [0, 1), drawn many at a time."""
    while True:
        yield from rng.random(_DRAWN).tolist()


def _with_random(
    found: list[int],
    starts: list[int],
    bounds: list[int],
    number: int,
    target: int,
    draw: Callable[[], float],
) -> None:
    """Adds the instances of one document whose second segments may be random.

    Args:
        found: where five numbers an instance are added, as in `Segments`.
        starts: where sentences begin, in tokens.
        bounds: where documents begin, in sentences.
        number: of the document.
        target: tokens aimed at.
        draw: returns a random number from [0, 1).
    """
    sentence, end = bounds[number], bounds[number + 1]
    while sentence < end:
        start = starts[sentence]
        stop = bisect_left(starts, start + target, sentence + 1, end)
        gathered = stop - sentence
        cut = sentence + 1
        if gathered > 1:
            cut += int(draw() * (gathered - 1))
        length = starts[cut] - start
        if gathered == 1 or draw() < 0.5:
            other = _other_document(number, len(bounds) - 1, draw)
            first, last = bounds[other], bounds[other + 1]
            first += int(draw() * (last - first))
            wanted = starts[first] + target - length
            last = bisect_left(starts, wanted, first + 1, last)
            second = starts[first]
            found += (start, length, second, starts[last] - second, 1)
            sentence = cut
        else:
            found += (start, length, starts[cut], starts[stop] - starts[cut], 0)
            sentence = stop


def _other_document(number, count, draw) -> int:
    """Returns a random document, as a rule another one."""
    other = number
    for _ in range(_TRIES):
        other = int(draw() * count)
        if other != number:
            break
    return other


def _with_order(found, starts, bounds, number, target, draw) -> None:
    """Adds the instances of one document whose segments may be swapped.

    A sentence that is long enough alone is cut in itself; one of a single token that
    is left over makes no instance.
    """
    sentence, end = bounds[number], bounds[number + 1]
    while sentence < end:
        start = starts[sentence]
        stop = bisect_left(starts, start + target, sentence + 1, end)
        total = starts[stop] - start
        if stop - sentence > 1:
            length = starts[sentence + 1 + int(draw() * (stop - sentence - 1))] - start
        else:
            length = 1 + int(draw() * (total - 1))
        sentence = stop
        if total < 2:
            continue
        if draw() < 0.5:
            found += (start + length, total - length, start, length, 1)
        else:
            found += (start, length, start + length, total - length, 0)


def _without_second(found, starts, bounds, number, target, draw) -> None:
    """Adds the instances of one document, each one segment."""
    sentence, end = bounds[number], bounds[number + 1]
    while sentence < end:
        stop = bisect_left(starts, starts[sentence] + target, sentence + 1, end)
        found += (starts[sentence], starts[stop] - starts[sentence], 0, 0, 0)
        sentence = stop
