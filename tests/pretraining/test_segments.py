"""Which stretches become segments: what holds of all, and the chances."""

import numpy as np
import pytest

from kbert.pretraining.segments import Documents, plan_segments
from kbert.pretraining.settings import InstanceSettings


def make_documents(count=300, seed=0, sentences=20, tokens=30):
    """Documents of random sentences; token t of the corpus has the id t."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, sentences, count)
    lengths = rng.integers(1, tokens, sizes.sum())
    return Documents(
        np.arange(lengths.sum()),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


DOCUMENTS = make_documents()
STARTS = DOCUMENTS.sentence_splits
# The document that every token is of.
OWNER = np.repeat(np.arange(DOCUMENTS.size), np.diff(STARTS[DOCUMENTS.document_splits]))


def plan(seed=0, documents=DOCUMENTS, **settings):
    settings = InstanceSettings(**{"sequence_length": 64, **settings})
    return plan_segments(documents, settings, np.random.default_rng(seed))


def ends(starts, lengths):
    return starts + lengths


@pytest.mark.parametrize("next_sentence", ["random", "none"])
def test_segments_are_whole_sentences_of_one_document(next_sentence):
    found = plan(next_sentence=next_sentence)
    pairs = [(found.first_starts, found.first_lengths)]
    if next_sentence == "random":
        pairs.append((found.second_starts, found.second_lengths))
    for starts, lengths in pairs:
        assert lengths.min() >= 1
        assert np.isin(starts, STARTS).all() and np.isin(starts + lengths, STARTS).all()
        np.testing.assert_array_equal(OWNER[starts], OWNER[starts + lengths - 1])


def test_no_sentence_is_lost():
    # Sentences that a random segment takes the place of are used again.
    for next_sentence in ("random", "order", "none"):
        found = plan(next_sentence=next_sentence, seed=1)
        covered = np.zeros(len(OWNER), bool)
        true = found.labels == 0 if next_sentence == "random" else found.labels >= 0
        for number in range(len(found.labels)):
            start = found.first_starts[number]
            covered[start : start + found.first_lengths[number]] = True
            if true[number]:
                start = found.second_starts[number]
                covered[start : start + found.second_lengths[number]] = True
        lone = np.diff(STARTS) == 1  # left over at the end, too short to be ordered
        if next_sentence == "order":
            covered |= np.repeat(lone, np.diff(STARTS))
        assert covered.all()


def test_next_segments_are_next_and_random_ones_are_of_another_document():
    found = plan()
    follows = ends(found.first_starts, found.first_lengths) == found.second_starts
    same = OWNER[found.first_starts] == OWNER[found.second_starts]
    np.testing.assert_array_equal(found.labels == 0, follows & same)
    assert not same[found.labels == 1].any()


def test_instances_aim_at_the_length():
    found = plan(short_seq_prob=0.0)
    total = found.first_lengths + found.second_lengths
    last = np.isin(
        ends(found.second_starts, found.second_lengths),
        STARTS[DOCUMENTS.document_splits],
    )
    # Enough, unless the document ended.
    assert (total[~last] >= 61).all()
    assert total.max() < 61 + 30 + 30
    shorter = plan(short_seq_prob=1.0)
    assert len(shorter.labels) > 1.3 * len(found.labels)


def test_half_of_the_seconds_are_random():
    documents = make_documents(4000, seed=3)
    for next_sentence in ("random", "order"):
        found = plan(5, documents, next_sentence=next_sentence, short_seq_prob=0.0)
        chosen = np.ones(len(found.labels), bool)
        if next_sentence == "random":
            # One sentence alone has no next one.
            whole = ends(found.first_starts, found.first_lengths)
            begins = documents.sentence_splits[documents.document_splits]
            chosen = ~np.isin(whole, begins)
            chosen &= found.first_lengths < 61
        share, count = found.labels[chosen].mean(), chosen.sum()
        assert count > 5000
        assert abs(share - 0.5) < 4 * np.sqrt(0.25 / count)


def test_swapped_segments_are_neighbours():
    found = plan(next_sentence="order")
    first, second = found.first_starts, found.second_starts
    swapped = found.labels == 1
    after = np.where(swapped, second, first) + np.where(
        swapped, found.second_lengths, found.first_lengths
    )
    np.testing.assert_array_equal(after, np.where(swapped, first, second))
    assert (np.minimum(found.first_lengths, found.second_lengths) >= 1).all()


def test_one_document_is_the_other_where_there_is_no_other():
    found = plan(documents=make_documents(1), seed=2)
    assert (found.labels == 1).any()  # ten tries, as in Google's code, then itself


def test_the_seed_decides():
    one, two, other = plan(3), plan(3), plan(4)
    np.testing.assert_array_equal(one, two)
    assert len(one.labels) != len(other.labels) or not np.array_equal(one, other)
