"""Structures of arrays: equal, and the same after a `.keras` file."""

import keras
import numpy as np


def to_numpy(structure):
    """Return a structure of tensors as one of numpy arrays."""
    return keras.tree.map_structure(keras.ops.convert_to_numpy, structure)


def assert_same(actual, expected):
    """Fail unless two structures of tensors are equal, dtypes included."""

    def compare(one, other):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)

    keras.tree.map_structure(compare, to_numpy(actual), to_numpy(expected))


def reloaded(model, folder):
    """Return the model as its `.keras` file has it."""
    path = folder / "model.keras"
    model.save(path)
    return keras.saving.load_model(path)
