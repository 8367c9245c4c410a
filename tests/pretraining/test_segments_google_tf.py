"""Google's own procedure, given the same random numbers, chooses the same segments."""

import numpy as np
import pytest

from kbert.pretraining.segments import plan_segments
from kbert.pretraining.settings import InstanceSettings
from tests.checkpoints import google_bert
from tests.pretraining.test_segments import make_documents


class Draws:
    """What Google's code asks of `random.Random`, from numpy's numbers."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def random(self):
        return self.rng.random()

    def randint(self, low, high):
        return low + int(self.random() * (high - low + 1))


@pytest.mark.parametrize(
    ("length", "short", "documents"),
    [
        (64, 0.1, make_documents(200)),
        (128, 0.5, make_documents(200, seed=1, tokens=60)),
        (16, 0.1, make_documents(50, seed=2)),
        (512, 0.1, make_documents(3, seed=3, sentences=200)),
    ],
)
def test_the_same_draws_give_the_same_segments(monkeypatch, length, short, documents):
    google = google_bert.create_pretraining_data()
    expected = []

    def record(tokens_a, tokens_b, *_):
        expected.append((tokens_a[0], len(tokens_a), tokens_b[0], len(tokens_b)))

    monkeypatch.setattr(google, "truncate_seq_pair", record)
    monkeypatch.setattr(
        google, "create_masked_lm_predictions", lambda tokens, *_: (tokens, [], [])
    )
    splits, tokens = documents.sentence_splits, documents.tokens.tolist()
    bounds = documents.document_splits
    lists = [
        [tokens[splits[s] : splits[s + 1]] for s in range(bounds[d], bounds[d + 1])]
        for d in range(documents.size)
    ]
    draws, labels = Draws(7), []
    for number in range(documents.size):
        for instance in google.create_instances_from_document(
            lists, number, length, short, 0.15, 20, [], draws
        ):
            labels.append(int(instance.is_random_next))
    settings = InstanceSettings(length, short_seq_prob=short)
    found = plan_segments(documents, settings, np.random.default_rng(7))
    assert len(expected) == len(found.labels) > 10
    np.testing.assert_array_equal(np.array(expected), np.array(found[:4]).T)
    np.testing.assert_array_equal(labels, found.labels)
