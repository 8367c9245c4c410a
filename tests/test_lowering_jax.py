"""Forward pass and training step lower for a GPU, on a machine that has none.

That XLA accepts them for CUDA says that no operation is missing there; it is not a
run on a GPU.
"""

import jax
import keras
import numpy as np
import pytest

from kbert.training import AdamW, WarmupLinearDecay
from tests import random_bert, tiny

NUMBERS = np.array([[1, 1, 1, 2, 2, 3, 3, 0], [1, 1, 1, 1, 1, 1, 1, 1]])


def classifier():
    model = tiny.classifier()
    values = {
        "token_ids": np.ones((2, 8), "int32"),
        "segment_ids": np.zeros((2, 8), "int32"),
        "padding_mask": NUMBERS.astype("int32"),
        "first_positions": np.array([0, 3, 5, 8], "int32"),
    }
    return model, values, np.array([0, 1, 1, 0])


def backbone(**changes):
    model = random_bert.make(**changes)
    values = random_bert.inputs(NUMBERS)
    targets = {
        "sequence_output": np.zeros((2, 8, 16), "float32"),
        "pooled_output": np.zeros((2, 16), "float32"),
    }
    return model, values, targets


MODELS = {
    "backbone": backbone,
    "backbone in bfloat16": lambda: backbone(dtype="mixed_bfloat16"),
    "classifier": classifier,
}


def values_of(variables):
    return [variable.value for variable in variables]


def forward(model):
    def run(trainable, others, inputs):
        return model.stateless_call(trainable, others, inputs, training=False)[0]

    state = (
        values_of(model.trainable_variables),
        values_of(model.non_trainable_variables),
    )
    return run, state


def training_step(model, loss):
    optimizer = AdamW(WarmupLinearDecay(1e-3, 10), gradient_accumulation_steps=2)
    optimizer.build(model.trainable_variables)

    def loss_of(trainable, others, inputs, targets):
        outputs, others = model.stateless_call(trainable, others, inputs, training=True)
        losses = jax.tree.map(lambda y, t: loss(t, y), outputs, targets)
        return sum(jax.tree.leaves(losses)), others

    def run(trainable, others, optimizer_values, inputs, targets):
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (value, others), grads = gradient(trainable, others, inputs, targets)
        trainable, optimizer_values = optimizer.stateless_apply(
            optimizer_values, grads, trainable
        )
        return value, trainable, others, optimizer_values

    _, state = forward(model)
    return run, (*state, values_of(optimizer.variables))


def lower(function, arguments):
    exported = jax.export.export(jax.jit(function), platforms=["cuda"])(*arguments)
    assert exported.platforms == ("cuda",)
    return exported.mlir_module()


@pytest.mark.parametrize("name", MODELS)
def test_forward_lowers_for_cuda(name):
    model, values, _ = MODELS[name]()
    function, state = forward(model)
    assert "stablehlo.dot_general" in lower(function, (*state, values))


@pytest.mark.parametrize("name", MODELS)
def test_training_step_lowers_for_cuda(name):
    model, values, targets = MODELS[name]()
    loss = keras.losses.MeanSquaredError()
    if name == "classifier":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    function, state = training_step(model, loss)
    assert "stablehlo.dot_general" in lower(function, (*state, values, targets))
