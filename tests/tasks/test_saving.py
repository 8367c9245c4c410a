"""What a classifier keeps in a `.keras` file, a weights file and a preset."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

import kbert
from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


def logits(model, x=TEXTS[:5]):
    return model.predict(x, verbose=0)


def test_keras_file_keeps_everything(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(logits(again), logits(trained), atol=1e-6)
    assert again.labels == trained.labels
    assert again.get_config() == trained.get_config()
    again.fit(TEXTS, LABELS, verbose=0)


PROGRAM = """
import json, sys
import keras, kbert
model = keras.saving.load_model(sys.argv[1])
json.dump(model.predict(json.load(sys.stdin), verbose=0).tolist(), sys.stdout)
"""


def test_keras_file_loads_in_a_new_process(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "model.keras"],
        input=json.dumps(TEXTS[:5]),
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(kbert.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), logits(trained), atol=1e-6)


def test_config_keeps_every_argument():
    model = kbert.BertClassifier(
        tiny.backbone(),
        tiny.preprocessor(sequence_length=9, long_text="head_tail"),
        labels=["x", "y", "z"],
        problem="multi_label",
        dropout=0.3,
        name="named",
    )
    again = kbert.BertClassifier.from_config(model.get_config())
    assert again.get_config() == model.get_config()
    assert again.labels == ("x", "y", "z")
    assert (again.problem, again.dropout, again.name) == ("multi_label", 0.3, "named")
    assert again.preprocessor.sequence_length == 9
    assert again.preprocessor.long_text == "head_tail"


@pytest.mark.parametrize("part", ["backbone", "embeddings", "first layer's norm"])
def test_frozen_stays_frozen(part, tmp_path):
    model = tiny.classifier()
    layer = {
        "backbone": model.backbone,
        "embeddings": model.backbone.embeddings,
        "first layer's norm": model.backbone.encoder_layers[0].attention_norm,
    }[part]
    layer.trainable = False
    model.compile()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    paths = [w.path for w in model.trainable_weights]
    assert [w.path for w in again.trainable_weights] == paths
    assert len(paths) < len(tiny.classifier().trainable_weights)


def test_weights_file(trained, tmp_path):
    trained.save_weights(tmp_path / "model.weights.h5")
    again = tiny.classifier()
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(logits(again), logits(trained), atol=1e-6)


@pytest.mark.parametrize("problem", ["single_label", "multi_label", "regression"])
def test_preset_keeps_everything(problem, tmp_path):
    labels = None if problem == "regression" else ["bad", "good"]
    model = kbert.BertClassifier(
        tiny.backbone(activation="gelu_tanh"),
        tiny.preprocessor(sequence_length=9, long_text="head_tail"),
        labels=labels,
        problem=problem,
        dropout=0.3,
    )
    model.save_to_preset(tmp_path / "preset")
    again = kbert.BertClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)
    assert (again.labels, again.problem, again.dropout) == (
        model.labels,
        problem,
        0.3,
    )
    assert again.preprocessor.sequence_length == 9
    assert again.preprocessor.long_text == "head_tail"
    assert again.backbone.config.activation == "gelu_tanh"


def test_preset_for_other_labels_starts_a_new_head(tmp_path):
    model = tiny.classifier()
    model.save_to_preset(tmp_path / "preset")
    with pytest.warns(UserWarning, match="a new one is random"):
        other = kbert.BertClassifier.from_preset(
            tmp_path / "preset", labels=["positive", "negative"]
        )
    assert other.labels == ("positive", "negative")
    assert np.abs(np.array(other.head.kernel) - np.array(model.head.kernel)).max() > 0
    np.testing.assert_array_equal(
        np.array(other.backbone.pooler.dense.kernel),
        np.array(model.backbone.pooler.dense.kernel),
    )


def test_nameless_labels_take_names(tmp_path):
    model = kbert.BertClassifier(tiny.backbone(), tiny.preprocessor(), num_classes=2)
    assert model.labels == ("LABEL_0", "LABEL_1")
    model.save_to_preset(tmp_path / "preset")
    named = kbert.BertClassifier.from_preset(tmp_path / "preset", labels=tiny.LABELS)
    np.testing.assert_allclose(logits(named), logits(model), atol=1e-6)


def test_a_failed_write_leaves_the_old_preset(tmp_path, monkeypatch):
    model = tiny.classifier()
    model.save_to_preset(tmp_path / "preset")
    expected = logits(model)
    model.head.bias.assign([9.0, 0.0])

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("kbert.checkpoints.folder.write_weights", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save_to_preset(tmp_path / "preset")
    again = kbert.BertClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(logits(again), expected, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["preset"]


def test_a_preset_without_weights_is_random_only_when_asked(monkeypatch, tmp_path):
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConnectionError, match="load_weights=False"):
        kbert.BertClassifier.from_preset("bert_tiny_en_uncased", num_classes=2)
    model = kbert.BertClassifier.from_preset(
        "bert_tiny_en_uncased", num_classes=2, load_weights=False
    )
    assert model.backbone.count_params() == 4_385_920
    assert model.predict(["a film"], verbose=0).shape == (1, 2)


# Folders that others wrote


def saved(folder, **overrides):
    """A classifier and its folder, without the file that only kbert writes."""
    model = kbert.BertClassifier(
        tiny.backbone(**overrides), tiny.preprocessor(), labels=tiny.LABELS
    )
    model.save_to_preset(folder)
    (folder / "kbert.json").unlink()
    return model


def test_an_embedding_may_have_more_rows_than_the_vocabulary(tmp_path):
    folder = tmp_path / "preset"
    model = saved(folder, vocabulary_size=len(tiny.VOCABULARY) + 6)
    again = kbert.BertClassifier.from_preset(folder)
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)
    lines = (folder / "vocab.txt").read_text().splitlines()
    assert lines == tiny.VOCABULARY
    again.save_to_preset(tmp_path / "again")
    assert (tmp_path / "again" / "vocab.txt").read_text().splitlines() == lines


def test_a_vocabulary_may_not_be_larger_than_the_embedding(tmp_path):
    folder = tmp_path / "preset"
    saved(folder, vocabulary_size=len(tiny.VOCABULARY) + 6)
    (folder / "tokenizer.json").unlink()
    with open(folder / "vocab.txt", "a") as file:
        file.writelines(f"more{index}\n" for index in range(20))
    with pytest.raises(ValueError, match="44.*30"):
        kbert.BertClassifier.from_preset(folder)


def test_a_config_that_names_no_head(tmp_path):
    model = saved(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    for key in ("architectures", "model_type", "problem_type", "id2label", "label2id"):
        del config[key]
    path.write_text(json.dumps(config))
    backbone = kbert.BertBackbone.from_preset(tmp_path)
    for ours, theirs in zip(
        backbone.get_weights(), model.backbone.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="neither"):
        kbert.BertClassifier.from_preset(tmp_path)
    again = kbert.BertClassifier.from_preset(tmp_path, labels=tiny.LABELS)
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)


def test_a_folder_without_weights_is_random_only_when_asked(tmp_path):
    saved(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    for model in (kbert.BertBackbone, kbert.BertClassifier):
        with pytest.raises(FileNotFoundError, match="load_weights=False"):
            model.from_preset(tmp_path)
        model.from_preset(tmp_path, load_weights=False)
