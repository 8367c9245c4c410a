"""Loaded variables own their numbers: the file may change, or go, afterwards."""

import keras
import numpy as np
import pytest
import safetensors.numpy

from kbert.checkpoints import folder

V, H = 64, 32
PATHS = {
    "embeddings/token_embedding/embeddings": (V, H),
    "encoder_layer_0/output/kernel": (2 * H, H),
    "encoder_layer_0/output/bias": (H,),
    "nsp/kernel": (H, 2),
}


@pytest.mark.parametrize("padding", range(0, 64, 8))
def test_a_file_that_is_overwritten_changes_no_variable(tmp_path, padding):
    """Whatever the alignment of the tensors: backends share memory that suits them."""
    rng = np.random.default_rng(padding)
    expected = {path: rng.normal(size=PATHS[path]).astype("float32") for path in PATHS}
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(folder.dump(expected), path, {"a": " " * padding})
    variables = {name: keras.Variable(np.zeros(PATHS[name])) for name in PATHS}
    folder.load_into(variables, folder.read_weights(path), source="here")
    size = path.stat().st_size
    with path.open("r+b") as file:  # the same file, which stays mapped
        file.write(b"\xff" * size)
    for name, variable in variables.items():
        values = keras.ops.convert_to_numpy(variable)
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
