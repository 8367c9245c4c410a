import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from kbert import presets
from kbert.config import BertConfig

# Layers, heads, hidden, feed-forward: the paper's section 3, and its miniatures'.
ARCHITECTURES = {
    "tiny": (2, 2, 128, 512),
    "mini": (4, 4, 256, 1024),
    "small": (4, 8, 512, 2048),
    "medium": (8, 8, 512, 2048),
    "base": (12, 12, 768, 3072),
    "large": (24, 16, 1024, 4096),
}
OTHERS = [
    (layers, hidden)
    for layers in (2, 4, 6, 8, 10, 12)
    for hidden in (128, 256, 512, 768)
    if (layers, hidden) not in [(size[0], size[2]) for size in ARCHITECTURES.values()]
]
NAMES = sorted(
    [
        "all_minilm_l6_en_uncased",
        "bert_base_en_cased",
        "bert_base_en_uncased",
        "bert_base_multilingual_cased",
        "bert_base_zh",
        "bert_large_en_cased",
        "bert_large_en_cased_wwm",
        "bert_large_en_uncased",
        "bert_large_en_uncased_wwm",
        "bert_medium_en_uncased",
        "bert_mini_en_uncased",
        "bert_small_en_uncased",
        "bert_tiny_en_uncased",
        "bert_l12_h768_en_uncased",
        *(f"bert_l{layers}_h{hidden}_en_uncased" for layers, hidden in OTHERS),
    ]
)
# As KerasHub's metadata has them.
PARAMETERS = {
    "bert_tiny_en_uncased": 4_385_920,
    "bert_mini_en_uncased": 11_170_560,
    "bert_small_en_uncased": 28_763_648,
    "bert_medium_en_uncased": 41_373_184,
    "bert_base_en_uncased": 109_482_240,
    "bert_base_en_cased": 108_310_272,
    "bert_large_en_uncased": 335_141_888,
    "bert_large_en_cased": 333_579_264,
    "bert_base_zh": 102_267_648,
    "bert_base_multilingual_cased": 177_853_440,
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
    assert metadata["parameters"] == PARAMETERS.get(name, metadata["parameters"])
    assert {source["kind"] for source in metadata["sources"]} <= {
        "pypi",
        "google",
        "hugging_face",
    }
    # Ids are line numbers counted on LF alone.
    vocabulary = preset.path("vocab.txt").read_bytes()
    assert vocabulary.count(b"\n") == config.vocabulary_size
    assert vocabulary.startswith(b"[PAD]\n")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("bert_")])
def test_architecture_of_google(name):
    preset = presets.find_preset(name)
    config = config_of(preset)
    size = (config.num_layers, config.num_heads, config.hidden_dim)
    if numbers := re.search(r"_l(\d+)_h(\d+)_", name):
        layers, hidden = map(int, numbers.groups())
        expected = (layers, hidden // 64, hidden, 4 * hidden)
    else:
        expected = ARCHITECTURES[name.split("_")[1]]
    assert (*size, config.intermediate_dim) == expected
    # Google's archives and repositories bear the sizes in their names.
    url = preset.metadata()["sources"][0]["url"]
    assert url.endswith("_L-{}_H-{}_A-{}.zip".format(size[0], size[2], size[1]))
    assert ("_cased_" in name + "_") is ("/cased_" in url or "_cased_" in url)
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
    for name in (
        "presets",
        "files",
        "archives",
        "google_release",
        "keras_hub_folder",
        "metadata_schema",
        "stale_files",
        "strict_json",
    ):
        shutil.copy(source / f"{name}.py", package)
    shutil.copytree(source / "bundles", package / "bundles")
    shutil.copytree(source / "hubs", package / "hubs")
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


@pytest.mark.parametrize("spec", [None, 3, b"bert_tiny_en_uncased"])
def test_what_is_no_name(spec):
    with pytest.raises(TypeError, match=f"Received: {spec!r} of type"):
        presets.find_preset(spec)
