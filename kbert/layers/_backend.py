"""Where a backend has a better way than `keras.ops`."""

import math
import os
import warnings

import keras
import numpy as np
from keras import ops

# A pass of XLA that, on a CPU, lets it merge what `remat` computes twice.
_REMAT_FLAG = "--xla_disable_hlo_passes=cse_barrier_expander"


def linear(x, kernel, bias):
    """Returns x @ kernel + bias.

    Args:
        x: float (..., in).
        kernel: float (in, out).
        bias: float (out,).

    Returns:
        Float (..., out).
    """
    # Where something is computed again, for gradients, Keras casts no variable itself.
    kernel, bias = ops.cast(kernel, x.dtype), ops.cast(bias, x.dtype)
    if keras.backend.backend() == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        # One pass over the result instead of two.
        return torch.nn.functional.linear(x, kernel.t(), bias)
    return ops.add(ops.matmul(x, kernel), bias)


def has_fused_attention() -> bool:
    """Whether `attention` is faster than products and a softmax one after another.

    On TensorFlow Keras has nothing but these, with two more passes over all heads.
    """
    return keras.backend.backend() != "tensorflow"


def attention(query, key, value, mask):
    """Returns softmax(Q K^T / sqrt(D)) V over the allowed columns.

    Args:
        query: float (B, S, N, D); so are `key` and `value`.
        key: the same.
        value: the same.
        mask: bool (B, 1, S, S).

    Returns:
        Float (B, S, N, D).
    """
    if keras.backend.backend() == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        # Keras would copy all three.
        heads = [tensor.transpose(1, 2) for tensor in (query, key, value)]
        scaled = torch.nn.functional.scaled_dot_product_attention
        return scaled(*heads, attn_mask=mask).transpose(1, 2)
    return ops.dot_product_attention(query, key, value, mask=mask)


def gelu(x, training):
    """Returns x times the normal distribution function of x, by erf.

    Keras takes erfc, which keeps the digits of tiny results and which TensorFlow fuses
    with a dense layer. Alone it costs twice as much as erf on JAX, and with its
    gradient four times as much on TensorFlow.

    Args:
        x: float tensor.
        training: whether gradients are wanted, so that nothing is fused.

    Returns:
        A tensor as `x`.
    """
    backend = keras.backend.backend()
    alone = backend == "jax" or (backend == "tensorflow" and training)
    if alone and keras.backend.standardize_dtype(x.dtype) == "float32":
        return x * (0.5 + 0.5 * ops.erf(x * math.sqrt(0.5)))
    return keras.activations.gelu(x, approximate=False)


def kept(shape, rate, seed):
    """Returns the mask of a dropout: true with the probability 1 - rate.

    For JAX and TensorFlow, where Keras's own mask is a tenth of a training step on a
    CPU. On JAX a hash of the entry's number and of the seed replaces Threefry's twenty
    rounds; on TensorFlow 16 random bits an entry replace 32, and the rate is rounded to
    1/65536.

    Args:
        shape: of the mask, a tuple of integers or scalar tensors.
        rate: the share of entries to drop, in (0, 1).
        seed: uint32 (2,).

    Returns:
        Bool, of that shape.
    """
    if keras.backend.backend() == "jax":
        number = ops.reshape(ops.arange(math.prod(shape), dtype="uint32"), shape)
        key = _hashed(seed[0] ^ _hashed(seed[1]))
        return _hashed(_hashed(number + key) ^ seed[1]) >= np.uint32(rate * 2**32)
    import tensorflow as tf

    count = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform(
        tf.reshape((count + 1) // 2, [1]),
        tf.cast(seed, "int32"),
        minval=None,  # pyright: ignore[reportArgumentType]  (of every value)
        dtype="int32",
    )
    shorts = tf.reshape(tf.bitcast(words, "int16"), [-1])[:count]
    least = tf.constant(round(rate * 2**16) - 2**15, "int16")
    return tf.reshape(shorts >= least, shape)


def warn_of_xla():
    """Warns where XLA would compute nothing again: on JAX's CPU, with its defaults."""
    flags = os.environ.get("XLA_FLAGS", "")
    if keras.backend.backend() != "jax" or _REMAT_FLAG in flags:
        return
    if all(device.startswith("cpu") for device in keras.distribution.list_devices()):
        warnings.warn(
            "On a CPU XLA merges the second computation of `remat` with the first, so "
            "no memory is saved. Set this before Python starts: "
            f"XLA_FLAGS={_REMAT_FLAG}",
            stacklevel=3,
        )


def _hashed(x):
    """Mixes the bits of uint32 numbers: "lowbias32" of Wellons 2018.

    Reference: https://nullprogram.com/blog/2018/07/31/.
    """
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)
