"""Repositories of every format, and the weights of built-in presets."""

import json

import pytest
from safetensors.numpy import load, save

import kbert
from kbert import presets
from kbert.hubs import builtin
from kbert.tasks import saving
from tests.checkpoints import foreign
from tests.hubs.conftest import (
    NAME,
    SPEC,
    assert_same_weights,
    cache_of,
    content_of,
    published,
)


def test_shards(hub, folder):
    files = content_of(folder)
    weights = files.pop("model.safetensors")
    del files["kbert.json"]
    arrays = load(weights)
    names = sorted(arrays)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    index = {name: file for file, part in halves.items() for name in part}
    for file, part in halves.items():
        files[file] = save({name: arrays[name] for name in part}, {"format": "pt"})
    files["model.safetensors.index.json"] = json.dumps({"weight_map": index}).encode()
    published(hub, {**files, "c.safetensors": b"unlisted"})
    loaded = kbert.BertClassifier.from_preset(SPEC)
    expected = kbert.BertClassifier.from_preset(folder)
    assert_same_weights(loaded, expected)
    assert "c.safetensors" not in hub.fetched()


def test_shards_that_are_pickles(hub, folder):
    files = content_of(folder)
    del files["model.safetensors"], files["kbert.json"]
    part = "pytorch_model-00001-of-00001.bin"
    index = json.dumps({"weight_map": {"x": part}}).encode()
    more = {"pytorch_model.bin.index.json": index, part: b"part"}
    published(hub, {**files, **more})
    with pytest.raises(FileNotFoundError, match="is a pickle"):
        presets.find_preset(SPEC).fetch_weights()
    preset = presets.find_preset(SPEC, allow_pickle=True)
    preset.fetch_weights()
    assert preset.path(part).read_bytes() == b"part"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("tf_model.h5", foreign.tf_model_h5),
        ("flax_model.msgpack", foreign.flax_msgpack),
    ],
)
def test_files_of_other_frameworks(hub, folder, tmp_path, name, write):
    expected = kbert.BertClassifier.from_preset(folder)
    files = content_of(folder)
    del files["model.safetensors"], files["kbert.json"]
    write(tmp_path / name, saving.merged_weights(expected))
    files[name] = (tmp_path / name).read_bytes()
    published(hub, {**files, "pytorch_model.bin": b"a program"})
    assert_same_weights(kbert.BertClassifier.from_preset(SPEC), expected)
    assert "pytorch_model.bin" not in hub.fetched()


def test_a_saved_model(hub, saved_model_files):
    published(hub, {**saved_model_files, "fingerprint.pb": b""})
    found = kbert.inspect_preset(SPEC)
    assert (found.format, found.usable) == ("tf_hub", True)
    assert {file.name for file in found.files} == set(saved_model_files)
    assert kbert.BertBackbone.from_preset(SPEC).config.hidden_dim == 16


@pytest.mark.parametrize(
    ("names", "told"),
    [(["../../x.safetensors"], "must lie in its folder"), (range(101), "at most 100")],
)
def test_shards_of_a_stranger(hub, folder, names, told):
    files = content_of(folder)
    del files["model.safetensors"], files["kbert.json"]
    index = {str(name): f"{name}" for name in names}
    files["model.safetensors.index.json"] = json.dumps({"weight_map": index}).encode()
    published(hub, files)
    with pytest.raises(ValueError, match=told):
        presets.find_preset(SPEC).fetch_weights()


def test_a_preset_of_keras_hub(hub, keras_hub_files):
    published(hub, keras_hub_files, large=("model.weights.h5", "task.weights.h5"))
    preset = presets.find_preset(SPEC)
    assert preset.format == "keras_hub"
    assert "model.weights.h5" not in hub.fetched()
    assert kbert.BertBackbone.from_preset(SPEC).config.hidden_dim == 16
    assert "model.weights.h5" in hub.fetched()


def test_a_checkpoint_of_google(hub):
    config = {"vocab_size": 5, "hidden_size": 8, "num_attention_heads": 2}
    files = {
        "bert_config.json": json.dumps(config).encode(),
        "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n",
        "bert_model.ckpt.index": b"index",
        "bert_model.ckpt.data-00000-of-00001": b"data",
        "bert_model.ckpt.meta": b"meta",
    }
    published(hub, files, name="a/bert_cased_L-1")
    preset = presets.find_preset("hf://a/bert_cased_L-1")  # the name tells the case
    assert preset.format == "google"
    assert preset.read_json("tokenizer_config.json") == {"do_lower_case": False}
    preset.fetch_weights()
    assert preset.has("bert_model.ckpt.index")
    assert not preset.has("bert_model.ckpt.meta")
    del files["bert_model.ckpt.index"]
    published(hub, files, name="a/bert_cased_L-2")
    with pytest.raises(FileNotFoundError, match="must have the file 'model.safet"):
        presets.find_preset("hf://a/bert_cased_L-2").fetch_weights()


def test_a_preset_that_another_library_has_saved_anew(hub, folder):
    files = content_of(folder)
    config = {**json.loads(files["config.json"]), "transformers_version": "5.0"}
    published(hub, {**files, "config.json": json.dumps(config).encode()})
    with pytest.warns(UserWarning, match=r"\['config.json'\] are newer than kb"):
        kbert.BertBackbone.from_preset(SPEC)


# --- the weights of built-in presets -----------------------------------------------

BUILTIN = "bert_tiny_en_uncased"


def test_weights_of_a_builtin_preset_come_from_the_hub(hub, folder):
    source = presets.find_preset(BUILTIN).metadata()["sources"][1]
    files = content_of(folder)
    published(hub, files, name=source["repository"])
    preset = presets.find_preset(BUILTIN)
    assert hub.asked == []
    path = preset.weights_path()
    assert path.read_bytes() == files["model.safetensors"]
    assert path.is_relative_to(cache_of())


def test_weights_of_a_builtin_preset_that_are_others(hub, folder):
    sources = [{"kind": "hugging_face", "repository": NAME, "sha256": "0" * 64}]
    with pytest.raises(ValueError, match=f"must be {'0' * 64}. Received: [0-9a-f]"):
        builtin.weights("x", sources)
    sources[0]["revision"] = "v9"
    with pytest.raises(FileNotFoundError, match=f"come from {SPEC}@v9. A revision"):
        builtin.weights("x", sources)


def test_weights_of_a_builtin_preset_offline(hub, offline):
    offline()
    with pytest.raises(
        ConnectionError, match=f"'{BUILTIN}' come from hf://.*reached"
    ) as e:
        presets.find_preset(BUILTIN).weights_path()
    assert "load_weights=False" in str(e.value)


def test_a_builtin_preset_whose_weights_are_pickles(hub):
    sources = presets.find_preset(BUILTIN).metadata()["sources"]
    published(
        hub,
        {"config.json": b"{}", "pytorch_model.bin": b""},
        name=sources[1]["repository"],
    )
    with pytest.raises(FileNotFoundError, match="pass the path of the zip") as error:
        presets.find_preset(BUILTIN).weights_path()
    assert sources[0]["url"] in str(error.value)
    preset = presets.find_preset(BUILTIN, allow_pickle=True)
    assert preset.weights_path().name == "pytorch_model.bin"
