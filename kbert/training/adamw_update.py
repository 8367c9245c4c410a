"""One update of AdamW, in one pass over memory on every backend.

The formula is written once, in `_updated`. Run an operation at a time it would pass a
dozen times over the weights, which for a small model is a fifth of a training step on a
CPU. JAX compiles the whole step; TensorFlow compiles this function alone; torch has a
kernel of its own, held to the formula by the tests.
"""

import dataclasses
import functools
import math
from typing import Any

import keras
from keras import ops

# The kinds of device for which torch has its kernel.
_TORCH_DEVICES = ("cpu", "cuda")


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The scalars of one update, for all variables of a dtype.

    Args:
        scale: a factor of the gradients, a scalar tensor; None for 1.
        rate: learning rate, a scalar tensor.
        step: number of the update, from 1, a scalar tensor; None not to correct the
            moments for starting at 0.
        betas: `(beta_1, beta_2)`, floats.
        epsilon: a float.
    """

    scale: Any
    rate: Any
    step: Any
    betas: tuple[float, float]
    epsilon: float

    @functools.cached_property
    def folded(self):
        """The scale, the step size and epsilon, with both corrections moved to them.

        Every operation on a whole variable costs.
        """
        dtype = self.rate.dtype
        step_size, epsilon = self.rate, ops.cast(self.epsilon, dtype)
        if self.step is not None:
            first, root_second = corrections(ops.cast(self.step, dtype), self.betas)
            step_size = self.rate * root_second / first
            epsilon = epsilon * root_second
        scale = ops.ones((), dtype) if self.scale is None else self.scale
        return [scale, step_size, epsilon]


def update(variable, m, v, gradient, numbers: Numbers, decay: float):
    """Updates a variable w and its moments m and v from a gradient g, in place.

        g <- scale g
        m <- beta_1 m + (1 - beta_1) g
        v <- beta_2 v + (1 - beta_2) g^2
        w <- w - rate (m' / (sqrt(v') + epsilon) + decay w)

    with m' = m / (1 - beta_1^step) and v' = v / (1 - beta_2^step), or m' = m and v' = v
    without a step.

    Args:
        variable: w, a `keras.Variable` or, on TensorFlow, the backend's own.
        m: first moment, a `keras.Variable`.
        v: second moment, the same.
        gradient: g, a tensor of the variable's shape and dtype.
        numbers: those of the variable's dtype.
        decay: the rate of decay.

    Reference: Loshchilov and Hutter 2017, https://arxiv.org/abs/1711.05101,
    algorithm 2.
    """
    backend = keras.backend.backend()
    if backend == "torch" and m.value.device.type in _TORCH_DEVICES:
        _in_torch(variable, m, v, gradient, numbers, decay)
        return
    tensors = [ops.convert_to_tensor(tensor) for tensor in (variable, m, v, gradient)]
    scalars = [*numbers.folded, numbers.rate * decay]
    if backend == "tensorflow":
        dtype = keras.backend.standardize_dtype(gradient.dtype)
        compiled = _compiled(dtype, numbers.betas)
        flat = [ops.reshape(tensor, (-1,)) for tensor in tensors]
        values = [ops.reshape(new, gradient.shape) for new in compiled(flat, scalars)]
    else:
        values = _updated(tensors, scalars, numbers.betas)
    for target, value in zip((variable, m, v), values, strict=True):
        target.assign(value)


def squared_norm(gradient):
    """Returns the sum of a tensor's squares, in one pass over it."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return 2.0 * tf.nn.l2_loss(gradient)
    if backend == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        return ops.square(torch.linalg.vector_norm(gradient))
    return ops.sum(ops.square(gradient))


def _updated(tensors, scalars, betas):
    """Returns w, m and v after the update, from w, m, v and g."""
    (w, m, v, g), (scale, step_size, epsilon, decay) = tensors, scalars
    g = g * scale
    m = m + (g - m) * (1.0 - betas[0])
    v = v + (ops.square(g) - v) * (1.0 - betas[1])
    return w - (m / (ops.sqrt(v) + epsilon) * step_size + w * decay), m, v


def corrections(step, betas):
    """Returns 1 - beta_1^step and sqrt(1 - beta_2^step), to the last digits.

    `1 - 0.999**step` in float32 would lose four of its seven digits at the first step.
    """
    first, second = (
        -ops.expm1(step * math.log(beta)) if beta else ops.ones_like(step)
        for beta in betas
    )
    return first, ops.sqrt(second)


@functools.cache
def _compiled(dtype, betas):
    """Returns `_updated`, compiled by XLA for vectors of any length."""
    import tensorflow as tf

    vector, scalar = tf.TensorSpec([None], dtype), tf.TensorSpec([], dtype)

    @tf.function(
        input_signature=[[vector] * 4, [scalar] * 4], jit_compile=True, autograph=False
    )
    def compiled(tensors, scalars):
        return _updated(tensors, scalars, betas)

    return compiled


def _in_torch(variable, m, v, gradient, numbers, decay):
    from torch.optim.adamw import adamw  # pyright: ignore[reportMissingImports]

    device, (scale, step) = m.value.device, (numbers.scale, numbers.step)
    # The kernel counts one up itself. After so many updates nothing is left to correct.
    updates = ops.full((), 1e12) if step is None else step - 1
    adamw(
        [variable.value],
        [gradient],
        [m.value],
        [v.value],
        [],
        [ops.cast(updates, "float32").to(device)],
        fused=True,
        amsgrad=False,
        beta1=numbers.betas[0],
        beta2=numbers.betas[1],
        lr=numbers.rate.to(device),
        weight_decay=decay,
        eps=numbers.epsilon,
        maximize=False,
        # The kernel divides by it.
        grad_scale=None if scale is None else (1.0 / scale).to(device),
    )
