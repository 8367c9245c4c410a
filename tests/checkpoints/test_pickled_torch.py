"""`pytorch_model.bin`, read by torch without running what it names."""

import json
import os
import pickle

import numpy as np
import pytest
import torch

import kbert
from kbert import presets
from kbert.checkpoints import folder
from tests import random_bert, tiny

WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def preset(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    return presets.find_preset(tmp_path, allow_pickle=True)


def tensors(variables):
    """Returns torch's tensors; a kernel is a view, as `Linear` has it."""
    arrays = folder.dump(variables)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def save(preset, content, name="pytorch_model.bin", **kwargs):
    torch.save(content, preset.folder / name, **kwargs)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_tensor_in_its_place(preset, model, zipped, dtype):
    stored = {name: value.to(dtype) for name, value in tensors(model()).items()}
    extra = {"embeddings.position_ids": torch.arange(8)}
    save(preset, {**stored, **extra}, _use_new_zipfile_serialization=zipped)
    variables = model(seed=1)
    report = folder.load_preset(preset, variables)
    assert (report.random, report.ignored) == ((), tuple(extra))
    for name, array in folder.dump(variables).items():
        np.testing.assert_array_equal(array, stored[name].float().numpy())


def test_several_files_with_an_index(preset, model):
    whole, listed = tensors(model()), {}
    for number, part in enumerate((list(whole)[:7], list(whole)[7:]), 1):
        filename = f"pytorch_model-0000{number}-of-00002.bin"
        save(preset, {name: whole[name] for name in part}, filename)
        listed.update(dict.fromkeys(part, filename))
    path = preset.folder / "pytorch_model.bin.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": listed}))
    assert folder.load_preset(preset, model(seed=1)).ignored == ()
    path.write_text(json.dumps({"weight_map": {**listed, "x": "../x.bin"}}))
    with pytest.raises(ValueError, match=r"Received the name: '../x.bin'"):
        folder.load_preset(preset, model())
    path.write_text(json.dumps({"weight_map": {**listed, "x": "x.bin"}}))
    with pytest.raises(FileNotFoundError, match="x.bin, and no file is there"):
        folder.load_preset(preset, model())


class Shell:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", ["torch", "torch, old", "pickle"])
def test_what_it_names_is_not_run(preset, model, how):
    left = preset.folder / "left"
    content = {WORDS: Shell(left)}
    if how == "pickle":
        (preset.folder / "pytorch_model.bin").write_bytes(pickle.dumps(content, 2))
    else:
        save(preset, content, _use_new_zipfile_serialization=how == "torch")
    with pytest.raises(ValueError, match="pytorch_model.bin must be whole and hold"):
        folder.load_preset(preset, model())
    assert not left.exists()


@pytest.mark.parametrize(
    ("content", "received"),
    [
        ([torch.ones(3)], "Received: list"),
        ({3: torch.ones(3)}, "Tensor for '3'"),
        ({WORDS: "words"}, "Received: str for 'bert.embeddings.word"),
        ({WORDS: torch.ones(3, 3).to_sparse()}, "must hold dense tensors"),
        ({WORDS: torch.ones(1).expand(10**6)}, r"of the shape \(1000000,\) in 4 bytes"),
        ({"model": {WORDS: torch.ones(3)}}, "Received: dict for 'model'"),
    ],
)
def test_what_is_no_tensor_by_name(preset, model, content, received):
    save(preset, content)
    with pytest.raises(ValueError, match=received):
        folder.load_preset(preset, model())


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0, 3, 100, -200])
def test_a_truncated_file_is_refused(preset, model, zipped, kept):
    save(preset, tensors(model()), _use_new_zipfile_serialization=zipped)
    path = preset.folder / "pytorch_model.bin"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="must be whole"):
        folder.load_preset(preset, model())


def test_from_preset(tmp_path):
    original = tiny.classifier()
    random_bert.shake(original)
    original.save_to_preset(tmp_path)
    weights = folder.read_weights(tmp_path / "model.safetensors")
    stored = {name: torch.from_numpy(np.array(a)) for name, a in weights.items()}
    for name in ("kbert.json", "model.safetensors"):
        (tmp_path / name).unlink()
    torch.save(stored, tmp_path / "pytorch_model.bin")
    again = kbert.BertClassifier.from_preset(tmp_path, allow_pickle=True)
    backbone = kbert.BertBackbone.from_preset(tmp_path, allow_pickle=True)
    expected = random_bert.weights(original.backbone)
    for model in (again.backbone, backbone):
        for path, array in random_bert.weights(model).items():
            np.testing.assert_array_equal(array, expected[path])
