"""Dropout whose mask can be drawn a second time."""

import keras


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
            determines; None to draw a new one.
    """
    if not training or layer.rate == 0:
        return x
    if seed is None:
        return layer(x, training=training)
    return keras.random.dropout(x, layer.rate, seed=_Drawn(seed))
