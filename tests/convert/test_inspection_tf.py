"""What `inspect_preset` says of Google's checkpoints, in folders and zips."""

import zipfile

import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.checkpoints import assigning, google, sizes
from kbert.config import BertConfig
from kbert.convert.classes import TASK_CLASSES
from tests import tiny

CONFIG = BertConfig(**tiny.SIZES, activation="gelu_tanh")
HEADS = tuple(kind.__name__ for kind in TASK_CLASSES)
TOKENIZER = kbert.BertTokenizer(tiny.VOCABULARY)


def write(folder, classes=None, **extra):
    """Writes a checkpoint; `extra` are more tensors, by Google's names."""
    heads = ("pooler",) if classes is None else ("pooler", "classifier")
    shapes = sizes.expected_shapes(CONFIG, heads, classes or 1)
    variables = {path: np.ones(shape, "float32") for path, shape in shapes.items()}
    google.write_checkpoint(folder, variables, CONFIG, TOKENIZER)
    if extra:
        arrays = {**assigning.dump(variables, google.GOOGLE), **extra}
        tf.raw_ops.SaveV2(
            prefix=str(folder / "bert_model.ckpt"),
            tensor_names=list(arrays),
            shape_and_slices=[""] * len(arrays),
            tensors=list(arrays.values()),
        )
    return folder


def test_a_folder_of_googles(tmp_path):
    slot = {"global_step": np.int64(7), "bert/pooler/dense/bias/adam_m": np.zeros(16)}
    found = kbert.inspect_preset(write(tmp_path / "uncased", 3, **slot))
    assert found.usable
    assert (found.format, found.built_for) == (
        "google",
        "BertForSequenceClassification",
    )
    assert found.parameters["classifier"] == 51
    assert set(found.others) == set(slot)
    assert found.dtypes == ("float32",)
    assert found.loads["BertClassifier"] is None


def test_a_zip(tmp_path):
    folder = write(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "uncased.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"uncased/{path.name}")
    found = kbert.inspect_preset(tmp_path / "uncased.zip")
    assert found.usable
    assert (found.built_for, found.new_heads) == (None, HEADS)
    assert "bert_model.ckpt.index" in {file.name for file in found.files}


@pytest.mark.parametrize("damage", ["index", "data", "config"])
def test_the_sentence_is_that_of_loading(tmp_path, damage):
    folder = write(tmp_path / "uncased")
    if damage == "config":
        path = folder / "bert_config.json"
        path.write_text(
            path.read_text().replace('"vocab_size": 24', '"vocab_size": 25')
        )
    else:
        (path,) = folder.glob(f"*.{damage}*")
        path.write_bytes(path.read_bytes()[:40])
    found = kbert.inspect_preset(folder)
    with pytest.raises(ValueError) as error:
        kbert.BertBackbone.from_preset(folder)
    assert found.loads["BertBackbone"] == str(error.value)
    assert not found.usable


def test_a_model_that_asks_for_more_than_the_file_has_is_not_built(
    tmp_path, monkeypatch
):
    folder = write(tmp_path / "uncased")
    path = folder / "bert_config.json"
    path.write_text(path.read_text().replace("24,", "240000,"))
    monkeypatch.setattr(kbert.BertBackbone, "__init__", lambda *_: pytest.fail("built"))
    with pytest.raises(ValueError, match=r"must have the shape .*240000"):
        kbert.BertBackbone.from_preset(folder)
