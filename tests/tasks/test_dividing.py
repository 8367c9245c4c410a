"""What each replica is given of a batch: together, the batch."""

import dataclasses

import keras
import numpy as np
import pytest

import kbert
from kbert.tasks.dividing import divided
from kbert.tasks.replicas import check_optimizer
from kbert.training.distribution import Division, division
from kbert.training.token_scores import TokenCrossentropy

WIDTH, V = 6, 11


def batch(count=8, seed=0):
    """Instances with one to three masked tokens, and two slots that are empty."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, V, (count, WIDTH)).astype("int32")
    columns = [
        np.sort(rng.choice(WIDTH, rng.integers(1, 4), replace=False))
        for _ in range(count)
    ]
    positions = np.concatenate([WIDTH * row + c for row, c in enumerate(columns)])
    labels = rng.integers(0, V, len(positions))
    x = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    x["mask_positions"] = np.pad(positions, (0, 2)).astype("int32")
    y = {
        "mlm": np.pad(labels, (0, 2), constant_values=-1),
        "nsp": rng.integers(0, 2, count),
    }
    return x, y, None


def shares_of(one, blocks, **arguments):
    """The blocks of a batch: those of several processes."""
    return [
        divided(one, Division(blocks, blocks, number, **arguments), False)
        for number in range(blocks)
    ]


@pytest.mark.parametrize("blocks", [2, 4])
def test_blocks_hold_every_instance_and_token(blocks):
    one = batch()
    shares = shares_of(one, blocks)
    together = divided(one, Division(blocks), False)
    for key in ("token_ids", "padding_mask", "mask_positions"):
        found = np.concatenate([x[key] for x, _, _ in shares])
        np.testing.assert_array_equal(found, together[0][key])
        if key != "mask_positions":
            np.testing.assert_array_equal(found, one[0][key])
    found = []
    for x, y, _ in shares:
        there = y["mlm"] >= 0
        shown = x["token_ids"].reshape(-1)[x["mask_positions"]][there]
        found += zip(shown.tolist(), y["mlm"][there].tolist(), strict=True)
        assert x["mask_positions"].max() < x["token_ids"].size
    x, y, _ = one
    there = y["mlm"] >= 0
    shown = x["token_ids"].reshape(-1)[x["mask_positions"]][there]
    assert found == list(zip(shown.tolist(), y["mlm"][there].tolist(), strict=True))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_over_blocks_is_the_mean_over_tokens(weighted):
    x, y, _ = batch()
    logits = np.random.default_rng(2).normal(size=(8 * WIDTH, V)).astype("float32")
    weights = None
    if weighted:
        random = np.random.default_rng(3)
        weights = {
            "mlm": random.uniform(size=len(y["mlm"])).astype("float32"),
            "nsp": random.uniform(size=8).astype("float32"),
        }
    loss = TokenCrossentropy()
    of_slots = None if weights is None else weights["mlm"]
    expected = float(loss(y["mlm"], logits[x["mask_positions"]], of_slots))
    found = []
    for number, share in enumerate(shares_of((x, y, weights), 4)):
        x_own, y_own, own = share
        rows = logits[2 * WIDTH * number :][x_own["mask_positions"]]
        found.append(float(loss(y_own["mlm"], rows, own["mlm"])))
        wanted = np.ones(2) if weights is None else weights["nsp"][2 * number :][:2]
        np.testing.assert_array_equal(own["nsp"], wanted)
    assert np.mean(found) == pytest.approx(expected, rel=1e-5)
    assert np.std(found) > 1e-3


def test_what_is_joined_counts_through_all_rows():
    one = batch()
    shares = [
        divided(one, Division(4, 2, number, joined=True), False) for number in range(2)
    ]
    sizes = {len(x["mask_positions"]) for x, _, _ in shares}
    assert len(sizes) == 1 and sizes.pop() % 2 == 0
    positions, labels = (
        np.concatenate([share[at][key] for share in shares])
        for at, key in ((0, "mask_positions"), (1, "mlm"))
    )
    there = one[1]["mlm"] >= 0
    np.testing.assert_array_equal(
        positions[labels >= 0], one[0]["mask_positions"][there]
    )
    np.testing.assert_array_equal(labels[labels >= 0], one[1]["mlm"][there])
    assert shares[0][2] is None


def test_one_replica_is_given_the_batch():
    one = batch()
    assert divided(one, Division(), False) is one
    assert division() == Division()


@pytest.mark.parametrize(
    ("change", "parts", "message"),
    [
        ({}, 3, "Received: 8, for 3 replicas"),
        (
            {"first_positions": np.zeros(8, "int32")},
            2,
            "several instances a row",
        ),
        ({"mask_positions": None}, 2, "Received: other batches, in 2 processes"),
    ],
)
def test_what_cannot_be_divided(change, parts, message):
    x, y, weights = batch()
    x = {key: value for key, value in {**x, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        divided((x, y, weights), Division(parts, parts), False)


def test_instances_without_targets():
    x, _, _ = batch()
    with pytest.raises(ValueError, match="without targets, for 2 replicas"):
        divided((x, None, None), Division(2), False)


def test_optimizers_are_checked_where_replicas_are_apart(backend):
    apart = Division(2, 2)
    check_optimizer(kbert.AdamW(), apart)
    check_optimizer(kbert.AdamW(), dataclasses.replace(apart, joined=True))
    if backend == "torch":
        message = "must be kbert.AdamW.*Received: SGD in 2 processes"
    else:
        message = "clips the gradient of every replica.*Received: SGD with .*: 0.5"
    with pytest.raises(ValueError, match=message):
        check_optimizer(keras.optimizers.SGD(global_clipnorm=0.5), apart)
