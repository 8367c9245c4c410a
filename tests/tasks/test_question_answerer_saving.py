"""What a question answerer keeps in a `.keras` file and a preset."""

import json

import keras
import numpy as np
import pytest

import kbert
from tests import tiny

X = tiny.questions(6)[:2]


def logits(model):
    """Logits (W, 2, S), without compiling for them."""
    inputs = model.read(X, None, None, training=False).single_batch()[0]
    return keras.ops.convert_to_numpy(model(inputs, training=False))


SETTINGS = {
    "doc_stride": 3,
    "n_best_size": 5,
    "max_answer_length": 4,
    "null_threshold": -1.5,
}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(2)
    model = tiny.answerer(dropout=0.0, **SETTINGS, name="named")
    model.head.dense.bias.assign([0.5, -0.5])
    return model


def check_same(again, model):
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)
    assert again.settings() == model.settings() == SETTINGS
    assert again.preprocessor.sequence_length == 16


def test_keras_file(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    check_same(again, model)


def test_preset(model, tmp_path):
    model.save_to_preset(tmp_path)
    again = kbert.BertQuestionAnswerer.from_preset(tmp_path)
    check_same(again, model)
    other = kbert.BertQuestionAnswerer.from_preset(
        tmp_path, sequence_length=20, null_threshold=2
    )
    assert other.settings() == {**SETTINGS, "null_threshold": 2.0}
    assert other.preprocessor.sequence_length == 20
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertForQuestionAnswering"]


def test_a_preset_without_the_head_starts_a_new_one(tmp_path):
    tiny.classifier().save_to_preset(tmp_path)
    with pytest.warns(
        UserWarning, match=r"\['spans/kernel', 'spans/bias'\]: they stay"
    ):
        again = kbert.BertQuestionAnswerer.from_preset(tmp_path)
    assert again.preprocessor.sequence_length == 32  # of 384, as many as there are
    assert again.null_threshold is None


def test_the_encoder_of_its_preset_serves_others(model, tmp_path):
    model.save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match="pooler.*classifier.*stay random"):
        other = kbert.BertClassifier.from_preset(tmp_path, num_classes=2)
    np.testing.assert_array_equal(
        np.array(other.backbone.embeddings.weights[0]),
        np.array(model.backbone.embeddings.weights[0]),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_best_size": 0}, "answering.n_best_size"),
        ({"null_threshold": "0"}, "answering.null_threshold"),
        ({"other": 1}, "answering.other"),
    ],
)
def test_settings_of_a_stranger_are_checked(model, tmp_path, settings, message):
    model.save_to_preset(tmp_path)
    path = tmp_path / "kbert.json"
    content = json.loads(path.read_text())
    content["answering"] |= settings
    path.write_bytes(kbert.presets.metadata_bytes(content))
    with pytest.raises(ValueError, match=message):
        kbert.BertQuestionAnswerer.from_preset(tmp_path)


def test_frozen_and_lora(model, tmp_path):
    learner = tiny.answerer()
    learner.freeze_backbone()
    assert [w.path for w in learner.trainable_weights] == [
        w.path for w in learner.head.weights
    ]
    learner.enable_lora(2)
    assert not any("pooler" in w.path for w in learner.trainable_weights)
    lora = [w for w in learner.weights if "lora_kernel_b" in w.path]
    for weight in lora:
        weight.assign(keras.random.normal(weight.shape))
    learner.save_to_preset(tmp_path / "preset")
    merged = kbert.BertQuestionAnswerer.from_preset(tmp_path / "preset")
    assert len(lora) == 2
    np.testing.assert_allclose(logits(merged), logits(learner), atol=1e-5)
    learner.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert [w.path for w in again.trainable_weights] == [
        w.path for w in learner.trainable_weights
    ]
    np.testing.assert_allclose(logits(again), logits(learner), atol=1e-5)


def test_the_pooler_is_not_trained_nor_missed(model):
    assert not any("pooler" in w.path for w in model.trainable_weights)
    assert any("pooler" in w.path for w in model.backbone.weights)
