import numpy as np
from keras import ops

from kbert.layers import BertPooler
from tests.layer_checks import check_layer

KWARGS = {"hidden_dim": 6, "initializer_range": 0.5}
X = np.random.RandomState(0).normal(size=(2, 4, 6)).astype("float32")
FIRST = np.array([0, 2, 4], "int32")  # two texts in row 0, one in row 1


def test_layer_with_one_text_a_row():
    output = check_layer(BertPooler, KWARGS, (X,), (2, 6))
    assert np.abs(output).max() < 1


def test_layer_with_several_texts_a_row():
    check_layer(BertPooler, KWARGS, (X, FIRST), (3, 6))


def test_equals_numpy():
    layer = BertPooler(6)
    pooled = ops.convert_to_numpy(layer(X, FIRST))
    kernel, bias = (v.numpy() for v in layer.weights)
    first = np.stack([X[0, 0], X[0, 2], X[1, 0]])
    np.testing.assert_allclose(pooled, np.tanh(first @ kernel + bias), atol=1e-6)
    plain = ops.convert_to_numpy(layer(X))
    np.testing.assert_allclose(plain, pooled[[0, 2]], atol=1e-7)
