import keras
import numpy as np
from keras import ops

from kbert.layers import BertProjection

X = np.random.RandomState(0).normal(size=(2, 3)).astype("float32")


def make(rank=None):
    inputs = keras.Input((3,))
    layer = BertProjection(4, name="query")
    model = keras.Model(inputs, layer(inputs))
    if rank:
        layer.enable_lora(rank)
    return model, layer


def test_is_a_dense_layer():
    _, layer = make()
    kernel, bias = (v.numpy() for v in layer.weights)
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(X)), X @ kernel + bias, rtol=1e-5
    )
    assert BertProjection.from_config(layer.get_config()).units == 4


def test_a_file_keeps_lora_as_lora(tmp_path):
    model, layer = make(rank=2)
    kernel = layer.weights[0].numpy().copy()
    for variable in model.trainable_variables:
        variable.assign(variable + 0.3)
    model.save_weights(tmp_path / "lora.weights.h5")
    other, other_layer = make(rank=2)
    other.load_weights(tmp_path / "lora.weights.h5")
    found = {v.name: v.numpy() for v in other_layer.weights}
    for variable in layer.weights:
        np.testing.assert_array_equal(found[variable.name], variable.numpy())
    np.testing.assert_array_equal(found["kernel"], kernel)
    np.testing.assert_allclose(
        ops.convert_to_numpy(other(X)), ops.convert_to_numpy(model(X)), rtol=1e-6
    )


def test_a_file_without_lora_leaves_the_factors_able_to_learn(tmp_path):
    plain, _ = make()
    plain.save_weights(tmp_path / "plain.weights.h5")
    model, layer = make(rank=2)
    model.load_weights(tmp_path / "plain.weights.h5")
    np.testing.assert_allclose(
        ops.convert_to_numpy(model(X)), ops.convert_to_numpy(plain(X)), rtol=1e-6
    )
    factors = {v.name: v.numpy() for v in layer.trainable_variables}
    assert np.abs(factors["lora_kernel_a"]).max() > 0


def test_a_quantised_layer_computes_in_int8():
    layer = BertProjection(6)
    layer.build((None, 8))
    x = np.random.RandomState(1).normal(size=(3, 8))
    x = ops.convert_to_tensor(x.astype("float32"))
    exact = ops.convert_to_numpy(layer.call(x))
    layer.quantize("int8", type_check=False)
    called, found = (ops.convert_to_numpy(f(x)) for f in (layer, layer.call))
    np.testing.assert_array_equal(found, called)
    assert 0 < np.abs(found - exact).max() < 0.05
