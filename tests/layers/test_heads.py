import numpy as np
from keras import ops

from kbert.layers import BertPooler, ChoiceLogits
from kbert.layers.heads import NO_CHOICE
from tests.layer_checks import check_config, check_layer, check_policy

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


def test_choices_lie_beside_each_other():
    logits = np.arange(6, dtype="float32").reshape(6, 1)
    mask = np.array([[1, 1, 1], [1, 1, 0]], "int32")
    check_config(ChoiceLogits, {})  # no weight that a step could move
    check_policy(ChoiceLogits, {}, (logits, mask), (2, 3), "float32")
    output = ops.convert_to_numpy(ChoiceLogits()(logits, mask))
    np.testing.assert_array_equal(output, [[0, 1, 2], [3, 4, NO_CHOICE]])
    assert ChoiceLogits()(logits).shape == (6, 1)
