import numpy as np
import pytest
from keras import ops

from kbert.layers.pooling import POOLING, TextPooling

RANDOM = np.random.RandomState(0)
# Three texts in two rows: a pair of 2 and 2 tokens, single texts of 3 and 2.
MASK = np.array([[1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]])
SEGMENTS = np.array([[0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0], [0] * 11])
FIRSTS = np.array([11, 0, 7], "int32")
X = RANDOM.normal(size=(2, 11, 4)).astype("float32")
# What counts of each text, in the order of FIRSTS: all, and all but [CLS] and [SEP].
COUNTED = {
    True: [(1, [0, 1, 2, 3]), (0, [0, 1, 2, 3, 4, 5, 6]), (0, [7, 8, 9])],
    False: [(1, [1, 2]), (0, [1, 2, 4, 5]), (0, [8])],
}
HOW = {"mean": np.mean, "max": np.max, "cls": lambda x, axis: x[0]}


def pooled(layer, *arrays):
    return ops.convert_to_numpy(layer(*map(ops.convert_to_tensor, arrays)))


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("special_tokens", [True, False])
@pytest.mark.parametrize("pooling", POOLING)
def test_pooling_of_packed_rows_is_that_of_numpy(pooling, special_tokens, normalize):
    layer = TextPooling(pooling, normalize, special_tokens)
    counted = COUNTED[special_tokens or pooling == "cls"]
    expected = np.stack([HOW[pooling](X[r][places], axis=0) for r, places in counted])
    if normalize:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = pooled(layer, X, SEGMENTS, MASK, FIRSTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert layer.compute_output_shape(X.shape, MASK.shape, MASK.shape, (3,)) == (3, 4)
    # One text a row is the same without the positions.
    alone = pooled(layer, X[1:], SEGMENTS[1:], MASK[1:])
    np.testing.assert_allclose(alone, expected[:1], atol=1e-6)
    assert layer.compute_output_shape(X.shape, MASK.shape, MASK.shape) == (2, 4)


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("firsts", [None, np.array([0], "int32")])
def test_a_text_without_tokens_is_0_and_no_nan(pooling, firsts):
    layer = TextPooling(pooling, special_tokens=False)
    mask, x = np.array([[1, 1, 0]]), X[:1, :3]
    given = (x, np.zeros_like(mask), mask)
    found = pooled(layer, *given, *([] if firsts is None else [firsts]))
    assert found.tolist() == [[0, 0, 0, 0]]


def test_its_config_holds_every_argument():
    arguments = {"pooling": "max", "normalize": False, "special_tokens": False}
    layer = TextPooling(**arguments, dtype="float32", name="mine")
    again = TextPooling.from_config(layer.get_config())
    assert {key: getattr(again, key) for key in arguments} == arguments
    assert again.get_config() == layer.get_config()


def test_an_unknown_pooling():
    with pytest.raises(ValueError, match="'cls'.*Received: pooling='sum'"):
        TextPooling("sum")
