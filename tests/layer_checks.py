"""One check for every layer: what Keras expects of it, on whatever backend runs."""

import inspect
import pathlib
import tempfile

import keras
import numpy as np
from keras import ops

# Of Keras's own Layer; a layer's own arguments are all the others.
KERAS_ARGUMENTS = {"self", "args", "kwargs"}


def check_layer(
    layer_class,
    kwargs,
    inputs,
    expected_shape,
    policies=("float32", "mixed_bfloat16"),
    without_gradient=(),
    last_is_known=True,
):
    """Checks a layer whose every argument is given a value other than its default.

    Args:
        layer_class: the class.
        kwargs: every argument of its constructor but Keras's own.
        inputs: a tuple of numpy arrays, the arguments of its call.
        expected_shape: of its output, a tuple.
        policies: dtype policies to run under.
        without_gradient: ends of the paths of weights whose gradient is 0 by theory.
        last_is_known: whether the last axis has a size before any input is seen.

    Returns:
        The layer's float32 output as numpy, for further comparison.
    """
    check_arguments(layer_class, kwargs)
    check_config(layer_class, kwargs)
    for policy in policies:
        check_policy(layer_class, kwargs, inputs, expected_shape, policy)
    check_gradients(layer_class, kwargs, inputs, without_gradient)
    return check_model(layer_class, kwargs, inputs, expected_shape, last_is_known)


def check_arguments(layer_class, kwargs):
    """Every argument is there and none has its default, or it could be forgotten."""
    parameters = inspect.signature(layer_class.__init__).parameters
    own = set(parameters) - KERAS_ARGUMENTS
    assert set(kwargs) == own, f"give exactly {sorted(own)}, got {sorted(kwargs)}"
    for name, value in kwargs.items():
        assert value != parameters[name].default, f"{name}={value!r} is the default"


def check_config(layer_class, kwargs):
    """The config holds every argument as given, and makes the same layer again."""
    layer = layer_class(**kwargs, name="mine", trainable=False, dtype="mixed_bfloat16")
    config = layer.get_config()
    assert {name: config[name] for name in kwargs} == {
        name: keras.saving.serialize_keras_object(value)
        for name, value in kwargs.items()
    }
    again = layer_class.from_config(config)
    assert again.get_config() == config
    assert again.name == "mine" and not again.trainable
    assert again.dtype_policy.name == "mixed_bfloat16"
    serialised = keras.saving.serialize_keras_object(layer)
    assert serialised["registered_name"].startswith("kbert>")
    assert type(keras.saving.deserialize_keras_object(serialised)) is layer_class


def check_policy(layer_class, kwargs, inputs, expected_shape, policy):
    """Under a policy, variables and outputs have its dtypes, and values are finite."""
    layer = layer_class(**kwargs, dtype=policy)
    policy = keras.dtype_policies.get(policy)
    output = layer(*map(ops.convert_to_tensor, _floats_as(inputs, policy)))
    assert keras.backend.standardize_dtype(output.dtype) == policy.compute_dtype
    assert {v.dtype for v in layer.weights} <= {policy.variable_dtype}
    assert tuple(output.shape) == tuple(expected_shape)
    shapes = [array.shape for array in inputs]
    assert tuple(layer.compute_output_shape(*shapes)) == tuple(expected_shape)
    assert np.isfinite(_numpy(output)).all()
    assert layer.built


def check_gradients(layer_class, kwargs, inputs, without_gradient):
    """One step of SGD moves every trainable weight."""
    model = _model(layer_class(**kwargs), inputs)
    for variable in model.variables:
        if "seed" not in variable.path:
            shift = np.random.RandomState(1).normal(size=variable.shape) * 0.1
            variable.assign(variable + ops.convert_to_tensor(shift, variable.dtype))
    before = {v.path: np.array(v.numpy()) for v in model.trainable_variables}
    shape = model(list(inputs)).shape
    target = np.random.RandomState(2).normal(size=tuple(shape)).astype("float32")
    model.compile(keras.optimizers.SGD(10.0), "mse")
    assert np.isfinite(model.train_on_batch(list(inputs), target))
    for variable in model.trainable_variables:
        change = np.abs(variable.numpy() - before[variable.path]).max()
        expected = not variable.path.endswith(tuple(without_gradient))
        assert (change > 1e-4) == expected, f"{variable.path} moved by {change}"


def check_model(layer_class, kwargs, inputs, expected_shape, last_is_known):
    """In a functional model: symbolic, eager, compiled and reloaded are one."""
    model = _model(layer_class(**kwargs), inputs)
    symbolic, wanted = model.output_shape, tuple(expected_shape)
    assert len(symbolic) == len(wanted)
    pairs = zip(symbolic, wanted, strict=True)
    assert all(known in (None, size) for known, size in pairs), symbolic
    assert symbolic[-1] == (wanted[-1] if last_is_known else None)
    eager = _numpy(model(list(inputs), training=False))
    assert np.isfinite(eager).all()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        model.save(path)
        again = keras.saving.load_model(path)
    np.testing.assert_array_equal(_numpy(again(list(inputs), training=False)), eager)
    if keras.backend.backend() != "torch":
        model.compile(jit_compile=True)
    compiled = model.predict_on_batch(list(inputs))
    np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)
    return eager


def _model(layer, inputs):
    symbolic = [
        keras.Input(
            (None,) * (array.ndim > 1) + array.shape[2:], dtype=array.dtype.name
        )
        for array in inputs
    ]
    return keras.Model(symbolic, layer(*symbolic))


def _floats_as(inputs, policy):
    return [
        ops.cast(array, policy.compute_dtype) if array.dtype.kind == "f" else array
        for array in inputs
    ]


def _numpy(tensor):
    return np.array(ops.convert_to_numpy(ops.cast(tensor, "float32")))
