import keras
import numpy as np
import pytest
from keras import ops

from kbert.layers import BertSelfAttention
from tests import bert_reference
from tests.layer_checks import check_layer

KWARGS = {
    "hidden_dim": 8,
    "num_heads": 4,
    "dropout": 0.3,
    "initializer_range": 0.7,
}
NUMBERS = np.array([[1, 1, 2, 2, 0], [1, 0, 1, 1, 0]])
MASK = NUMBERS[:, None, :, None] == NUMBERS[:, None, None, :]
X = np.random.RandomState(0).normal(size=(2, 5, 8)).astype("float32")


def make(**changes):
    layer = BertSelfAttention(**{**KWARGS, **changes})
    layer.build(X.shape)
    random = np.random.RandomState(3)
    for variable in layer.weights:
        variable.assign(random.normal(size=variable.shape))
    weights = {v.path.split("/", 1)[1]: v.numpy() for v in layer.weights}
    return layer, weights


def test_layer():
    check_layer(
        BertSelfAttention, KWARGS, (X, MASK), (2, 5, 8), without_gradient=("key/bias",)
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("num_heads", [1, 2, 8])
def test_both_ways_equal_numpy(training, num_heads):
    layer, weights = make(num_heads=num_heads)
    layer.dropout_layer.rate = 0.0  # the way of training with dropout, dropping nothing
    output = ops.convert_to_numpy(layer(X, MASK, training=training))
    expected, probabilities = bert_reference.attend(X, weights, "", num_heads, NUMBERS)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    found = ops.convert_to_numpy(layer.probabilities(X, MASK))
    np.testing.assert_allclose(found, probabilities, atol=1e-6)


def test_dropout_is_on_the_probabilities_and_only_in_training():
    layer, _ = make(dropout=0.5)
    runs = [
        ops.convert_to_numpy(layer(X, MASK, training=training))
        for training in (False, False, True, True)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[2] - runs[0]).max() > 1e-3
    assert np.abs(runs[2] - runs[3]).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("training", [False, True])
def test_half_precision_is_finite_and_masks(dtype, training):
    layer = BertSelfAttention(8, 2, dropout=0.5, dtype=dtype)
    layer.dropout_layer.rate = 0.0
    x = ops.cast(X * 30, dtype)
    output = layer(x, MASK, training=training)
    other = ops.cast(np.where(NUMBERS[..., None] == 1, X * 30, -X), dtype)
    changed = layer(other, MASK, training=training)
    first, second = (
        ops.convert_to_numpy(ops.cast(y, "float32")) for y in (output, changed)
    )
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first[NUMBERS == 1], second[NUMBERS == 1])
    assert np.abs(first[NUMBERS == 2] - second[NUMBERS == 2]).max() > 0


def test_lora_survives_saving(tmp_path):
    inputs = keras.Input((5, 8)), keras.Input((1, 5, 5), dtype="bool")
    layer = BertSelfAttention(8, 2)
    model = keras.Model(inputs, layer(*inputs))
    layer.query.enable_lora(2)
    for variable in model.trainable_variables:
        variable.assign(variable + 0.1)
    expected = ops.convert_to_numpy(model([X, MASK]))
    model.save_weights(tmp_path / "model.weights.h5")
    factors = {v.path: v.numpy() for v in model.weights if "lora" in v.path}
    assert len(factors) == 2
    for variable in model.weights:
        variable.assign(np.zeros(variable.shape, "float32"))
    model.load_weights(tmp_path / "model.weights.h5")
    found = ops.convert_to_numpy(model([X, MASK]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for variable in model.weights:
        if variable.path in factors:
            np.testing.assert_array_equal(variable.numpy(), factors[variable.path])


def test_width_must_be_a_multiple_of_the_heads():
    with pytest.raises(ValueError, match="hidden_dim=30, num_heads=4"):
        BertSelfAttention(30, 4)
