"""What `inspect_preset` says is what loading does, without a model."""

import importlib
import json
import shutil

import h5py
import keras
import numpy as np
import pytest
import safetensors.numpy

import kbert
from kbert import presets
from kbert.checkpoints import keras_hub
from kbert.checkpoints.stored import StoredArray
from kbert.convert import classes
from kbert.files import sha256
from kbert.tasks import saving
from tests import tiny

LABELS = ["x", "y", "z"]
HEADS = tuple(kind.__name__ for kind in classes.TASK_CLASSES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A classifier in the formats that every backend writes."""
    place = tmp_path_factory.mktemp("folders")
    backbone = tiny.backbone(activation="gelu_tanh", initializer_range=0.02)
    model = kbert.BertClassifier(backbone, tiny.preprocessor(), labels=LABELS)
    model.save_to_preset(place / "hugging_face")
    keras_hub.write_folder(
        place / "keras_hub",
        saving.merged_weights(model),
        backbone.config,
        model.preprocessor.tokenizer,
    )
    return place


@pytest.fixture
def nothing_built(monkeypatch):
    """Fails where a model is built or a number read."""
    monkeypatch.setattr(keras.Model, "__init__", lambda *_, **__: pytest.fail("built"))
    monkeypatch.setattr(StoredArray, "__array__", lambda *_: pytest.fail("read"))


@pytest.mark.parametrize("format", ["hugging_face", "keras_hub"])
def test_what_a_folder_holds(folders, nothing_built, format):
    found = kbert.inspect_preset(folders / format)
    assert found.usable
    assert found.format == format
    assert found.built_for == "BertForSequenceClassification"
    assert found.architecture.hidden_dim == 16
    assert found.architecture.activation == "gelu_tanh"
    assert found.dtypes == ("float32",)
    assert found.parameters["classifier"] == 3 * 16 + 3
    assert found.parameters["pooler"] == 16 * 16 + 16
    names = LABELS if format == "hugging_face" else ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert found.labels == tuple(names)
    assert found.tokenizer["vocabulary"] == len(tiny.VOCABULARY)
    assert found.tokenizer["lowercase"] is True
    assert found.loads == dict.fromkeys(
        ("BertTokenizer", "BertBackbone", "BertClassifier")
    )
    others = [name for name in HEADS if name != "BertClassifier"]
    assert (found.notes, found.new_heads) == ((), tuple(others))
    for file in found.files:
        assert file.sha256 == sha256(folders / format / file.name)
    told = {file.name: file.told for file in found.files}
    if format == "hugging_face":
        assert told.pop("kbert.json") == ""
        assert set(told.values()) == {"as saved"}
        assert found.metadata["task"] == "BertClassifier"
    else:
        assert "assets/tokenizer/vocabulary.txt" in told
        assert set(told.values()) == {""}


def test_the_parameters_are_the_models(folders):
    found = kbert.inspect_preset(folders / "hugging_face")
    model = kbert.BertClassifier.from_preset(folders / "hugging_face")
    assert sum(found.parameters.values()) == model.count_params()


def without_digests(folder):
    (folder / "kbert.json").unlink()


def edit(folder, filename, key, value):
    content = json.loads((folder / filename).read_text())
    content[key] = value
    (folder / filename).write_text(json.dumps(content))


def retensor(folder, change):
    without_digests(folder)
    path = folder / "model.safetensors"
    arrays = change(safetensors.numpy.load_file(path))
    safetensors.numpy.save_file(arrays, path)


def damaged_byte(folder):
    path = folder / "vocab.txt"
    path.write_bytes(path.read_bytes() + b"x")
    (folder / "kbert.json").touch()


def no_vocabulary(folder):
    without_digests(folder)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer.json").unlink()


def wider(folder):
    without_digests(folder)
    edit(folder, "config.json", "hidden_size", 18)


def not_bert(folder):
    without_digests(folder)
    edit(folder, "config.json", "model_type", "gpt2")


def of_two_labels(folder):
    without_digests(folder)
    edit(folder, "config.json", "id2label", {"0": "x", "1": "y"})


def extra_layer(folder):
    retensor(folder, lambda a: {**a, "bert.encoder.layer.9.x": np.zeros(1, "float32")})


def whole_numbers(folder):
    retensor(folder, lambda a: {**a, "classifier.bias": np.zeros(3, "int32")})


def no_weights(folder):
    without_digests(folder)
    (folder / "model.safetensors").unlink()


def truncated(folder):
    without_digests(folder)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def pieces_without_rows(folder):
    without_digests(folder)
    (folder / "tokenizer.json").unlink()
    path = folder / "vocab.txt"
    path.write_text(path.read_text() + "more\nstill\n")


def other_heads_number(folder):
    content = json.loads((folder / "config.json").read_text())
    content["config"]["num_heads"] = 4
    (folder / "config.json").write_text(json.dumps(content))


def link_in_h5(folder):
    with h5py.File(folder / "model.weights.h5", "a") as file:
        file["x"] = h5py.SoftLink("/layers")


def wider_h5(folder):
    content = json.loads((folder / "config.json").read_text())
    content["config"]["intermediate_dim"] = 32
    (folder / "config.json").write_text(json.dumps(content))


HARM = {
    "hugging_face": (
        *(damaged_byte, no_vocabulary, wider, not_bert, of_two_labels, extra_layer),
        *(whole_numbers, no_weights, truncated, pieces_without_rows),
    ),
    "keras_hub": (other_heads_number, link_in_h5, wider_h5),
}
CASES = [(format, harm) for format, cases in HARM.items() for harm in cases]


def sentences(folder):
    """What loading raises, by the class."""
    told = {}
    for name in ("BertTokenizer", "BertBackbone", "BertClassifier"):
        try:
            getattr(kbert, name).from_preset(folder)
        except (ValueError, OSError) as error:
            told[name] = str(error)
    return told


@pytest.mark.filterwarnings("ignore:Neither")
@pytest.mark.parametrize(("format", "harm"), CASES)
def test_the_sentence_is_that_of_loading(folders, tmp_path, format, harm):
    folder = tmp_path / "model"
    shutil.copytree(folders / format, folder)
    harm(folder)
    found = kbert.inspect_preset(folder)
    assert not found.usable
    told = {name: refusal for name, refusal in found.loads.items() if refusal}
    expected = sentences(folder)
    # Where no config can be read, nothing says that a classifier is meant.
    if "BertClassifier" not in found.loads:
        del expected["BertClassifier"]
    assert told == expected
    assert found.files


def test_a_bare_encoder_takes_any_head(folders, tmp_path, nothing_built):
    folder = tmp_path / "model"
    shutil.copytree(folders / "hugging_face", folder)
    edit(folder, "config.json", "architectures", ["BertModel"])
    ids = {"bert.embeddings.position_ids": np.arange(3)}
    retensor(
        folder,
        lambda arrays: {k: arrays[k] for k in arrays if "classifier" not in k} | ids,
    )
    found = kbert.inspect_preset(folder)
    assert found.usable
    assert (found.built_for, found.new_heads) == ("BertModel", HEADS)
    assert found.others == tuple(ids)
    assert found.dtypes == ("float32",)


@pytest.mark.parametrize("spec", ["no/such/folder", "bert_bose", "hf://a"])
def test_what_is_not_there(spec):
    found = kbert.inspect_preset(spec)
    assert not found.usable
    with pytest.raises((ValueError, OSError)) as error:
        kbert.BertBackbone.from_preset(spec)
    assert found.loads["BertBackbone"] == str(error.value)


def test_a_link_out_of_the_folder_is_told_not_followed(folders, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(folders / "hugging_face", folder)
    (tmp_path / "secret").write_text("secret")
    (folder / "notes").symlink_to(tmp_path / "secret")
    found = kbert.inspect_preset(folder)
    (notes,) = (file for file in found.files if file.name == "notes")
    assert notes.sha256 is None
    assert "a link to" in notes.told


def test_a_builtin_without_weights_says_where_they_are(monkeypatch, tmp_path):
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    found = kbert.inspect_preset("bert_tiny_en_uncased")
    assert found.loads["BertTokenizer"] is None
    assert "come from hf://google/bert" in found.loads["BertBackbone"]
    assert found.metadata["licence"] == "Apache-2.0"
    assert found.folder == presets.find_preset("bert_tiny_en_uncased").folder


def test_what_is_no_path_is_an_error():
    with pytest.raises(TypeError, match="Received: 3 of type int"):
        kbert.inspect_preset(3)
