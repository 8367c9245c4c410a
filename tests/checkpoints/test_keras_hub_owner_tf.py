"""KerasHub itself reads what kbert writes, and kbert what KerasHub writes."""

import importlib.util

import keras
import numpy as np
import pytest

import kbert
from kbert.checkpoints import keras_hub
from kbert.tasks import saving
from tests import random_bert, tiny

if importlib.util.find_spec("keras_hub") is None:
    pytest.skip("needs keras-hub, the owner of the format", allow_module_level=True)

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras_hub as owner

IDS = np.array([[2, 5, 6, 7, 3, 0], [2, 8, 3, 9, 3, 0]], "int32")
INPUTS = {
    "token_ids": IDS,
    "segment_ids": np.array([[0] * 6, [0, 0, 0, 1, 1, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1, 0]] * 2, "int32"),
}


def test_keras_hub_loads_what_kbert_wrote(tmp_path):
    backbone = tiny.backbone(activation="gelu_tanh", dropout=0.2, attention_dropout=0.2)
    ours = kbert.BertClassifier(backbone, tiny.preprocessor(), labels=["a", "b", "c"])
    random_bert.shake(ours, seed=3)
    keras_hub.write_folder(
        tmp_path / "hub",
        saving.merged_weights(ours),
        backbone.config,
        ours.preprocessor.tokenizer,
    )
    theirs = owner.models.BertTextClassifier.from_preset(str(tmp_path / "hub"))
    expected = keras.ops.convert_to_numpy(theirs(INPUTS))
    found = keras.ops.convert_to_numpy(ours(INPUTS))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    sequence, pooled = random_bert.run(backbone, INPUTS)
    hub = theirs.backbone(INPUTS)
    text = INPUTS["padding_mask"] == 1  # padding sees itself alone here, not there
    hub_sequence = keras.ops.convert_to_numpy(hub["sequence_output"])
    np.testing.assert_allclose(sequence[text], hub_sequence[text], atol=1e-5)
    np.testing.assert_allclose(pooled, hub["pooled_output"], atol=1e-5)


def test_kbert_loads_what_keras_hub_wrote(tmp_path):
    vocabulary = tiny.preprocessor().tokenizer.get_config()["vocabulary"]
    backbone = owner.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=16,
    )
    tokenizer = owner.models.BertTokenizer(vocabulary=vocabulary, lowercase=True)
    theirs = owner.models.BertTextClassifier(
        backbone,
        num_classes=3,
        preprocessor=owner.models.BertTextClassifierPreprocessor(tokenizer, 16),
    )
    for variable in theirs.weights:
        random = np.random.RandomState(len(variable.path))
        variable.assign(random.normal(scale=0.5, size=variable.shape))
    theirs.save_to_preset(str(tmp_path / "hub"))
    ours = kbert.BertClassifier.from_preset(tmp_path / "hub")
    found = keras.ops.convert_to_numpy(ours(INPUTS))
    expected = keras.ops.convert_to_numpy(theirs(INPUTS))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert ours.preprocessor.tokenizer.get_config()["vocabulary"] == list(vocabulary)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_embedders_go_both_ways(pooling, tmp_path):
    backbone = tiny.backbone(
        activation="gelu_tanh", dropout=0.2, attention_dropout=0.2, num_layers=1
    )
    ours = kbert.BertEmbedder(
        backbone, tiny.preprocessor(), pooling=pooling, normalize=pooling != "max"
    )
    random_bert.shake(ours.backbone, seed=3)
    keras_hub.write_folder(
        tmp_path / "hub",
        saving.merged_weights(ours),
        backbone.config,
        ours.preprocessor.tokenizer,
        embedding=ours.settings(),
    )
    theirs = owner.models.BertTextEmbedder.from_preset(str(tmp_path / "hub"))
    expected = keras.ops.convert_to_numpy(theirs(INPUTS))
    found = keras.ops.convert_to_numpy(ours(INPUTS))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    theirs.save_to_preset(str(tmp_path / "again"))
    again = kbert.BertEmbedder.from_preset(tmp_path / "again")
    found = keras.ops.convert_to_numpy(again(INPUTS))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (again.pooling, again.normalize) == (pooling, pooling != "max")
