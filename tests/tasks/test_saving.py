"""What a classifier keeps in a `.keras` file, a weights file and a preset."""

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
    with pytest.warns(UserWarning, match="new one starts at random"):
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


def test_a_preset_without_weights_is_random_only_when_asked():
    with pytest.raises((ValueError, FileNotFoundError), match="load_weights=False"):
        kbert.BertClassifier.from_preset("bert_tiny_en_uncased", num_classes=2)
    model = kbert.BertClassifier.from_preset(
        "bert_tiny_en_uncased", num_classes=2, load_weights=False
    )
    assert model.backbone.count_params() == 4_385_920
    assert model.predict(["a film"], verbose=0).shape == (1, 2)
