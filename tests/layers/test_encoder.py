import numpy as np
import pytest
from keras import ops

from kbert.config import ACTIVATIONS
from kbert.layers import BertEncoderLayer
from kbert.layers.encoder import activate
from tests import bert_reference
from tests.layer_checks import check_layer

KWARGS = {
    "hidden_dim": 8,
    "num_heads": 2,
    "intermediate_dim": 12,
    "activation": "gelu_tanh",
    "dropout": 0.2,
    "attention_dropout": 0.3,
    "layer_norm_epsilon": 1e-3,
    "initializer_range": 0.7,
    "remat": True,
}
NUMBERS = np.array([[1, 1, 2, 2, 0], [1, 0, 1, 1, 0]])
MASK = NUMBERS[:, None, :, None] == NUMBERS[:, None, None, :]
X = np.random.RandomState(0).normal(size=(2, 5, 8)).astype("float32")


def test_layer():
    check_layer(
        BertEncoderLayer, KWARGS, (X, MASK), (2, 5, 8), without_gradient=("key/bias",)
    )


@pytest.mark.parametrize("first_positions", [None, np.array([0, 2, 5], "int32")])
def test_first_positions_alone_are_as_among_all(first_positions):
    layer = BertEncoderLayer(**KWARGS)
    every = ops.convert_to_numpy(layer(X, MASK))
    first = layer(X, MASK, first_positions, first_only=True)
    flat = np.array([0, 5]) if first_positions is None else first_positions
    expected = every.reshape(-1, 1, 8)[flat]
    np.testing.assert_allclose(ops.convert_to_numpy(first), expected, atol=1e-6)
    spec = layer.compute_output_spec(X, MASK, first_positions, first_only=True)
    assert spec.shape == expected.shape


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("epsilon", [1e-12, 0.1])
def test_equals_numpy(activation, epsilon):
    layer = BertEncoderLayer(
        **{**KWARGS, "activation": activation, "layer_norm_epsilon": epsilon}
    )
    layer.build(X.shape)
    random = np.random.RandomState(3)
    for variable in layer.weights:
        variable.assign(random.normal(size=variable.shape))
    output = ops.convert_to_numpy(layer(X, MASK))
    weights = {v.path.split("/", 1)[1]: v.numpy() for v in layer.weights}
    expected, _ = bert_reference.encode(X, weights, "", 2, NUMBERS, activation, epsilon)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_the_two_gelus_differ_as_much_as_they_should():
    x = np.linspace(-4, 4, 101, dtype="float32")
    erf, tanh = (ops.convert_to_numpy(activate(x, n)) for n in ("gelu", "gelu_tanh"))
    np.testing.assert_allclose(erf, bert_reference.gelu(x), atol=1e-6)
    training = activate(ops.convert_to_tensor(x), "gelu", training=True)
    np.testing.assert_allclose(ops.convert_to_numpy(training), erf, atol=1e-6)
    np.testing.assert_allclose(tanh, bert_reference.gelu_tanh(x), atol=1e-6)
    assert 3e-4 < np.abs(erf - tanh).max() < 6e-4


@pytest.mark.parametrize("rates", [(0.5, 0.0), (0.0, 0.5)])
def test_dropout_only_in_training(rates):
    dropout, attention_dropout = rates
    layer = BertEncoderLayer(
        **{**KWARGS, "dropout": dropout, "attention_dropout": attention_dropout}
    )
    runs = [
        ops.convert_to_numpy(layer(X, MASK, training=training))
        for training in (False, False, True, True)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[2] - runs[0]).max() > 1e-3
    assert np.abs(runs[2] - runs[3]).max() > 1e-3


def test_the_two_dropouts_of_a_layer_differ():
    layer = BertEncoderLayer(**{**KWARGS, "dropout": 0.5, "attention_dropout": 0.0})
    ones = np.ones((1, 64, 8), "float32")
    drawn = [
        ops.convert_to_numpy(layer.dropout_layer(ones, training=True)) for _ in "12"
    ]
    assert (drawn[0] != drawn[1]).any()


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
def test_equal_values_in_float16_are_finite(dtype):
    # epsilon=1e-12 is 0 in float16: the statistics must be taken in float32.
    layer = BertEncoderLayer(8, 2, 12, layer_norm_epsilon=1e-12, dtype=dtype)
    layer.build(X.shape)
    for weight in layer.weights:
        if weight.path.endswith("kernel"):  # so that both norms see constant rows
            weight.assign(np.zeros(weight.shape))
    output = layer(ops.ones(X.shape, "float16"), MASK)
    np.testing.assert_array_equal(ops.convert_to_numpy(output), 0)
