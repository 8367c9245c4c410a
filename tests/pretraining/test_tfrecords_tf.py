"""Google's files: what its own code reads in them, and back into kbert."""

import sys

import numpy as np
import pytest
import tensorflow as tf
from typer.testing import CliRunner

import kbert
from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining.batches import InstanceBatches
from kbert.pretraining.creation import create_instances
from kbert.pretraining.settings import InstanceSettings
from kbert.pretraining.tfrecords import read_tfrecords, write_tfrecords
from kbert_cli import app
from tests import tiny
from tests.pretraining import toy

# Of run_pretraining.py, `input_fn_builder`.
SCHEMA = {
    **{
        name: tf.io.FixedLenFeature([32], tf.int64)
        for name in ("input_ids", "input_mask", "segment_ids")
    },
    "masked_lm_positions": tf.io.FixedLenFeature([5], tf.int64),
    "masked_lm_ids": tf.io.FixedLenFeature([5], tf.int64),
    "masked_lm_weights": tf.io.FixedLenFeature([5], tf.float32),
    "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("tfrecords")
    (root / "corpus.txt").write_text(toy.text(30))
    for name in ("random", "none"):
        settings = InstanceSettings(
            32, name, dupe_factor=1, masking=MaskingRule(most=5)
        )
        create_instances(root / "corpus.txt", root / name, toy.tokenizer(), settings)
    paths = write_tfrecords(root / "random", root / "google", files=2)
    return root, paths


def test_google_reads_every_instance(made):
    root, paths = made
    batches = InstanceBatches(root / "random", 1)
    records = [r for path in paths for r in tf.data.TFRecordDataset(str(path))]
    assert len(records) == batches.num_instances
    assert [path.name for path in paths] == [
        f"instances-0000{n}-of-00002.tfrecord" for n in (0, 1)
    ]
    for step, record in ((0, records[0]), (2, records[1])):
        found = tf.io.parse_single_example(record, SCHEMA)
        x, y = batches.at(step)
        for key, name in (
            ("token_ids", "input_ids"),
            ("padding_mask", "input_mask"),
            ("segment_ids", "segment_ids"),
        ):
            np.testing.assert_array_equal(found[name], x[key][0])
        count = (x["mask_positions"][0] > 0).sum()
        positions = np.zeros(5)
        positions[:count] = x["mask_positions"][0, :count]
        np.testing.assert_array_equal(found["masked_lm_positions"], positions)
        np.testing.assert_array_equal(found["masked_lm_weights"], positions > 0)
        ids = found["masked_lm_ids"].numpy()
        np.testing.assert_array_equal(ids[:count], y["mlm"][0, :count])
        assert not ids[count:].any()
        assert found["next_sentence_labels"].numpy() == y["nsp"]


def test_the_pretrainer_reads_googles_files(made):
    _, paths = made
    dataset = read_tfrecords(paths, 8, shuffle=50, seed=1)
    x, y = next(iter(dataset))
    assert x["token_ids"].shape == (8, 32) and y["mlm"].shape == (8, 5)
    backbone = tiny.backbone(vocabulary_size=len(toy.PIECES))
    found = kbert.BertPretrainer(backbone).evaluate(
        dataset, steps=2, verbose=0, return_dict=True
    )
    assert np.isfinite(found["mlm_loss"]) and 0 < found["nsp_accuracy"] < 1
    given = read_tfrecords(paths[0], 8)
    assert not np.array_equal(next(iter(given))[0]["token_ids"], x["token_ids"])


def test_instances_of_one_segment_have_the_label_of_a_next_one(made, tmp_path):
    root, _ = made
    (path,) = write_tfrecords(root / "none", tmp_path)
    _, y = next(iter(read_tfrecords(path, 4)))
    assert y["nsp"].numpy().tolist() == [0] * 4


def test_the_command_writes_them_beside(made, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(toy.PIECES))
    arguments = [
        "instances",
        made[0] / "corpus.txt",
        "--workers",
        1,
        "--dupe-factor",
        1,
    ]
    arguments += ["--vocab", tmp_path / "vocab.txt", "--out", tmp_path / "made"]
    arguments += ["--sequence-length", 32, "--tfrecords", tmp_path / "google"]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.stderr
    assert "Wrote 1 TFRecord files into" in done.stderr
    x, _ = next(iter(read_tfrecords(sorted((tmp_path / "google").iterdir()), 2)))
    assert x["token_ids"].shape == (2, 32)


def test_other_files(made, tmp_path, monkeypatch):
    path = tmp_path / "other.tfrecord"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="at least one instance. Received: .*other"):
        read_tfrecords(path)
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(tf.train.Example().SerializeToString())
    with pytest.raises(ValueError, match=r"features \['input_ids'.*other.* with \[\]"):
        read_tfrecords(path)
    with pytest.raises(ValueError, match="`files` must be at least 1. Received: 0"):
        write_tfrecords(made[0] / "random", tmp_path, files=0)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match=r"keras-kbert\[tensorflow\]"):
        read_tfrecords(path)
