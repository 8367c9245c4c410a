"""The activations of the feed-forward layers and of the head of masked tokens."""

import keras

from kbert.layers._backend import gelu


def activate(x, name, training=False):
    """Applies an activation by kbert's name; "gelu" is erf, "gelu_tanh" Google's.

    Args:
        x: float tensor.
        name: one of `kbert.config.ACTIVATIONS`.
        training: whether gradients are wanted.
    """
    if name == "gelu":
        return gelu(x, training)
    if name == "gelu_tanh":
        return keras.activations.gelu(x, approximate=True)
    return keras.activations.get(name)(x)
