import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from kbert import presets
from kbert.backbone import INPUTS, BertBackbone, check_inputs
from kbert.config import ACTIVATIONS, BertConfig
from tests import bert_reference, random_bert

# Any mask of 0 and 1 must behave as in transformers.
MASKS = np.array(
    [[0, 0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0, 0, 0]]
)
PACKED = np.array(
    [[1, 1, 1, 2, 2, 3, 3, 3], [1, 1, 1, 1, 2, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 0]]
)


def reference(backbone, values):
    return bert_reference.forward(
        values,
        random_bert.weights(backbone),
        num_layers=backbone.config.num_layers,
        num_heads=backbone.config.num_heads,
        activation=backbone.config.activation,
        epsilon=backbone.config.layer_norm_epsilon,
        left_to_right=backbone.config.left_to_right,
    )


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize(
    "numbers", [None, MASKS, PACKED], ids=["plain", "holes", "packed"]
)
def test_equals_numpy(activation, numbers):
    backbone = random_bert.make(activation=activation)
    values = random_bert.inputs(numbers)
    sequence, pooled = random_bert.run(backbone, values)
    states, _, expected = reference(backbone, values)
    np.testing.assert_allclose(sequence, states[-1], atol=1e-5)
    np.testing.assert_allclose(pooled, expected, atol=1e-5)


def test_hidden_states_and_attentions_equal_numpy():
    backbone, values = random_bert.make(), random_bert.inputs(MASKS)
    states, attentions, _ = reference(backbone, values)
    found = backbone.hidden_states(values)
    assert len(found) == 3
    for ours, theirs in zip(found, states, strict=True):
        np.testing.assert_allclose(random_bert.as_array(ours), theirs, atol=1e-5)
    found = backbone.attentions(values)
    assert len(found) == 2
    for ours, theirs in zip(found, attentions, strict=True):
        np.testing.assert_allclose(random_bert.as_array(ours), theirs, atol=1e-5)
        np.testing.assert_allclose(random_bert.as_array(ours).sum(-1), 1, atol=1e-5)


def test_compiled_equals_eager(backend):
    backbone, values = random_bert.make(), random_bert.inputs(PACKED)
    sequence, pooled = random_bert.run(backbone, values)
    backbone.compile(jit_compile=backend != "torch")
    outputs = backbone.predict_on_batch(values)
    np.testing.assert_allclose(outputs["sequence_output"], sequence, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)


def test_what_stands_in_padding_does_not_matter():
    backbone, values = random_bert.make(), random_bert.inputs(MASKS)
    other = random_bert.inputs(MASKS, seed=9)
    for key in ("token_ids", "segment_ids"):
        other[key] = np.where(MASKS == 1, values[key], other[key])
    assert (other["token_ids"] != values["token_ids"]).any()
    first, _ = random_bert.run(backbone, values)
    second, _ = random_bert.run(backbone, other)
    np.testing.assert_array_equal(first[MASKS == 1], second[MASKS == 1])
    assert np.abs(first - second)[MASKS == 0].max() > 0.1


def test_the_order_of_a_batch_does_not_matter():
    backbone, values = random_bert.make(), random_bert.inputs()
    sequence, pooled = random_bert.run(backbone, values)
    turned = {key: value[::-1].copy() for key, value in values.items()}
    again, pooled_again = random_bert.run(backbone, turned)
    np.testing.assert_allclose(again[::-1], sequence, atol=1e-6)
    np.testing.assert_allclose(pooled_again[::-1], pooled, atol=1e-6)


def test_rows_of_padding_alone_are_finite():
    numbers = np.zeros(random_bert.SHAPE, "int32")
    sequence, pooled = random_bert.run(random_bert.make(), random_bert.inputs(numbers))
    assert np.isfinite(sequence).all() and np.isfinite(pooled).all()


@pytest.mark.parametrize("rates", [(0.5, 0.0), (0.0, 0.5)])
def test_dropout_only_in_training(rates):
    backbone = random_bert.make(dropout=rates[0], attention_dropout=rates[1])
    values = random_bert.inputs()
    runs = [
        random_bert.run(backbone, values, training=training)[0]
        for training in (False, None, True, True)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[2] - runs[0]).max() > 1e-2
    assert np.abs(runs[2] - runs[3]).max() > 1e-2


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16", "float16"])
def test_lower_precision_is_finite_and_near(dtype):
    arguments = {"dropout": 0.0, "attention_dropout": 0.0, "layer_norm_epsilon": 1e-12}
    values = random_bert.inputs(MASKS)
    backbone = random_bert.make(**arguments, dtype=dtype)
    policy = keras.dtype_policies.get(dtype)
    assert {v.dtype for v in backbone.weights} == {policy.variable_dtype}
    expected, _ = random_bert.run(random_bert.make(**arguments), values)
    outputs = backbone(values)["sequence_output"]
    assert keras.backend.standardize_dtype(outputs.dtype) == policy.compute_dtype
    for training in (False, True):
        sequence, pooled = random_bert.run(backbone, values, training=training)
        assert np.isfinite(sequence).all() and np.isfinite(pooled).all()
        assert np.abs(sequence - expected).max() < 0.15


def test_equal_values_in_float16_are_finite():
    # The embedding's rows are constant, so that their variance is 0.
    backbone = BertBackbone(
        23, 1, 2, 16, 24, max_sequence_length=8, dtype="float16", dropout=0.0
    )
    for variable in backbone.embeddings.weights[:3]:
        variable.assign(np.ones(variable.shape, "float16"))
    values = random_bert.inputs() | {"segment_ids": np.zeros((3, 8), "int32")}
    for output in random_bert.run(backbone, values):
        assert np.isfinite(output).all()


def test_epsilon_reaches_every_normalisation():
    backbone = random_bert.make(layer_norm_epsilon=0.25)
    norms = [
        layer
        for layer in backbone._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    ]
    assert len(norms) == 1 + 2 * 2
    assert {norm.epsilon for norm in norms} == {0.25}
    assert BertConfig().layer_norm_epsilon == 1e-12


def test_the_config_reaches_every_layer():
    backbone = random_bert.make()
    config = backbone.get_config()
    assert {key: config[key] for key in random_bert.SIZES} == random_bert.SIZES
    defaults = dataclasses.asdict(BertConfig())
    assert all(value != defaults[key] for key, value in random_bert.SIZES.items())
    for layer in (backbone.embeddings, *backbone.encoder_layers, backbone.pooler):
        for key, value in layer.get_config().items():
            if key in random_bert.SIZES:
                assert value == random_bert.SIZES[key], (layer.name, key)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("token_ids", 23, r"token_ids.*vocabulary_size=23.*to 23"),
        ("token_ids", -1, r"token_ids.*from -1"),
        ("segment_ids", 3, r"segment_ids.*num_segments=3.*to 3"),
        ("segment_ids", -2, r"segment_ids.*from -2"),
        ("padding_mask", -1, r"padding_mask.*from -1"),
    ],
)
def test_values_out_of_range(key, value, message):
    backbone, values = random_bert.make(), random_bert.inputs()
    values[key][1, 2] = value
    for call in (backbone, backbone.hidden_states, backbone.attentions):
        with pytest.raises(ValueError, match=message):
            call(values)


def test_a_row_longer_than_the_positions():
    values = random_bert.inputs(np.ones((1, 9), "int32"))
    message = r"max_sequence_length=8.*\(1, 9\)"
    with pytest.raises(ValueError, match=message):
        random_bert.make()(values)


def test_wrong_kinds_of_arrays():
    config, values = BertConfig(**random_bert.SIZES), random_bert.inputs()
    with pytest.raises(ValueError, match="token_ids.*float64"):
        check_inputs({**values, "token_ids": np.ones((1, 4))}, config)
    with pytest.raises(ValueError, match=r"padding_mask.*\(4,\)"):
        check_inputs({**values, "padding_mask": np.ones(4, int)}, config)


def test_values_of_tensors_and_symbols_are_not_looked_at():
    config, values = BertConfig(**random_bert.SIZES), random_bert.inputs()
    check_inputs({**values, "token_ids": ops.convert_to_tensor([[99]])}, config)
    check_inputs({**values, "token_ids": keras.Input((9,), dtype="int32")}, config)


CALLS = ["__call__", "predict", "predict_on_batch", "hidden_states", "attentions"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [np.array, ops.convert_to_tensor])
@pytest.mark.parametrize("extra", ["aaa", "first_positions", "zzz"])
def test_unknown_keys_are_refused(extra, kind, call):
    # Keras would take the values in the order of their keys.
    values = {key: kind(value) for key, value in random_bert.inputs().items()}
    values[extra] = values["token_ids"]
    with pytest.raises(ValueError, match=f"Received: .*'{extra}'"):
        getattr(random_bert.make(), call)(values)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", ["token_ids", "segment_ids", "padding_mask"])
def test_missing_keys_are_refused(key, call):
    values = random_bert.inputs()
    del values[key]
    with pytest.raises(ValueError, match=f"with the keys .*'{key}'.*Received"):
        getattr(random_bert.make(), call)(values)


@pytest.mark.parametrize("call", CALLS)
def test_inputs_without_names_are_refused(call):
    values = random_bert.inputs()
    with pytest.raises(ValueError, match="Received: (list|tuple)"):
        getattr(random_bert.make(), call)([values[key] for key in INPUTS])


# PAPER: Devlin et al. 2018, section 3, and Turc et al. 2019; counted exactly.
PARAMETERS = {
    "bert_base_en_uncased": 109_482_240,
    "bert_base_en_cased": 108_310_272,
    "bert_large_en_uncased": 335_141_888,
    "bert_large_en_cased": 333_579_264,
    "bert_tiny_en_uncased": 4_385_920,
    "bert_mini_en_uncased": 11_170_560,
    "bert_small_en_uncased": 28_763_648,
    "bert_medium_en_uncased": 41_373_184,
    "bert_base_zh": 102_267_648,
    "bert_base_multilingual_cased": 177_853_440,
}


def count(config):
    """The number of parameters, by arithmetic."""
    h, f = config.hidden_dim, config.intermediate_dim
    rows = config.vocabulary_size + config.max_sequence_length + config.num_segments
    layer = 4 * (h * h + h) + (h * f + f) + (f * h + h) + 2 * 2 * h
    return rows * h + 2 * h + config.num_layers * layer + h * h + h


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_number_of_parameters(name):
    found = presets.find_preset(name).read_json("config.json")
    assert count(BertConfig.from_hugging_face(found)) == PARAMETERS[name]


@pytest.mark.parametrize(
    "changes",
    [{}, {"num_layers": 1, "vocabulary_size": 7}, {"hidden_dim": 8, "num_segments": 1}],
)
def test_the_arithmetic_is_the_models(changes):
    backbone = random_bert.make(**changes)
    assert backbone.count_params() == count(backbone.config)


def test_number_of_parameters_of_a_built_preset():
    backbone = BertBackbone.from_preset("bert_tiny_en_uncased", load_weights=False)
    assert backbone.count_params() == PARAMETERS["bert_tiny_en_uncased"]


def test_the_catalogue_is_at_hand():
    found = BertBackbone.presets["bert_tiny_en_uncased"]
    assert found["parameters"] == 4_385_920
    assert found["licence"] == "Apache-2.0"
    assert found["scores"] == {"glue": 64.2}
