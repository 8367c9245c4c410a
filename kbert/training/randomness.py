"""What decides at random beside a model's own seeds, as arrays; and to decide alike.

Keras's seeds are variables of a model. Dropout on torch draws from torch's generator
instead, users' code from those of Python and numpy.
"""

import math
import random

import keras
import numpy as np


def random_states() -> dict[str, np.ndarray]:
    """Returns the states of the generators of Python, numpy and torch, by name."""
    version, numbers, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state()
    states = {
        "python": np.array([version, *numbers], np.int64),
        "python_gauss": np.array([math.nan if gauss is None else gauss]),
        "numpy": np.array([*keys, position, has_gauss], np.int64),
        "numpy_gauss": np.array([cached]),
    }
    if keras.backend.backend() == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        states["torch"] = torch.get_rng_state().numpy()
        for number, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"torch_cuda_{number}"] = state.cpu().numpy()
    return states


def set_random_states(states: dict[str, np.ndarray]) -> None:
    """Sets the generators to what `random_states` returned.

    Args:
        states: by name. Those of devices that are not here are left out.
    """
    version, *numbers = states["python"].tolist()
    gauss = states["python_gauss"].item()
    random.setstate((version, tuple(numbers), None if math.isnan(gauss) else gauss))
    *keys, position, has_gauss = states["numpy"].tolist()
    cached = states["numpy_gauss"].item()
    keys = np.array(keys, np.uint32)
    np.random.set_state(("MT19937", keys, position, has_gauss, cached))
    if keras.backend.backend() == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        torch.set_rng_state(torch.from_numpy(states["torch"]))
        for number in range(torch.cuda.device_count()):
            if f"torch_cuda_{number}" in states:
                state = torch.from_numpy(states[f"torch_cuda_{number}"])
                torch.cuda.set_rng_state(state, number)


def make_deterministic() -> None:
    """Lets the backend compute the same bits from the same numbers, for good.

    TensorFlow then sums the gradients of an embedding in a fixed order; torch chooses
    such kernels, where it has them, on a GPU. JAX does so by itself. Random seeds are
    to be set before, by `keras.utils.set_random_seed`.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
    elif backend == "torch":
        import torch  # pyright: ignore[reportMissingImports]

        torch.use_deterministic_algorithms(True, warn_only=True)
        # Or torch writes over memory that nobody reads before it is written.
        torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]
