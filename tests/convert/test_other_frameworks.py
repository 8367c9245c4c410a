"""`inspect_preset` and `convert_preset` on the files of other frameworks."""

import numpy as np
import pytest
import safetensors.numpy

import kbert
from kbert.checkpoints import folder as checkpoint
from kbert.convert.classes import TASK_CLASSES
from tests import random_bert, tiny
from tests.checkpoints import foreign

HEADS = tuple(kind.__name__ for kind in TASK_CLASSES)


@pytest.fixture(scope="module")
def backbone():
    """An encoder that Google's code could compute."""
    backbone = tiny.backbone(activation="gelu_tanh")
    random_bert.shake(backbone)
    return backbone


def of_transformers(folder, config):
    tokenizer = kbert.BertTokenizer(tiny.VOCABULARY)
    checkpoint.write_folder(folder, {}, config, tokenizer)
    for name in ("kbert.json", "model.safetensors"):
        (folder / name).unlink()


def tf_model(folder, config, arrays):
    of_transformers(folder, config)
    foreign.tf_model_h5(folder / "tf_model.h5", arrays)


def flax_model(folder, config, arrays):
    of_transformers(folder, config)
    foreign.flax_msgpack(folder / "flax_model.msgpack", arrays)


def tf2(folder, config, arrays):
    folder.mkdir()
    (folder / "bert_config.json").write_text(foreign.google_config(config))
    (folder / "vocab.txt").write_text("\n".join(tiny.VOCABULARY))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    foreign.tf2_checkpoint(folder / "bert_model.ckpt", arrays, config.num_heads)


def saved_model(folder, config, arrays):
    foreign.hub_saved_model(folder, arrays, config.num_heads, tiny.VOCABULARY)


FORMATS = {
    tf_model: ("hugging_face", "tf_model.h5"),
    flax_model: ("hugging_face", "flax_model.msgpack"),
    tf2: ("google", "bert_model.ckpt"),
    saved_model: ("tf_hub", "variables"),
}


@pytest.mark.parametrize("write", FORMATS)
def test_what_the_files_hold(write, backbone, tmp_path):
    arrays = random_bert.weights(backbone)
    write(tmp_path / "model", backbone.config, arrays)
    found = kbert.inspect_preset(tmp_path / "model")
    assert found.loads == dict.fromkeys(("BertTokenizer", "BertBackbone"))
    format, weights = FORMATS[write]
    assert found.format == format
    assert found.weights.endswith(weights)
    pooler = sum(a.size for path, a in arrays.items() if path.startswith("pooler"))
    encoder = sum(array.size for array in arrays.values()) - pooler
    assert found.parameters["encoder"] == encoder
    assert found.parameters["pooler"] == pooler
    assert (found.dtypes, found.new_heads) == (("float32",), HEADS)


@pytest.mark.parametrize("write", [flax_model, saved_model])
def test_it_becomes_a_preset(write, backbone, tmp_path):
    source, target = tmp_path / "model", tmp_path / "preset"
    write(source, backbone.config, random_bert.weights(backbone))
    done = kbert.convert_preset(source, target, "huggingface")
    assert done.faithful
    read = {"saved_model.pb", "variables/variables.index", "flax_model.msgpack"}
    assert read.isdisjoint(dict(done.dropped))
    found = safetensors.numpy.load_file(target / "model.safetensors")
    expected = checkpoint.dump(random_bert.weights(backbone))
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_pickle_is_refused_in_both(backbone, tmp_path):
    of_transformers(tmp_path / "model", backbone.config)
    (tmp_path / "model" / "pytorch_model.bin").write_bytes(b"")
    found = kbert.inspect_preset(tmp_path / "model")
    assert "allow_pickle=True" in found.loads["BertBackbone"]
    with pytest.raises(FileNotFoundError, match="allow_pickle=True"):
        kbert.convert_preset(tmp_path / "model", tmp_path / "x", "huggingface")
