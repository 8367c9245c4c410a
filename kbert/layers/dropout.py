"""Dropout whose mask can be drawn a second time."""

import keras
from keras import ops

from kbert.layers._backend import kept


class _Drawn(keras.random.SeedGenerator):
    """A seed that was drawn already, in the place of a generator of seeds."""

    def __init__(self, seed):
        # Not the base's: that would make a variable.
        self.seed = seed
        self._initial_seed = None  # torch's backend looks at it

    def next(self, ordered=True):
        return self.seed


def dropped(layer, x, training, seed=None):
    """Drops entries of a tensor while training.

    Args:
        layer: a `keras.layers.Dropout`.
        x: a tensor.
        training: whether to drop.
        seed: what `layer.seed_generator.next()` returned, to draw the mask that it
            determines; None to draw a new one. On torch its own generator determines
            it, which torch sets back where it computes something again.
    """
    if not training or layer.rate == 0:
        return x
    if keras.backend.backend() != "torch":
        seed = layer.seed_generator.next() if seed is None else seed
        keep = kept(ops.shape(x), layer.rate, seed)
        return ops.where(keep, x * (1 / (1 - layer.rate)), 0)
    seed = layer.seed_generator if seed is None else _Drawn(seed)
    return keras.random.dropout(x, layer.rate, seed=seed)
