"""A BERT in the files of other frameworks computes what its arrays say, by numpy."""

import json

import keras
import numpy as np
import pytest

import kbert
from tests import bert_reference, random_bert, tiny
from tests.checkpoints import foreign

SIZES = {
    **random_bert.SIZES,
    "vocabulary_size": len(tiny.VOCABULARY),
    "layer_norm_epsilon": 1e-12,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "classifier_dropout": None,
    "initializer_range": 0.02,
    "pad_token_id": 0,
}


@pytest.fixture(scope="module")
def config():
    return kbert.BertConfig(**SIZES)


@pytest.fixture(scope="module")
def arrays(config):
    """A model's arrays by kbert's path."""
    return random_bert.weights(random_bert.make(**SIZES))


def tf_model(folder, config, arrays):
    (folder / "config.json").write_text(json.dumps(config.to_hugging_face()))
    foreign.tf_model_h5(folder / "tf_model.h5", arrays)


def flax_model(folder, config, arrays):
    (folder / "config.json").write_text(json.dumps(config.to_hugging_face()))
    foreign.flax_msgpack(folder / "flax_model.msgpack", arrays)


def tf2_encoder(folder, config, arrays, root="encoder"):
    (folder / "bert_config.json").write_text(foreign.google_config(config))
    prefix = folder / "bert_model.ckpt"
    foreign.tf2_checkpoint(prefix, arrays, config.num_heads, root)


def tf2_model(folder, config, arrays):
    tf2_encoder(folder, config, arrays, "model")


def tf_hub(folder, config, arrays):
    foreign.hub_saved_model(folder, arrays, config.num_heads, tiny.VOCABULARY)


@pytest.mark.parametrize(
    "write", [tf_model, flax_model, tf2_encoder, tf2_model, tf_hub]
)
def test_it_computes_what_numpy_computes(write, config, arrays, tmp_path):
    write(tmp_path, config, arrays)
    model = kbert.BertBackbone.from_preset(tmp_path)
    assert model.config == config
    for path, array in random_bert.weights(model).items():
        np.testing.assert_array_equal(array, arrays[path])
    inputs = random_bert.inputs()
    states, _, pooled = bert_reference.forward(
        inputs,
        arrays,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        activation="gelu_tanh",
        epsilon=config.layer_norm_epsilon,
    )
    found = random_bert.run(model, inputs)
    text = inputs["padding_mask"] == 1
    np.testing.assert_allclose(found[0][text], states[-1][text], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[1], pooled, rtol=0, atol=1e-5)


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_saved_model_says_the_case(lowercase, config, arrays, tmp_path):
    heads = config.num_heads
    foreign.hub_saved_model(tmp_path, arrays, heads, tiny.VOCABULARY, lowercase)
    tokenizer = kbert.BertTokenizer.from_preset(tmp_path)
    assert tokenizer.lowercase is lowercase
    assert tokenizer.get_config()["vocabulary"] == tiny.VOCABULARY


def test_a_saved_model_that_does_not_say_the_case(config, arrays, tmp_path):
    heads = config.num_heads
    foreign.hub_saved_model(tmp_path, arrays, heads, tiny.VOCABULARY, None)
    with pytest.raises(ValueError, match="Received: None. Put a tokenizer_config.json"):
        kbert.BertTokenizer.from_preset(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert not kbert.BertTokenizer.from_preset(tmp_path).lowercase


def test_a_saved_model_of_another_kind(config, arrays, tmp_path):
    kept = {path: a for path, a in arrays.items() if "intermediate" not in path}
    foreign.hub_saved_model(tmp_path, kept, config.num_heads, tiny.VOCABULARY)
    with pytest.raises(ValueError, match="no .*layer_0/intermediate/dense/bias"):
        kbert.BertBackbone.from_preset(tmp_path)


def arrays_of(variables):
    return {path: keras.ops.convert_to_numpy(v) for path, v in variables.items()}


@pytest.mark.parametrize("write", [foreign.tf_model_h5, foreign.flax_msgpack])
def test_a_classifier_with_its_labels(write, config, tmp_path):
    original = kbert.BertClassifier(
        tiny.backbone(), tiny.preprocessor(), labels=["no", "maybe", "yes"]
    )
    random_bert.shake(original)
    original.save_to_preset(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "kbert.json").unlink()
    weights = {**random_bert.weights(original.backbone)}
    weights |= arrays_of(original.head_weights())
    name = {foreign.tf_model_h5: "tf_model.h5"}.get(write, "flax_model.msgpack")
    write(tmp_path / name, weights)
    again = kbert.BertClassifier.from_preset(tmp_path)
    assert again.labels == original.labels
    for path, array in arrays_of(again.head_weights()).items():
        np.testing.assert_array_equal(array, weights[path])
