"""Instances: what is cut, how they are joined, and what is masked."""

import numpy as np
import pytest

from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining import assembling
from kbert.pretraining.assembling import assemble, make_instances
from kbert.pretraining.segments import Segments
from kbert.pretraining.settings import InstanceSettings
from tests.pretraining import toy
from tests.pretraining.test_segments import make_documents

CLS, SEP = -1, -2
TOKENIZER = toy.tokenizer()


def corpus(count=200):
    """Documents of ids of the vocabulary."""
    documents = make_documents(count)
    rng = np.random.default_rng(0)
    ids = rng.integers(5, len(toy.PIECES), len(documents.tokens))
    return documents._replace(tokens=ids.astype(np.uint16))


def segments(*rows):
    return Segments(*np.array(rows).reshape(-1, 5).T)


def assembled(rows, length=16, seed=0):
    """The ids of every instance; token t of the corpus has the id t."""
    found = assemble(
        np.arange(1000),
        segments(*rows),
        sequence_length=length,
        cls_id=CLS,
        sep_id=SEP,
        rng=np.random.default_rng(seed),
    )
    return [
        ids.tolist() for ids in np.split(found.token_ids, found.row_splits[1:-1])
    ], found


def test_instances_are_joined():
    rows, found = assembled([(0, 3, 7, 2, 0), (998, 2, 0, 1, 1), (5, 1, 0, 0, 0)])
    assert rows[0] == [CLS, 0, 1, 2, SEP, 7, 8, SEP]
    assert rows[1] == [CLS, 998, 999, SEP, 0, SEP]
    assert rows[2] == [CLS, 5, SEP]
    assert found.second_starts.tolist() == [5, 4, 3]
    assert found.labels.tolist() == [0, 1, 0]


def popped(first, second, most, rng):
    """A pair cut a token at a time: the longer one, at a random end."""
    first, second = list(first), list(second)
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if rng.random() < 0.5 else -1)
    return first, second


def test_long_pairs_are_cut_as_if_token_by_token():
    rng = np.random.default_rng(0)
    shapes = rng.integers(1, 30, (40, 2))
    for first, second in shapes.tolist():
        for length in (9, 16, 33):
            (row,), _ = assembled([(100, first, 500, second, 0)], length)
            a, b = row[1 : row.index(SEP)], row[row.index(SEP) + 1 : -1]
            expected = popped(range(first), range(second), length - 3, rng)
            assert [len(a), len(b)] == list(map(len, expected))
            assert a == list(range(a[0], a[0] + len(a))) and a[0] >= 100
            assert b == list(range(b[0], b[0] + len(b))) and b[0] >= 500
            assert a[-1] < 100 + first and b[-1] < 500 + second


def test_both_ends_lose_as_much():
    count, lost = 4000, 7
    _, found = assembled([(100, 20, 500, 3, 0)] * count, 19)
    from_front = found.token_ids[found.row_splits[:-1] + 1] - 100
    assert from_front.min() == 0 and from_front.max() == lost
    seen = np.bincount(from_front, minlength=lost + 1)
    binomial = np.array([1, 7, 21, 35, 35, 21, 7, 1]) / 2**lost * count
    assert ((seen - binomial) ** 2 / binomial).sum() < 24.3  # one in a thousand for 7


def blocks(documents=None, shard=0, **settings):
    settings = {"sequence_length": 64, "dupe_factor": 2, **settings}
    documents = corpus() if documents is None else documents
    made = make_instances(documents, TOKENIZER, InstanceSettings(**settings), shard)
    return list(made)


@pytest.mark.parametrize(
    ("next_sentence", "rule"),
    [
        ("random", MaskingRule(most=5)),
        ("order", MaskingRule(whole_words=True)),
        ("none", MaskingRule(ngrams=3)),
    ],
)
def test_instances_keep_the_rules(next_sentence, rule):
    for block in blocks(next_sentence=next_sentence, masking=rule):
        lengths = np.diff(block.row_splits)
        assert lengths.max() == 64
        assert (block.token_ids[block.row_splits[:-1]] == TOKENIZER.cls_id).all()
        assert (block.token_ids[block.row_splits[1:] - 1] == TOKENIZER.sep_id).all()
        masked = np.diff(block.mask_splits)
        assert masked.min() >= 1
        if rule.most is not None:
            assert masked.max() == 5
        owner = np.repeat(np.arange(block.size), masked)
        assert (block.mask_positions > 0).all()
        assert (block.mask_positions < lengths[owner]).all()
        assert (np.diff(block.mask_positions)[np.diff(owner) == 0] > 0).all()
        single = block.second_starts == lengths
        assert single.all() if next_sentence == "none" else not single.any()


def test_labels_bring_back_the_text():
    documents = corpus()
    settings = {"next_sentence": "none", "short_seq_prob": 0.0}
    (masked, _), (plain, _) = (
        blocks(documents, **settings),
        blocks(documents, static_masks=False, **settings),
    )
    assert len(plain.mask_labels) == 0 and not plain.mask_splits.any()
    restored = masked.token_ids.copy()
    owner = np.repeat(np.arange(masked.size), np.diff(masked.mask_splits))
    restored[masked.row_splits[owner] + masked.mask_positions] = masked.mask_labels
    np.testing.assert_array_equal(restored, plain.token_ids)
    assert (masked.token_ids != plain.token_ids).mean() > 0.1


def test_a_shard_is_a_function_of_documents_seed_and_number():
    one, two = blocks(), blocks()
    for ours, theirs in zip(one, two, strict=True):
        for field, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(field, other)
    assert not np.array_equal(one[0].token_ids, one[1].token_ids)
    assert not np.array_equal(one[0].token_ids, blocks(shard=1)[0].token_ids)
    assert not np.array_equal(one[0].token_ids, blocks(seed=1)[0].token_ids)


def test_blocks_are_parts_of_a_pass(monkeypatch):
    whole = blocks()
    monkeypatch.setattr(assembling, "BLOCK", 100)
    small = blocks()
    assert sum(b.size for b in whole) == sum(b.size for b in small) and len(
        small
    ) > len(whole)
    assert max(b.size for b in small) == 100


def test_nothing_makes_an_empty_block():
    nothing = corpus(1)._replace(
        sentence_splits=np.array([0, 1]), document_splits=np.array([0, 1])
    )
    (block, _) = blocks(nothing, next_sentence="order")
    assert block.size == 0 and len(block.token_ids) == 0
