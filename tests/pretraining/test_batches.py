"""Batches from a folder: all instances, in an order that a step alone decides."""

import numpy as np
import pytest

import kbert
from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining.batches import InstanceBatches
from kbert.pretraining.creation import create_instances
from kbert.pretraining.settings import InstanceSettings
from tests import tiny
from tests.pretraining import toy


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of instances, by what is special about them."""
    root = tmp_path_factory.mktemp("instances")
    (root / "corpus.txt").write_text(toy.text(40))
    made = {
        "static": {},
        "dynamic": {"static_masks": False},
        "none": {"next_sentence": "none"},
        "short": {"short_seq_prob": 0.9, "sequence_length": 64},
    }
    for name, changes in made.items():
        rule = MaskingRule(most=5)
        values = {"dupe_factor": 1, "masking": rule, "shard_tokens": 1000}
        settings = InstanceSettings(**{"sequence_length": 32, **values, **changes})
        create_instances(root / "corpus.txt", root / name, toy.tokenizer(), settings)
    return root


def rows_of(x, y):
    """Each instance as something that can be compared and counted."""
    return [
        (tuple(ids), tuple(labels))
        for ids, labels in zip(x["token_ids"].tolist(), y["mlm"].tolist(), strict=True)
    ]


def test_a_batch_is_what_the_pretrainer_takes(folders):
    batches = InstanceBatches(folders / "static", 16)
    x, y = batches[0]
    assert {k: v.shape[0] for k, v in x.items()} == dict.fromkeys(
        ("token_ids", "segment_ids", "padding_mask", "mask_positions"), 16
    )
    assert x["token_ids"].shape == (16, 32) and x["token_ids"].dtype == np.int32
    tokenizer = toy.tokenizer()
    lengths = x["padding_mask"].sum(1)
    assert (x["token_ids"][x["padding_mask"] == 0] == tokenizer.pad_id).all()
    assert (x["token_ids"][np.arange(16), lengths - 1] == tokenizer.sep_id).all()
    first = (x["token_ids"] == tokenizer.sep_id).argmax(1)
    columns = np.arange(32)
    expected = (columns > first[:, None]) & (columns < lengths[:, None])
    np.testing.assert_array_equal(x["segment_ids"], expected)
    masked = x["mask_positions"] > 0
    assert (masked.sum(1) >= 1).all() and masked.sum(1).max() <= 5
    shown = np.take_along_axis(x["token_ids"], x["mask_positions"], 1)[masked]
    assert (shown == tokenizer.mask_id).mean() > 0.5
    assert set(y) == {"mlm", "nsp"} and set(y["nsp"].tolist()) == {0, 1}
    assert y["mlm"].shape == masked.shape and (y["mlm"][~masked] == 0).all()


def test_an_epoch_has_every_instance_once(folders):
    batches = InstanceBatches(folders / "static", 7, seed=3)
    count = batches.num_instances
    steps = 2 * count // 7 + 1
    rows = [row for step in range(steps) for row in rows_of(*batches.at(step))]
    first, second = rows[:count], rows[count : 2 * count]
    assert sorted(first) == sorted(second) and first != second
    assert len(set(first)) > 0.95 * count


def test_a_step_alone_decides(folders):
    batches = InstanceBatches(folders / "dynamic", 8, seed=1)
    later = InstanceBatches(folders / "dynamic", 8, seed=1, first_step=5)
    other = InstanceBatches(folders / "dynamic", 8, seed=2)
    for n in (0, 3, batches.num_instances):
        for ours, theirs in zip(batches.at(n + 5), later[n], strict=True):
            for key in ours:
                np.testing.assert_array_equal(ours[key], theirs[key])
        assert rows_of(*other.at(n)) != rows_of(*batches.at(n))


def test_masks_made_anew_differ_from_epoch_to_epoch(folders):
    batches = InstanceBatches(folders / "dynamic", 1)
    count = batches.num_instances

    def text(step):
        """The text of an instance, and what is masked in it."""
        x, y = batches.at(step)
        ids = x["token_ids"][0].copy()
        ids[x["mask_positions"][0]] = y["mlm"][0]
        return tuple(ids.tolist()), tuple(x["mask_positions"][0].tolist())

    first = dict(map(text, range(count)))
    second = dict(map(text, range(count, 2 * count)))
    assert first.keys() == second.keys()
    same = sum(first[key] == second[key] for key in first)
    assert same < 0.3 * len(first)
    assert all(1 <= len(masks) <= 5 for masks in first.values())


def test_a_step_reads_only_what_it_needs(folders, monkeypatch):
    batches = InstanceBatches(folders / "static", 2)
    read = []
    inner = batches._read_block
    monkeypatch.setattr(batches, "_read", lambda n: read.append(n) or inner(n))
    batches.at(0)
    assert 1 <= len(read) <= 2 < len(batches._blocks)


def model(task):
    backbone = tiny.backbone(
        vocabulary_size=len(toy.PIECES), dropout=0.0, max_sequence_length=64
    )
    return task(backbone)


def test_the_pretrainer_learns_from_batches(folders):
    batches = InstanceBatches(folders / "static", 16)
    pretrainer = model(kbert.BertPretrainer)
    pretrainer.compile(learning_rate=0.02)
    history = pretrainer.fit(batches, epochs=2, steps_per_epoch=6, verbose=0).history
    assert history["mlm_loss"][1] < history["mlm_loss"][0]
    assert {"nsp_loss", "nsp_accuracy", "mlm_accuracy"} <= set(history)


def test_several_instances_a_row_are_the_same_instances(folders):
    single = InstanceBatches(folders / "short", 24)
    packed = InstanceBatches(folders / "short", 24, rows="packed")
    (x, y), (x_packed, y_packed) = single.at(2), packed.at(2)
    assert x_packed["token_ids"].shape[0] < 24
    assert x_packed["padding_mask"].max() > 1
    np.testing.assert_array_equal(y["nsp"], y_packed["nsp"])
    flat = x_packed["token_ids"].reshape(-1)
    for row, first in enumerate(x_packed["first_positions"]):
        length = x["padding_mask"][row].sum()
        found = flat[first : first + length]
        np.testing.assert_array_equal(found, x["token_ids"][row, :length])
    masked = x["mask_positions"] > 0
    there = y_packed["mlm"] >= 0
    np.testing.assert_array_equal(y_packed["mlm"][there], y["mlm"][masked])
    pretrainer = model(kbert.BertPretrainer)
    results = [
        pretrainer.evaluate(batches, steps=1, verbose=0, return_dict=True)
        for batches in (single, packed)
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-5)


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"y": {"mlm": [1]}}, "Received: {'mlm': 1} of values up to {'mlm': 1}"),
        ({"y": np.full(3, 99)}, "Received: {'mlm': 3} of values up to {'mlm': 99}"),
        ({"nsp": np.full(24, 2)}, "'nsp': 24} of values up to {'mlm': .*, 'nsp': 2}"),
        ({"y": None, "mask_positions": np.array([10_000])}, "from 10000 to 10000"),
        ({"sample_weight": np.ones(24)}, r"weights of shape \(24,\)"),
    ],
)
def test_rows_that_do_not_fit(folders, change, received):
    x, y = InstanceBatches(folders / "static", 24, rows="packed").at(0)
    if "mask_positions" in change:
        x = {**x, "mask_positions": change["mask_positions"]}
    y = {**y, "nsp": change.get("nsp", y["nsp"])}
    batch = (x, change.get("y", y))
    if "sample_weight" in change:
        batch = (*batch, change["sample_weight"])
    with pytest.raises(ValueError, match=received):
        model(kbert.BertPretrainer).evaluate(iter([batch] * 4), steps=1, verbose=0)


def test_the_masked_lm_reads_batches_without_a_second_segment(folders):
    batches = InstanceBatches(folders / "none", 16)
    x, y = batches[0]
    assert isinstance(y, np.ndarray) and not x["segment_ids"].any()
    packed = InstanceBatches(folders / "none", 16, rows="packed")
    masked_lm = model(kbert.BertMaskedLM)
    results = [
        masked_lm.evaluate(some, steps=1, verbose=0, return_dict=True)
        for some in (batches, packed)
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-5)


def test_what_cannot_be_read(folders, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"instances.json, which.*Received: .*a"
    ):
        InstanceBatches(tmp_path / "a")
    count = InstanceBatches(folders / "static", 1).num_instances
    for size in (0, count + 1):
        with pytest.raises(ValueError, match=rf"1 to {count},.*Received: {size}"):
            InstanceBatches(folders / "static", size)
    with pytest.raises(ValueError, match=r"\('single', 'packed'\). Received: 'dense'"):
        InstanceBatches(folders / "static", rows="dense")
