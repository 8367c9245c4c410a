import dataclasses
import os

import numpy as np
import pytest
import safetensors.numpy

import kbert
from kbert import presets
from kbert.checkpoints import folder, sizes
from kbert.checkpoints.stored import StoredArray
from kbert.config import BertConfig
from tests import tiny

CONFIG = BertConfig(**tiny.SIZES)


def preset_of(path, arrays):
    """A preset with these weights and nothing else."""
    files = {"model.safetensors": lambda p: safetensors.numpy.save_file(arrays, p)}
    presets.write_preset(path / "model", files, {})
    return presets.find_preset(path / "model")


@pytest.fixture
def arrays():
    shapes = sizes.expected_shapes(CONFIG)
    return folder.dump({path: np.zeros(shape) for path, shape in shapes.items()})


def test_the_shapes_are_the_models():
    config = BertConfig(
        vocabulary_size=11,
        num_layers=3,
        num_heads=2,
        hidden_dim=6,
        intermediate_dim=7,
        max_sequence_length=8,
        num_segments=4,
    )
    model = kbert.BertBackbone.from_architecture(config)
    expected = {weight.path: tuple(weight.shape) for weight in model.weights}
    assert sizes.expected_shapes(config) == expected
    bare = {k: shape for k, shape in expected.items() if not k.startswith("pooler/")}
    assert sizes.expected_shapes(config, heads=()) == bare


def test_what_fits(tmp_path, arrays, recwarn):
    sizes.check_preset(preset_of(tmp_path, arrays), CONFIG)
    bare = {name: array for name, array in arrays.items() if "pooler" not in name}
    sizes.check_preset(preset_of(tmp_path, bare), CONFIG)
    extra = {"cls.predictions.bias": np.zeros(3, "int64")}  # read by nobody
    sizes.check_preset(preset_of(tmp_path, {**arrays, **extra}), CONFIG)
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"hidden_dim": 60_000}, "must have the shape .*60000"),
        ({"vocabulary_size": 10**7}, r"\(10000000, 16\)"),
        ({"intermediate_dim": 25}, r"\(25"),
        ({"max_sequence_length": 33}, r"\(33, 16\)"),
        ({"num_segments": 3}, r"\(3, 16\)"),
        ({"num_layers": 200}, "Missing: .*encoder.layer.1.attention"),
    ],
)
def test_what_asks_for_more_than_the_file_has(tmp_path, arrays, change, received):
    preset = preset_of(tmp_path, arrays)
    config = dataclasses.replace(CONFIG, **change)
    with pytest.raises(ValueError, match=received) as error:
        sizes.check_preset(preset, config)
    assert str(preset.folder) in str(error.value)
    assert len(str(error.value)) < 3000


def test_integers_are_refused(tmp_path, arrays):
    name = "encoder.layer.0.output.dense.bias"
    whole = {**arrays, name: np.zeros(16, "int32")}
    with pytest.raises(ValueError, match=f"Received: I32 for '{name}'"):
        sizes.check_preset(preset_of(tmp_path, whole), CONFIG)


def test_no_number_is_read(tmp_path, arrays, monkeypatch):
    monkeypatch.setattr(StoredArray, "__array__", lambda *_: pytest.fail("read"))
    sizes.check_preset(preset_of(tmp_path, arrays), CONFIG)


def test_the_hash_comes_first(tmp_path, arrays):
    preset = preset_of(tmp_path, arrays)
    path = preset.path("model.safetensors")
    path.write_bytes(b"damaged")
    os.utime(path, (0, 0))
    with pytest.raises(ValueError, match="model.safetensors is not the file"):
        sizes.check_preset(preset, CONFIG)


@pytest.mark.parametrize("load", ["BertBackbone", "BertClassifier"])
def test_no_model_is_built_of_what_does_not_fit(load, tmp_path, monkeypatch):
    tiny.classifier().save_to_preset(tmp_path)
    (tmp_path / "kbert.json").unlink()
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"hidden_size": 16', '"hidden_size": 18'))
    monkeypatch.setattr(kbert.BertBackbone, "__init__", lambda *_: pytest.fail("built"))
    with pytest.raises(ValueError, match=r"must have the shape \(24, 18\)"):
        getattr(kbert, load).from_preset(tmp_path)
