import json
import warnings

import pytest

import kbert
from kbert import google_release, presets
from kbert.config import BertConfig
from tests import tiny

GOOGLE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 16,
    "initializer_range": 0.02,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "type_vocab_size": 2,
    "vocab_size": len(tiny.VOCABULARY),
}


def folder_of(path, vocabulary=tiny.VOCABULARY, **changes):
    """Writes a folder of Google's, without a checkpoint."""
    path.mkdir()
    (path / "bert_config.json").write_text(json.dumps({**GOOGLE, **changes}))
    (path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary))
    return path


# --- configuration -----------------------------------------------------------------


def test_there_and_back():
    config = BertConfig.from_hugging_face(google_release.to_transformers(GOOGLE))
    assert config.activation == "gelu_tanh"
    assert config.layer_norm_epsilon == 1e-12
    assert google_release.from_transformers(config.to_hugging_face()) == GOOGLE


def test_what_google_passes_over_comes_back():
    config = BertConfig(activation="relu", classifier_dropout=0.3, pad_token_id=7)
    written = google_release.from_transformers(config.to_hugging_face())
    assert set(written) - set(GOOGLE) == {"classifier_dropout", "pad_token_id"}
    read = google_release.to_transformers(written)
    assert BertConfig.from_hugging_face(read) == config


@pytest.mark.parametrize(
    ("theirs", "ours"), [("gelu", "gelu_tanh"), ("GELU", "gelu_tanh"), ("relu", "relu")]
)
def test_activations(theirs, ours):
    content = google_release.to_transformers({**GOOGLE, "hidden_act": theirs})
    assert BertConfig.from_hugging_face(content).activation == ours


def test_defaults_are_those_of_googles_code():
    content = google_release.to_transformers({"vocab_size": 30522})
    config = BertConfig.from_hugging_face(content)
    assert config == BertConfig(activation="gelu_tanh", num_segments=16)


def test_an_activation_that_kbert_lacks_is_refused():
    content = google_release.to_transformers({**GOOGLE, "hidden_act": "linear"})
    with pytest.raises(ValueError, match="hidden_act='linear'"):
        BertConfig.from_hugging_face(content)


@pytest.mark.parametrize("size", [None, "30522"])
def test_the_number_of_pieces_must_be_said(size):
    with pytest.raises(ValueError, match=f"vocab_size. Received: {size!r}"):
        google_release.to_transformers({"vocab_size": size})


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"activation": "gelu"}, "activation='gelu'.*gelu_tanh"),
        ({"activation": "silu"}, "activations .* Received: 'silu'"),
        (
            {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-5},
            "layer_norm_epsilon=1e-05",
        ),
    ],
)
def test_what_google_would_compute_otherwise_is_refused(changes, received):
    config = BertConfig(**changes)
    with pytest.raises(ValueError, match=received):
        google_release.from_transformers(config.to_hugging_face())


# --- casing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lowercase"),
    [
        ("uncased_L-12_H-768_A-12", True),
        ("cased_L-12_H-768_A-12", False),
        ("multi_cased_L-12_H-768_A-12", False),
        ("wwm_uncased_L-24_H-1024_A-16", True),
        ("BERT-Uncased", True),
        ("chinese_L-12_H-768_A-12", True),
        ("multilingual_L-12_H-768_A-12", True),
    ],
)
def test_the_name_says_the_casing(name, lowercase):
    assert google_release.lowercases(name, ["the", "##ing"]) is lowercase


@pytest.mark.parametrize("name", ["model", "encased_ideas", "showcased"])
@pytest.mark.parametrize(
    ("piece", "lowercase", "told"),
    [
        ("the", True, "no piece with an upper-case letter, .* as uncased"),
        ("The", False, "the piece 'The', .* as cased"),
        ("##É", False, "the piece '##É', .* as cased"),
        ("<S>", True, "as uncased"),  # in Google's Chinese vocabulary
        ("中", True, "as uncased"),
    ],
)
def test_else_the_vocabulary_does_which_is_told(name, piece, lowercase, told):
    with pytest.warns(UserWarning, match=told):
        found = google_release.lowercases(name, ["[PAD]", "[UNK]", piece])
    assert found is lowercase


def test_a_name_that_contradicts_the_vocabulary_is_told():
    with pytest.warns(UserWarning, match="'uncased_x' .* the piece 'The'"):
        assert google_release.lowercases("uncased_x", ["The"])


# --- folders -----------------------------------------------------------------------


@pytest.mark.parametrize(("case", "lowercase"), [("uncased", True), ("cased", False)])
def test_a_folder_is_a_preset(tmp_path, case, lowercase):
    folder = folder_of(tmp_path / f"{case}_L-1_H-16_A-2")
    preset = presets.find_preset(folder)
    assert preset.format == "google"
    assert preset.has("config.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kbert.BertTokenizer.from_preset(folder).lowercase is lowercase
        backbone = kbert.BertBackbone.from_preset(folder, load_weights=False)
    assert backbone.config.activation == "gelu_tanh"
    assert backbone.config.hidden_dim == 16


def test_a_folder_whose_tokenizer_file_says_the_casing(tmp_path):
    folder = folder_of(tmp_path / "model")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert kbert.BertTokenizer.from_preset(folder).lowercase is False


def test_only_the_tokenizer_asks_for_the_casing(tmp_path):
    folder = folder_of(tmp_path / "model")
    kbert.BertBackbone.from_preset(folder, load_weights=False)
    with pytest.warns(UserWarning, match="the name 'model' says"):
        kbert.BertPreprocessor.from_preset(folder)


def test_config_json_comes_first(tmp_path):
    folder = folder_of(tmp_path / "model")
    config = BertConfig(num_layers=2).to_hugging_face()
    (folder / "config.json").write_text(json.dumps(config))
    preset = presets.find_preset(folder)
    assert preset.format == "hugging_face"
    assert preset.read_json("config.json") == config
