"""Google's checkpoints on every backend, with TensorFlow installed and without."""

import sys

import keras
import numpy as np
import pytest

import kbert
from kbert import presets
from kbert.checkpoints import folder, google
from kbert.config import BertConfig
from kbert.tokenization import BertTokenizer
from tests import random_bert, tiny


@pytest.fixture
def no_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)


def arrays_of(backbone):
    return {w.path: keras.ops.convert_to_numpy(w) for w in backbone.weights}


def test_there_and_back_is_bit_equal(tmp_path):
    pytest.importorskip("tensorflow", reason="it reads and writes the files")
    sizes = {"vocabulary_size": len(tiny.VOCABULARY), "layer_norm_epsilon": 1e-12}
    backbone = random_bert.make(**sizes)
    expected = arrays_of(backbone)
    tokenizer = BertTokenizer(tiny.VOCABULARY)
    google.write_checkpoint(tmp_path / "x", expected, backbone.config, tokenizer)
    again = kbert.BertBackbone.from_preset(tmp_path / "x")
    assert again.config == backbone.config
    for path, array in arrays_of(again).items():
        np.testing.assert_array_equal(array, expected[path])


def test_reading_asks_for_tensorflow(no_tensorflow, model, tmp_path):
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
    (tmp_path / "bert_model.ckpt.index").write_text("")
    with pytest.raises(ImportError, match=r"pip install 'keras-kbert\[tensorflow\]'"):
        folder.load_preset(presets.find_preset(tmp_path), model())


def test_writing_asks_for_tensorflow(no_tensorflow, tmp_path):
    config = BertConfig(activation="gelu_tanh")
    tokenizer = BertTokenizer(tiny.VOCABULARY)
    with pytest.raises(ImportError, match="are read and written by TensorFlow"):
        google.write_checkpoint(tmp_path / "x", {}, config, tokenizer)
    assert not (tmp_path / "x").exists()


def test_a_folder_without_a_checkpoint(no_tensorflow, model, tmp_path):
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
    with pytest.raises(FileNotFoundError, match=r"there are: \['bert_config.json'\]"):
        folder.load_preset(presets.find_preset(tmp_path), model())
