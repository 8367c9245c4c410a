"""KerasHub's presets, read and written as files."""

import json
import pathlib

import h5py
import keras
import numpy as np
import pytest

import kbert
from kbert import keras_hub_folder
from kbert.checkpoints import keras_hub
from kbert.tasks import saving
from tests import random_bert, tiny


@pytest.fixture(scope="module")
def classifier():
    backbone = tiny.backbone(
        activation="gelu_tanh",
        dropout=0.2,
        attention_dropout=0.2,
        initializer_range=0.02,
    )
    model = kbert.BertClassifier(backbone, tiny.preprocessor(), labels=["a", "b", "c"])
    random_bert.shake(model, seed=3)
    return model


@pytest.fixture
def folder(classifier, tmp_path):
    """The classifier as a preset of KerasHub's."""
    keras_hub.write_folder(
        tmp_path / "hub",
        saving.merged_weights(classifier),
        classifier.backbone.config,
        classifier.preprocessor.tokenizer,
    )
    return tmp_path / "hub"


def weights(model):
    found = {w.path: w for w in model.backbone.weights} | model.head_weights()
    return {path: keras.ops.convert_to_numpy(w) for path, w in found.items()}


def test_a_round_trip_changes_nothing(classifier, folder):
    again = kbert.BertClassifier.from_preset(folder)
    assert again.backbone.config == classifier.backbone.config
    assert again.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    for path, array in weights(classifier).items():
        np.testing.assert_array_equal(weights(again)[path], array)
    texts = ["A thoughtful Film!", "an  unécaused film"]
    ours, theirs = (m.preprocessor.tokenizer(texts) for m in (classifier, again))
    assert ours == theirs


def test_the_encoder_alone_loads(classifier, folder):
    backbone = kbert.BertBackbone.from_preset(folder)
    assert backbone.config.num_heads == classifier.backbone.config.num_heads
    values = random_bert.inputs()
    values["segment_ids"] %= 2
    expected = random_bert.run(classifier.backbone, values)
    for found, array in zip(random_bert.run(backbone, values), expected, strict=True):
        np.testing.assert_allclose(found, array, atol=1e-6)


def test_an_encoder_without_a_task_has_no_head(folder):
    (folder / "task.json").unlink()
    (folder / "task.weights.h5").unlink()
    with pytest.warns(UserWarning, match="classifier/kernel.*stay random"):
        kbert.BertClassifier.from_preset(folder, labels=["x", "y"])


def change(path, key, value):
    content = json.loads(path.read_text())
    content["config"][key] = value
    path.write_text(json.dumps(content))


def test_another_number_of_heads_is_refused(folder, classifier):
    change(folder / "config.json", "num_heads", 1)
    with pytest.raises(ValueError, match="must have 1 heads.*Received: the shape"):
        kbert.BertBackbone.from_preset(folder)


def test_another_model_is_refused(folder):
    path = folder / "config.json"
    path.write_text(path.read_text().replace("BertBackbone", "RobertaBackbone"))
    with pytest.raises(ValueError, match="BertBackbone.*Received: 'RobertaBackbone'"):
        kbert.BertBackbone.from_preset(folder)


def link_away(file, kind, target):
    del file["layers/dense/vars/1"]
    links = {
        "soft": h5py.SoftLink("/layers/dense/vars/0"),
        "external": h5py.ExternalLink(str(target), "/x"),
    }
    file["layers/dense/vars/1"] = links[kind]


@pytest.mark.parametrize("kind", ["soft", "external"])
def test_links_are_not_followed(folder, tmp_path, kind):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = np.zeros(8, "float32")
    with h5py.File(folder / "model.weights.h5", "a") as file:
        link_away(file, kind, tmp_path / "other.h5")
    with pytest.raises(ValueError, match="Received: 'layers/dense/vars/1', a .*Link"):
        kbert.BertBackbone.from_preset(folder)


def test_data_outside_of_the_file_are_not_read(folder, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(64))
    with h5py.File(folder / "model.weights.h5", "a") as file:
        width = file["layers/dense/vars/1"].shape
        del file["layers/dense/vars/1"]
        file.create_dataset(
            *("layers/dense/vars/1", width, "float32"),
            external=[(str(tmp_path / "raw"), 0, 4 * width[0])],
        )
    with pytest.raises(ValueError, match="'layers/dense/vars/1', whose data lie"):
        kbert.BertBackbone.from_preset(folder)


def test_a_truncated_file_is_named(folder):
    path = folder / "model.weights.h5"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.weights.h5 must be a whole HDF5 file"):
        kbert.BertBackbone.from_preset(folder)


@pytest.mark.parametrize("change_of", ["missing", "unknown", "shape"])
def test_tensors_that_do_not_fit_are_named(folder, change_of):
    name = "layers/transformer_encoder/_feedforward_output_dense/vars/1"
    with h5py.File(folder / "model.weights.h5", "a") as file:
        if change_of == "unknown":
            file["layers/conv/vars/0"] = np.zeros(3, "float32")
            name = "layers/conv/vars/0"
        else:
            del file[name]
        if change_of == "shape":
            file[name] = np.zeros(3, "float32")
    expected = name if change_of != "missing" else "encoder_layer_0/output/bias"
    with pytest.raises(ValueError, match=expected):
        kbert.BertBackbone.from_preset(folder)


def test_what_keras_hub_would_compute_otherwise_is_refused(classifier, tmp_path):
    for changes, message in (
        ({"activation": "gelu"}, "hidden_act='gelu_new'.*'gelu'"),
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_eps=1e-12.*1e-05"),
        ({"attention_dropout": 0.0}, "one dropout.*0.2.*0.0"),
    ):
        sizes = {"activation": "gelu_tanh", "dropout": 0.2, "attention_dropout": 0.2}
        backbone = tiny.backbone(**{**sizes, **changes})
        with pytest.raises(ValueError, match=message):
            keras_hub_folder.from_transformers(backbone.config.to_hugging_face())


def test_nothing_is_written_over(classifier, folder):
    with pytest.raises(ValueError, match="not written over"):
        keras_hub.write_folder(
            folder, {}, classifier.backbone.config, classifier.preprocessor.tokenizer
        )
    assert pathlib.Path(folder, "task.json").exists()


@pytest.mark.parametrize("classes", [0, 10**12, True, "3", None])
def test_numbers_of_classes_that_are_none_are_refused(folder, classes):
    change(folder / "task.json", "num_classes", classes)
    with pytest.raises(ValueError, match=f"num_classes.*Received: {classes!r}"):
        kbert.BertClassifier.from_preset(folder)


def test_a_head_that_keras_hub_has_not_is_refused(model, tmp_path):
    weights = model(heads=("pooler", "spans"))
    with pytest.raises(ValueError, match=r"no task with this head.*\['spans'\]"):
        keras_hub.write_folder(tmp_path / "x", weights, kbert.BertConfig(), None)
    assert not (tmp_path / "x").exists()
