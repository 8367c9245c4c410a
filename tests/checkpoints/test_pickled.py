"""`pytorch_model.bin`: refused, unless it is asked for."""

import sys

import pytest

import kbert
from kbert import presets
from kbert.checkpoints import folder
from kbert.hubs.selection import PICKLED
from tests import tiny


@pytest.fixture
def preset(tmp_path):
    tiny.classifier().save_to_preset(tmp_path)
    for name in ("kbert.json", "model.safetensors"):
        (tmp_path / name).unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("name", ["BertBackbone", "BertClassifier"])
@pytest.mark.parametrize("file", PICKLED)
def test_a_pickle_is_refused_by_default(preset, name, file):
    (preset / "pytorch_model.bin").rename(preset / file)
    told = "must have the file 'model.safetensors'.*is a pickle.*allow_pickle=True"
    with pytest.raises(FileNotFoundError, match=told):
        getattr(kbert, name).from_preset(preset)


def test_without_torch(preset, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = presets.find_preset(preset, allow_pickle=True)
    with pytest.raises(ImportError, match=r"pip install 'keras-kbert\[torch\]'"):
        folder.load_preset(found, model())


def test_what_is_no_pickle_is_preferred(preset, model, tmp_path):
    folder.write_weights(model(), preset / "model.safetensors")
    found = presets.find_preset(preset, allow_pickle=True)
    assert found.weights_path().name == "model.safetensors"
