"""What is said where TensorFlow, which reads Google's checkpoints, is not installed."""

import sys

import pytest

from kbert import presets
from kbert.checkpoints import folder, google
from kbert.config import BertConfig
from kbert.tokenization import BertTokenizer
from tests import tiny


@pytest.fixture
def no_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)


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
