"""Google's checkpoints where TensorFlow, which writes them, is not installed."""

import sys

import numpy as np
import pytest

from kbert import presets
from kbert.checkpoints import assigning, folder, google
from kbert.config import BertConfig
from kbert.tokenization import BertTokenizer
from tests import tiny
from tests.bundles import writer


@pytest.fixture
def no_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)


def test_reading_needs_no_tensorflow(no_tensorflow, model, tmp_path):
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
    arrays = assigning.dump(model(), google.GOOGLE)
    writer.write(tmp_path / "bert_model.ckpt", {**arrays, "global_step": np.int64(1)})
    variables = model(seed=1)
    report = folder.load_preset(presets.find_preset(tmp_path), variables)
    assert report.ignored == ("global_step",)
    for path, variable in model().items():
        np.testing.assert_array_equal(variables[path].value, variable.value)


def test_writing_asks_for_tensorflow(no_tensorflow, tmp_path):
    config = BertConfig(activation="gelu_tanh")
    tokenizer = BertTokenizer(tiny.VOCABULARY)
    with pytest.raises(ImportError, match=r"pip install 'keras-kbert\[tensorflow\]'"):
        google.write_checkpoint(tmp_path / "x", {}, config, tokenizer)
    assert not (tmp_path / "x").exists()


def test_a_folder_without_a_checkpoint(no_tensorflow, model, tmp_path):
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
    with pytest.raises(FileNotFoundError, match=r"there are: \['bert_config.json'\]"):
        folder.load_preset(presets.find_preset(tmp_path), model())
