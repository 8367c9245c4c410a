"""Masks drop the share that was asked for, each entry on its own."""

import keras
import numpy as np
import pytest
from keras import ops

from kbert.layers.dropout import dropped

SHAPE = (31, 4, 29, 33)  # an odd number of entries
COUNT = np.prod(SHAPE)
SIGMAS = 5


def draw(layer, seed=None):
    """Returns where ones were kept, bool, and what they became."""
    y = ops.convert_to_numpy(dropped(layer, ops.ones(SHAPE), True, seed))
    return y > 0, y


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.003])
def test_the_share_and_the_scale(rate):
    layer = keras.layers.Dropout(rate)
    deviation = np.sqrt(rate * (1 - rate) / COUNT)
    for _ in range(4):
        kept, y = draw(layer)
        assert abs((~kept).mean() - rate) < SIGMAS * deviation
        np.testing.assert_allclose(y[kept], 1 / (1 - rate), rtol=1e-6)


def test_masks_have_nothing_in_common():
    """Of steps that follow one another, of two layers, and of neighbours in a mask."""
    layers = [keras.layers.Dropout(0.5) for _ in range(2)]
    masks = [draw(layer)[0].ravel() - 0.5 for layer in layers for _ in range(4)]
    pairs = [(a, b) for i, a in enumerate(masks) for b in masks[:i]]
    strides = np.cumprod((1, *SHAPE[:0:-1]))
    pairs += [(mask[step:], mask[:-step]) for mask in masks for step in strides]
    for a, b in pairs:
        assert abs(4 * (a * b).mean()) < SIGMAS / np.sqrt(len(a))


def test_a_seed_gives_its_mask_again(backend):
    layer, masks = keras.layers.Dropout(0.5), []
    seeds = [layer.seed_generator.next() for _ in range(2)]
    for number in (0, 1, 0):
        if backend == "torch":  # its own generator, which its `checkpoint` sets back
            keras.utils.set_random_seed(number)
        masks.append(draw(layer, seeds[number])[0])
    np.testing.assert_array_equal(masks[0], masks[2])
    assert (masks[0] != masks[1]).mean() == pytest.approx(0.5, abs=0.02)


def test_nothing_is_dropped_where_none_is_to_be():
    x = ops.ones((3, 5))
    for rate, training in ((0.5, False), (0.5, None), (0.0, True)):
        y = dropped(keras.layers.Dropout(rate), x, training)
        np.testing.assert_array_equal(ops.convert_to_numpy(y), 1.0)
