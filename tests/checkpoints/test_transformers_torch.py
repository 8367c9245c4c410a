"""Our files in transformers, and theirs here: both ways, without a warning."""

import dataclasses
import logging
import warnings

import numpy as np
import pytest
import torch
import transformers

from kbert import presets
from kbert.checkpoints import folder
from kbert.config import BertConfig

HEADS = ("pooler", "classifier")
MODELS = {
    ("pooler",): transformers.BertModel,
    HEADS: transformers.BertForSequenceClassification,
}
# The sizes of the fixture `model`.
CONFIG = BertConfig(
    vocabulary_size=11,
    num_layers=2,
    num_heads=2,
    hidden_dim=4,
    intermediate_dim=6,
    max_sequence_length=8,
)


@pytest.fixture(autouse=True)
def nothing_to_tell(caplog):
    """Fails where transformers logs a warning."""
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    yield
    logger.removeHandler(caplog.handler)
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


def theirs(heads=("pooler",), **changes):
    """Returns transformers' model of our configuration with random weights."""
    config = dataclasses.replace(CONFIG, **changes).to_hugging_face()
    config = transformers.BertConfig(**config, num_labels=3)
    return MODELS[heads](config).eval()


def arrays_of(model):
    return {name: value.numpy() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("heads", MODELS)
def test_what_we_save_transformers_loads(model, tmp_path, heads):
    content = transformers.BertConfig(**CONFIG.to_hugging_face(), num_labels=3)
    variables = model(heads)
    presets.write_preset(
        tmp_path / "model",
        {
            "config.json": content.to_json_string().encode(),
            "model.safetensors": lambda path: folder.write_weights(variables, path),
        },
        {},
    )
    loaded, told = MODELS[heads].from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert {key: list(value) for key, value in told.items() if value} == {}
    expected = folder.dump(variables)
    assert set(loaded.state_dict()) >= set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(loaded.state_dict()[name].numpy(), array)


@pytest.mark.parametrize("heads", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_transformers_saves_we_load(model, tmp_path, heads, dtype):
    original = theirs(heads).to(dtype)
    original.save_pretrained(tmp_path)
    preset = presets.find_preset(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = BertConfig.from_hugging_face(preset.read_json("config.json"))
    assert config == CONFIG
    variables = model(heads)
    report = folder.load_preset(preset, variables, optional=())
    assert (report.random, report.ignored) == ((), ())
    ours = folder.dump(variables)
    for name, expected in arrays_of(original.to(torch.float32)).items():
        np.testing.assert_array_equal(ours[name], expected)


def test_several_files(model, tmp_path):
    original = theirs()
    original.save_pretrained(tmp_path, max_shard_size="1KB")
    preset = presets.find_preset(tmp_path)
    assert preset.weights_path().name == "model.safetensors.index.json"
    variables = model()
    folder.load_preset(preset, variables)
    ours = folder.dump(variables)
    for name, expected in arrays_of(original).items():
        np.testing.assert_array_equal(ours[name], expected)


@pytest.mark.parametrize(
    "kind",
    [
        transformers.BertForPreTraining,
        transformers.BertForMaskedLM,
        transformers.BertForNextSentencePrediction,
        transformers.BertForQuestionAnswering,
        transformers.BertForTokenClassification,
        transformers.BertForMultipleChoice,
    ],
)
def test_the_encoder_of_every_head(model, tmp_path, kind):
    config = transformers.BertConfig(**CONFIG.to_hugging_face())
    original = kind(config)
    original.save_pretrained(tmp_path)
    variables = model()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = folder.load_preset(presets.find_preset(tmp_path), variables)
    has_pooler = original.bert.pooler is not None
    pooler = ("pooler/dense/kernel", "pooler/dense/bias")
    assert report.random == (() if has_pooler else pooler)
    assert len(told) == (0 if has_pooler else 1)
    assert all(not name.startswith("bert.") for name in report.ignored)
    np.testing.assert_array_equal(
        variables["embeddings/token_embedding/embeddings"].value,
        original.bert.embeddings.word_embeddings.weight.detach().numpy(),
    )


def test_a_folder_saved_again_by_transformers(model, tmp_path):
    variables = model(HEADS)
    config = theirs(HEADS).config
    presets.write_preset(
        tmp_path / "model",
        {
            "config.json": config.to_json_string().encode(),
            "model.safetensors": lambda path: folder.write_weights(variables, path),
        },
        {},
    )
    again = MODELS[HEADS].from_pretrained(tmp_path / "model")
    with torch.no_grad():
        again.classifier.bias += 1
    again.save_pretrained(tmp_path / "model")
    loaded = model(HEADS, seed=1)
    with pytest.warns(UserWarning, match="model.safetensors.*no longer match"):
        folder.load_preset(presets.find_preset(tmp_path / "model"), loaded)
    np.testing.assert_array_equal(
        loaded["classifier/bias"].value, variables["classifier/bias"].value + 1
    )


@pytest.mark.parametrize("name", presets.preset_names())
def test_transformers_reads_the_architectures(name):
    preset = presets.find_preset(name)
    config = transformers.BertConfig.from_pretrained(preset.folder)
    ours = BertConfig.from_hugging_face(config.to_dict())
    assert ours == BertConfig.from_hugging_face(preset.read_json("config.json"))


def test_the_activation_is_the_same_function():
    # erf for MiniLM, tanh for Google's.
    x = torch.linspace(-3, 3, 13)
    for name, approximate in (("all_minilm_l6", "none"), ("bert_tiny", "tanh")):
        content = presets.find_preset(f"{name}_en_uncased").read_json("config.json")
        function = transformers.activations.ACT2FN[content["hidden_act"]]
        expected = torch.nn.functional.gelu(x, approximate=approximate)
        torch.testing.assert_close(function(x), expected)
