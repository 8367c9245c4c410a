"""Writing a preset whole or not at all."""

import os

import pytest

from kbert import presets
from tests.presets.conftest import FILES

# --- write_preset ------------------------------------------------------------------


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_by_bytes_and_by_function(tmp_path):
    files = {"a.json": b"{}", "model.safetensors": lambda path: path.write_bytes(b"w")}
    presets.write_preset(tmp_path / "model", files, {})
    preset = presets.find_preset(tmp_path / "model")
    preset.verify()
    assert preset.path("model.safetensors").read_bytes() == b"w"
    assert list(preset.metadata()["files"]) == ["a.json", "model.safetensors"]


def test_saving_again(saved):
    (saved.folder / "README.md").write_text("mine")
    presets.write_preset(saved.folder, {**FILES, "config.json": b"{}"}, {"task": "x"})
    saved.verify()
    assert saved.metadata()["task"] == "x"
    assert "README.md" not in saved.metadata()["files"]
    assert contents(saved.folder) == {
        **FILES,
        "README.md": b"mine",
        "config.json": b"{}",
        "kbert.json": saved.path("kbert.json").read_bytes(),
    }


def half(path):
    path.write_bytes(b"half")
    raise OSError("No space left on device")


@pytest.mark.parametrize(
    ("change", "metadata", "error"),
    [
        ({"model.safetensors": half}, {}, "No space left"),
        ({"config.json": b"new", "other": lambda path: None}, {}, "No such file"),
        ({"config.json": b"new"}, {"score": float("nan")}, "JSON"),  # written last
    ],
)
def test_a_write_that_fails_half_way_leaves_the_old_preset(
    saved, change, metadata, error
):
    before = contents(saved.folder)
    with pytest.raises((OSError, ValueError), match=error):
        presets.write_preset(saved.folder, {**FILES, **change}, metadata)
    assert contents(saved.folder) == before
    assert os.listdir(saved.folder.parent) == [saved.folder.name]


STALE_WEIGHTS = [
    "pytorch_model.bin",
    "pytorch_model-00001-of-00002.bin",
    "pytorch_model.bin.index.json",
    "model-00001-of-00002.safetensors",
    "model.safetensors.index.json",
    "tf_model.h5",
    "tf_model-00001-of-00002.h5",
    "model.weights.h5",
    "flax_model.msgpack",
    "bert_model.ckpt.index",
    "adapter_config.json",
    "adapter_model.safetensors",
    "rust_model.ot",
    "model.onnx",
    "modules.json",
    "sentence_bert_config.json",
]
STALE_TOKENIZER = ["tokenizer.json", "special_tokens_map.json", "added_tokens.json"]
FOREIGN = ["README.md", "train.bin", ".gitattributes"]


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        (FILES, STALE_WEIGHTS),
        ({"vocab.txt": b"[PAD]\n"}, STALE_TOKENIZER),
        ({"README.md": b"new"}, []),
    ],
)
def test_what_would_contradict_the_new_files_goes(tmp_path, files, gone):
    for name in (*STALE_WEIGHTS, *STALE_TOKENIZER, *FOREIGN):
        (tmp_path / name).write_bytes(b"old")
    presets.write_preset(tmp_path, files, {})
    left = {*STALE_WEIGHTS, *STALE_TOKENIZER, *FOREIGN} - set(gone)
    assert set(os.listdir(tmp_path)) == {*left, *files, "kbert.json"}


def test_a_stale_kind_that_is_written_anew_stays(tmp_path):
    files = {"vocab.txt": b"[PAD]\n", "tokenizer.json": b"{}"}
    presets.write_preset(tmp_path / "model", files, {})
    assert contents(tmp_path / "model")["tokenizer.json"] == b"{}"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_writing_outside_is_refused(saved, name):
    before = contents(saved.folder)
    with pytest.raises(ValueError, match=f"Received the name: '{name}'"):
        presets.write_preset(saved.folder, {**FILES, name: b""}, {})
    assert contents(saved.folder) == before
    assert os.listdir(saved.folder.parent) == [saved.folder.name]


@pytest.mark.parametrize(
    ("files", "metadata", "received"),
    [
        ({"kbert.json": b""}, {}, r"\['kbert.json'\]"),
        ({}, {"files": {}}, r"\['files'\]"),
        ({}, {"sha256": "0"}, r"\['sha256'\]"),
    ],
)
def test_hashes_are_kberts_to_write(tmp_path, files, metadata, received):
    with pytest.raises(ValueError, match=f"by kbert. Received: {received}"):
        presets.write_preset(tmp_path / "model", files, metadata)
    assert os.listdir(tmp_path) == []
