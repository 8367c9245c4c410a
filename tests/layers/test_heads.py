import numpy as np
from keras import ops

from kbert.layers import BertPooler, ChoiceLogits, SpanHead
from kbert.layers.heads import RULED_OUT
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
    np.testing.assert_array_equal(output, [[0, 1, 2], [3, 4, RULED_OUT]])
    assert ChoiceLogits()(logits).shape == (6, 1)


SEGMENTS = np.array([[0, 0, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1]], "int32")
MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]], "int32")
ANSWERABLE = np.array([[1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]], bool)
STATES = np.random.RandomState(1).normal(size=(2, 6, 4)).astype("float32")


def test_span_head():
    check_layer(
        SpanHead,
        {"initializer_range": 0.5},
        (STATES, SEGMENTS, MASK),
        (2, 2, 6),
        last_is_known=False,
    )


def test_span_head_equals_numpy():
    layer = SpanHead(0.5)
    masked = ops.convert_to_numpy(layer(STATES, SEGMENTS, MASK))
    kernel, bias = (v.numpy() for v in layer.weights)
    expected = (STATES @ kernel + bias).transpose(0, 2, 1)
    np.testing.assert_allclose(
        masked, np.where(ANSWERABLE[:, None], expected, RULED_OUT), atol=1e-6
    )
    trained = ops.convert_to_numpy(layer(STATES, SEGMENTS, MASK, training=True))
    np.testing.assert_allclose(
        trained, np.where(MASK[:, None] > 0, expected, RULED_OUT), atol=1e-6
    )


def test_span_head_without_a_second_text():
    layer = SpanHead()
    logits = ops.convert_to_numpy(layer(STATES, np.zeros_like(SEGMENTS), MASK))
    assert (logits[:, :, 1:] == RULED_OUT).all() and (logits[:, :, 0] > -1e9).all()
