"""What `export` refuses before any work, and what it tells when the child fails."""

import importlib.util
import pathlib

import keras
import pytest

from kbert.export.child_process import export_in_child
from kbert.export.saved_model import check_target
from tests import random_bert, tiny

with_tensorflow = importlib.util.find_spec("tensorflow") is not None


def test_another_format(tmp_path):
    with pytest.raises(ValueError, match="Received: 'onnx'"):
        tiny.classifier().export(tmp_path / "model", format="onnx")


def test_an_input_signature(tmp_path):
    with pytest.raises(ValueError, match=r"Received: \['mine'\]"):
        tiny.classifier().export(tmp_path / "model", input_signature=["mine"])


def test_no_preprocessor(tmp_path):
    task = tiny.classifier(preprocessor=None)
    with pytest.raises(ValueError, match="BertClassifier without one"):
        task.export(tmp_path / "model")


def test_no_tensorflow(tmp_path, monkeypatch, backend):
    find_spec = importlib.util.find_spec
    if with_tensorflow:
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *rest: (
                None if name == "tensorflow" else find_spec(name, *rest)
            ),
        )
    expected = rf"Received: .*'{backend}'.*\n?.*pip install 'keras-kbert\[tensorflow\]'"
    with pytest.raises(ImportError, match=expected):
        tiny.classifier().export(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_backbone_on_another_backend(tmp_path, monkeypatch):
    backbone = random_bert.make()
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="Received: Keras on 'jax'.*task"):
        backbone.export(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_something_else(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="Received: .*'thesis.txt'"):
        check_target(tmp_path)
    with pytest.raises(ValueError, match="Received: .*'thesis.txt'"):
        check_target(tmp_path / "thesis.txt")


def test_places_to_write_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_target("new") == tmp_path / "new"
    (tmp_path / "empty").mkdir()
    assert check_target(tmp_path / "empty") == tmp_path / "empty"
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "saved_model.pb").write_bytes(b"")
    (tmp_path / "old" / "variables").mkdir()
    assert check_target(tmp_path / "old") == tmp_path / "old"


def test_a_child_that_fails_is_heard(tmp_path):
    told = "A preset's folder must exist" if with_tensorflow else "named 'tensorflow'"
    with pytest.raises(RuntimeError, match=rf"(?s)exit status 1 .*({told})"):
        export_in_child(
            lambda folder: None, "BertClassifier", "float32", tmp_path / "model"
        )
    assert not pathlib.Path(tmp_path / "model").exists()
