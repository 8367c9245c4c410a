"""Where a backend has a better way than `keras.ops`."""

import keras
from keras import ops


def linear(x, kernel, bias):
    """Returns x @ kernel + bias.

    Args:
        x: float (..., in).
        kernel: float (in, out).
        bias: float (out,).

    Returns:
        Float (..., out).
    """
    if keras.backend.backend() == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        kernel, bias = ops.convert_to_tensor(kernel), ops.convert_to_tensor(bias)
        # One pass over the result instead of two.
        return torch.nn.functional.linear(x, kernel.t(), bias)
    return ops.add(ops.matmul(x, kernel), bias)
