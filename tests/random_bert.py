"""A small backbone whose every weight matters, and inputs for it."""

import keras
import numpy as np
from keras import ops

from kbert.backbone import BertBackbone

SIZES = {
    "vocabulary_size": 23,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "activation": "gelu_tanh",
    "dropout": 0.2,
    "attention_dropout": 0.3,
    "classifier_dropout": 0.4,
    "max_sequence_length": 8,
    "num_segments": 3,
    "layer_norm_epsilon": 1e-3,
    "initializer_range": 0.3,
    "pad_token_id": 1,
}
SHAPE = (3, 8)


def make(**changes):
    """Returns a backbone with random weights, biases and normalisations too."""
    backbone = BertBackbone(**{**SIZES, **changes})
    shake(backbone)
    return backbone


def shake(model, seed=0):
    """Gives every weight a random value, the same on each backend."""
    random = np.random.RandomState(seed)
    for variable in model.weights:
        value = random.normal(size=variable.shape) * 0.3
        if variable.path.endswith("gamma"):
            value += 1
        variable.assign(value.astype("float32"))


def weights(model):
    """Returns {path: array}."""
    return {v.path: np.array(v.numpy()) for v in model.weights}


def inputs(numbers=None, seed=1):
    """Returns random ids and segments under a mask of the numbers of texts."""
    random = np.random.RandomState(seed)
    if numbers is None:
        numbers = np.array([[1] * 8, [1] * 5 + [0] * 3, [1] * 2 + [0] * 6])
    return {
        "token_ids": random.randint(0, 23, numbers.shape).astype("int32"),
        "segment_ids": random.randint(0, 3, numbers.shape).astype("int32"),
        "padding_mask": np.asarray(numbers, "int32"),
    }


def run(model, values, **kwargs):
    """Returns the sequence output (B, S, H) and the pooled output (B, H) as float32."""
    outputs = model(values, **kwargs)
    return tuple(as_array(outputs[f"{key}_output"]) for key in ("sequence", "pooled"))


def as_array(tensor):
    return np.array(ops.convert_to_numpy(ops.cast(tensor, "float32")))


def trained_once(model, values, targets):
    """Returns {path: gradient} of the squared error, by one step of SGD."""
    before = weights(model)
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.train_on_batch(values, targets)
    return {path: before[path] - after for path, after in weights(model).items()}
