"""Batches with masked tokens, in numpy: nothing here waits for a model."""

import numpy as np
import pytest

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.layouts import PackedRows, SingleRows
from kbert.preprocessing.masked_batches import MaskedBatches
from kbert.preprocessing.masking import TokenMasker
from tests import tiny

TEXTS = tiny.sentiment(30)[0]
PREPROCESSOR = tiny.preprocessor()
ENCODED = PREPROCESSOR.encode(TEXTS)
MASKER = TokenMasker(PREPROCESSOR.tokenizer)
LAYOUTS = {"single": lambda: SingleRows([16, 32]), "packed": lambda: PackedRows(32)}


def mask(epoch):
    rng = np.random.default_rng([5, epoch])
    return MASKER(ENCODED.token_ids, ENCODED.row_splits, rng)


def made(layout, order="shuffled", **options):
    batches = TextBatches(
        ENCODED, batch_size=8, order=order, layout=LAYOUTS[layout](), seed=1
    )
    return MaskedBatches(batches, mask, **{"with_labels": True, **options})


def epoch_of(batches):
    """All labels of an epoch, and what the model sees in their place."""
    labels, shown = [], []
    batches.on_epoch_begin()
    for index in range(len(batches)):
        inputs, y = batches[index]
        assert y.shape == inputs["mask_positions"].shape
        positions = inputs["mask_positions"]
        assert inputs["padding_mask"].reshape(-1)[positions[y >= 0]].all()
        labels.append(y[y >= 0])
        shown.append(inputs["token_ids"].reshape(-1)[positions][y >= 0])
    return np.concatenate(labels), np.concatenate(shown)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("few_sizes", [False, True])
def test_every_masked_token_comes_once(layout, few_sizes):
    masked = mask(0)
    labels, shown = epoch_of(made(layout, few_sizes=few_sizes))
    pairs = sorted(zip(labels.tolist(), shown.tolist(), strict=True))
    expected = masked.labels, masked.token_ids[masked.positions]
    assert pairs == sorted(zip(*(a.tolist() for a in expected), strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_texts_are_as_they_were_but_for_the_masks(layout):
    batches = made(layout, order="given")
    plain = TextBatches(ENCODED, batch_size=8, order="given", layout=LAYOUTS[layout]())
    for index in range(len(plain)):
        inputs, y = batches[index]
        restored = inputs["token_ids"].copy()
        restored.reshape(-1)[inputs["mask_positions"]] = y
        np.testing.assert_array_equal(restored, plain[index][0]["token_ids"])
        for key in ("segment_ids", "padding_mask"):
            np.testing.assert_array_equal(inputs[key], plain[index][0][key])
        assert "first_positions" not in inputs


def test_masks_are_new_in_every_epoch_and_the_same_for_the_same_seed():
    one, two = made("packed"), made("packed")
    first = epoch_of(one)
    np.testing.assert_array_equal(first, epoch_of(two))
    second = epoch_of(one)
    assert not np.array_equal(np.sort(first[0]), np.sort(second[0]))
    np.testing.assert_array_equal(second, epoch_of(two))


def test_masks_do_not_depend_on_how_texts_are_laid():
    found = [np.sort(epoch_of(made(name, order="free"))[0]) for name in LAYOUTS]
    np.testing.assert_array_equal(*found)


def test_few_sizes_where_programs_are_compiled():
    batches = made("packed", few_sizes=True)
    seen = set()
    for _ in range(6):
        batches.on_epoch_begin()
        for index in range(len(batches)):
            inputs, y = batches[index]
            seen.add((inputs["token_ids"].shape, y.shape))
            empty = y < 0
            assert (inputs["mask_positions"][empty] == 0).all()
    shapes = {shape for shape, _ in seen}
    assert len(seen) <= len(shapes) + 1
    assert all(size % 8 == 0 for _, (size,) in seen)


def test_weights_follow_their_text():
    weights = np.arange(len(TEXTS), dtype="float32")
    batches = made("packed", order="given", sample_weight=weights, few_sizes=True)
    found = []
    for index in range(len(batches)):
        _, y, sample_weight = batches[index]
        assert sample_weight.shape == y.shape
        assert (sample_weight[y < 0] == 0).all()
        found.append(sample_weight[y >= 0])
    counts = np.histogram(mask(0).positions, ENCODED.row_splits)[0]
    np.testing.assert_array_equal(np.concatenate(found), np.repeat(weights, counts))


@pytest.mark.parametrize("order", ["free", "alike"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_restoring_brings_tokens_into_the_order_of_texts(layout, order):
    batches = made(layout, order=order, few_sizes=True, with_labels=False)
    # As outputs, what stood there, found by position in the rows.
    outputs, masked = [], mask(0)
    for index in range(len(batches)):
        texts, placed = batches.batches.planned(index)
        (inputs,) = batches[index]
        plain = batches.batches[index][0]["token_ids"].reshape(-1)
        outputs.append(plain[inputs["mask_positions"]])
        assert len(texts) and placed.width <= 32
    restored = batches.restore(np.concatenate(outputs)[:, None])
    np.testing.assert_array_equal(restored[:, 0], masked.labels)


def test_a_batch_without_a_token_to_mask_has_one_empty_slot():
    encoded = PREPROCESSOR.encode(["", ""])
    batches = TextBatches(encoded, batch_size=2, layout=SingleRows([8]))
    found = MaskedBatches(
        batches,
        lambda epoch: MASKER(
            encoded.token_ids, encoded.row_splits, np.random.default_rng(0)
        ),
        with_labels=True,
    )
    inputs, y = found[0]
    assert y.tolist() == [-1] and inputs["mask_positions"].tolist() == [0]
