"""A tiny model of numpy variables, so that nothing here waits for a backend."""

import importlib.util

import numpy as np
import pytest

from kbert.checkpoints import names

if importlib.util.find_spec("transformers") is None:
    collect_ignore = ["test_transformers_torch.py"]

V, H, F, L, S, C = 11, 4, 6, 2, 8, 3
SHAPES = {
    "token_embedding/embeddings": (V, H),
    "position_embedding/embeddings": (S, H),
    "segment_embedding/embeddings": (2, H),
    "intermediate/kernel": (H, F),
    "intermediate/bias": (F,),
    "encoder_layer_{i}/output/kernel": (F, H),
    "classifier/kernel": (H, C),
    "classifier/bias": (C,),
    "mlm/bias": (V,),
    "nsp/kernel": (H, 2),
    "nsp/bias": (2,),
}


class Variable:
    """As much of a Keras variable as checkpoints know."""

    def __init__(self, shape, value):
        self.shape = shape
        self.value = value
        self.assigned = 0

    def assign(self, value):
        assert value.shape == self.shape
        self.value = np.array(value, "float32")
        self.assigned += 1

    def __array__(self, dtype=None, copy=None):
        return self.value


def make_variables(heads=("pooler",), seed=0):
    rng = np.random.default_rng(seed)
    variables = {}
    for row in names.TABLE:
        if names.head_of(row.kbert) not in (None, *heads):
            continue
        default = (H, H) if row.kbert.endswith("/kernel") else (H,)
        shape = next(
            (shape for end, shape in SHAPES.items() if row.kbert.endswith(end)), default
        )
        for i in range(L if "{i}" in row.kbert else 1):
            path = row.kbert.replace("{i}", str(i))
            value = rng.normal(size=shape).astype("float32")
            variables[path] = Variable(shape, value)
    return variables


@pytest.fixture
def model():
    """Returns `make_variables`: {kbert path: variable} of encoder and heads."""
    return make_variables
