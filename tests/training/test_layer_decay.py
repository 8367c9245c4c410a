"""Lower layers learn more slowly, by a factor a layer."""

import keras
import numpy as np
import pytest
from keras import ops

import kbert
from tests import tiny

FACTORS = {
    "embeddings": 0.125,
    "encoder_layer_0": 0.25,
    "encoder_layer_1": 0.5,
    "pooler": 1.0,
    "classifier": 1.0,
}


def moved(**arguments):
    """How far one step moves each variable of a classifier of two layers."""
    keras.utils.set_random_seed(0)
    task = kbert.BertClassifier(tiny.backbone(num_layers=2), num_classes=2)
    variables = task.trainable_variables
    before = [ops.convert_to_numpy(variable) for variable in variables]
    optimizer = kbert.AdamW(0.1, **arguments)
    optimizer.build(variables)
    gradients = [ops.convert_to_tensor(np.full_like(w, 0.01)) for w in before]
    optimizer.apply(gradients, variables)
    return {
        variable.path: ops.convert_to_numpy(variable) - w
        for variable, w in zip(variables, before, strict=True)
    }


def test_each_layer_has_its_rate():
    plain, layered = moved(), moved(layer_decay=0.5)
    seen = set()
    for path, step in plain.items():
        part = path.split("/")[0]
        seen.add(part)
        expected = step * FACTORS[part]
        np.testing.assert_allclose(layered[path], expected, 1e-4, 1e-6, err_msg=path)
        assert np.abs(step).max() > 0
    assert seen == set(FACTORS)


def test_what_is_no_encoder_has_one_rate():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    optimizer = kbert.AdamW(layer_decay=0.5)
    optimizer.build(model.trainable_variables)
    assert optimizer._rate_factors == (1.0, 1.0)


def test_it_is_kept():
    again = kbert.AdamW.from_config(kbert.AdamW(layer_decay=0.9).get_config())
    assert again.layer_decay == 0.9


@pytest.mark.parametrize("factor", [0.0, 1.1, -0.5, float("nan")])
def test_out_of_range(factor):
    with pytest.raises(ValueError, match=f"`layer_decay`.*Received: {factor}"):
        kbert.AdamW(layer_decay=factor)
