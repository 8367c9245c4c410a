"""Checkpoints of Google's: theirs here, ours in Google's own code, and back."""

import dataclasses
import json
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert import presets
from kbert.checkpoints import assigning, google
from kbert.config import BertConfig
from kbert.tasks import saving
from tests import random_bert, tiny
from tests.checkpoints import google_bert

WORDS = "bert/embeddings/word_embeddings"
# Everything that a checkpoint of Google's says, otherwise than by default.
SIZES = {
    "vocabulary_size": len(tiny.VOCABULARY),
    "num_layers": 2,
    "num_segments": 3,
    "layer_norm_epsilon": 1e-12,
}
TOKENIZER = kbert.BertTokenizer(tiny.VOCABULARY)


@pytest.fixture
def backbone():
    return random_bert.make(**SIZES)


@pytest.fixture
def classifier(backbone):
    model = kbert.BertClassifier(
        backbone,
        kbert.BertPreprocessor(TOKENIZER, max_sequence_length=8),
        labels=["no", "maybe", "yes"],
    )
    random_bert.shake(model)
    return model


def arrays_of(model):
    return {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}


def written(path, model, tokenizer=TOKENIZER):
    """Writes a backbone or a classifier; returns the folder."""
    task = isinstance(model, kbert.BertClassifier)
    weights = saving.merged_weights(model) if task else arrays_of(model)
    config = model.backbone.config if task else model.config
    google.write_checkpoint(path, weights, config, tokenizer)
    return path


# --- Google's code -----------------------------------------------------------------


def test_googles_code_computes_the_same(backbone, tmp_path):
    inputs = random_bert.inputs()
    computed, names = google_bert.outputs(
        written(tmp_path / "uncased", backbone), inputs
    )
    assert names == set(assigning.dump(arrays_of(backbone), google.GOOGLE))
    sequence, pooled = random_bert.run(backbone, inputs)
    text = inputs["padding_mask"] == 1  # what stands at the others, nobody reads
    np.testing.assert_allclose(
        computed["sequence_output"][text], sequence[text], rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(computed["pooled_output"], pooled, rtol=0, atol=1e-5)


def test_googles_code_classifies_the_same(classifier, tmp_path):
    inputs = random_bert.inputs()
    path = written(tmp_path / "uncased", classifier)
    computed, _ = google_bert.outputs(path, inputs, num_labels=3)
    expected = classifier.predict(inputs, verbose=0)
    np.testing.assert_allclose(computed["logits"], expected, rtol=0, atol=1e-5)
    again = kbert.BertClassifier.from_preset(path, labels=classifier.labels)
    assert np.array_equal(again.predict(inputs, verbose=0), expected)


def test_an_oracle_of_another_gelu_is_noticed(tmp_path):
    # The oracle test would fail if Google's gelu were the erf form.
    inputs = random_bert.inputs()
    erf = random_bert.make(**SIZES, activation="gelu")
    config = dataclasses.replace(erf.config, activation="gelu_tanh")
    google.write_checkpoint(tmp_path / "x", arrays_of(erf), config, TOKENIZER)
    computed, _ = google_bert.outputs(tmp_path / "x", inputs)
    difference = computed["pooled_output"] - random_bert.run(erf, inputs)[1]
    assert np.abs(difference).max() > 1e-5


# --- there and back ----------------------------------------------------------------


def test_there_and_back_is_bit_equal(backbone, tmp_path):
    expected = arrays_of(backbone)
    google.write_checkpoint(tmp_path / "x", expected, backbone.config, TOKENIZER)
    again = kbert.BertBackbone.from_preset(tmp_path / "x")
    assert again.config == backbone.config
    for path, array in arrays_of(again).items():
        np.testing.assert_array_equal(array, expected[path])


def test_the_files_are_googles(backbone, tmp_path):
    path = written(tmp_path / "model", backbone)
    assert {file.name for file in path.iterdir()} == {
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
        "vocab.txt",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert json.loads((path / "bert_config.json").read_text())["hidden_act"] == "gelu"
    shapes = dict(tf.train.list_variables(str(path / "bert_model.ckpt")))
    assert shapes[WORDS] == [len(tiny.VOCABULARY), 16]
    assert shapes["bert/encoder/layer_1/intermediate/dense/kernel"] == [16, 24]


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_equal(backbone, tmp_path, lowercase):
    tokenizer = kbert.BertTokenizer(
        [*tiny.VOCABULARY[:-1], "Film"], lowercase=lowercase, max_word_length=5
    )
    path = written(tmp_path / "model", backbone, tokenizer)
    again = kbert.BertTokenizer.from_preset(path)
    assert again.get_config() == tokenizer.get_config()
    texts = ["Film film GOOD", "great [SEP] films"]
    assert again(texts) == tokenizer(texts)


@pytest.mark.parametrize(("case", "lowercase"), [("uncased", True), ("cased", False)])
def test_without_the_tokenizers_options_the_name_says(
    classifier, tmp_path, case, lowercase
):
    path = written(tmp_path / f"{case}_L-2_H-16_A-2", classifier)
    (path / "tokenizer.json").unlink()
    (path / "tokenizer_config.json").unlink()
    again = kbert.BertClassifier.from_preset(path, labels=["a", "b", "c"])
    assert again.preprocessor.tokenizer.lowercase is lowercase
    assert again.preprocessor.max_sequence_length == 8


def test_a_zip(backbone, tmp_path):
    path = written(tmp_path / "model", backbone)
    with zipfile.ZipFile(tmp_path / "uncased_L-2.zip", "w") as archive:
        for file in path.iterdir():
            if not file.name.startswith("tokenizer"):
                archive.write(file, f"model/{file.name}")
    again = kbert.BertBackbone.from_preset(tmp_path / "uncased_L-2.zip")
    expected = arrays_of(backbone)
    for name, array in arrays_of(again).items():
        np.testing.assert_array_equal(array, expected[name])
    assert kbert.BertTokenizer.from_preset(tmp_path / "uncased_L-2.zip").lowercase


def test_a_zip_that_leaves_its_folder_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("bert_config.json", "{}")
        archive.writestr("../bert_model.ckpt.index", "")
    with pytest.raises(ValueError, match="'../bert_model.ckpt.index', which leaves"):
        kbert.BertBackbone.from_preset(tmp_path / "x.zip")


def test_config_is_read_with_googles_meaning(backbone, tmp_path):
    path = written(tmp_path / "model", backbone)
    content = presets.find_preset(path).read_json("config.json")
    config = BertConfig.from_hugging_face(content)
    assert config == backbone.config
    assert config.activation == "gelu_tanh"


# --- writing -----------------------------------------------------------------------


def test_what_google_does_otherwise_is_told(classifier, tmp_path):
    tokenizer = kbert.BertTokenizer(
        tiny.VOCABULARY, lowercase=False, strip_accents=True, split_on_cjk=False
    )
    weights = saving.merged_weights(classifier)
    config = classifier.backbone.config
    told = google.write_checkpoint(tmp_path / "x", weights, config, tokenizer)
    assert len(told) == 4
    for words in (
        "split_on_cjk=True, where this one has False",
        "strip_accents=False, where this one has True",
        "--do_lower_case=false",
        "a dropout of 0.1 in front of the logits, where this model has 0.4",
    ):
        assert any(words in line for line in told)


def test_an_erf_gelu_is_refused_before_anything_is_written(tmp_path):
    erf = random_bert.make(**SIZES, activation="gelu")
    with pytest.raises(ValueError, match="tanh form of gelu.*activation='gelu'"):
        written(tmp_path / "x", erf)
    assert list(tmp_path.iterdir()) == []


def test_an_old_checkpoint_is_replaced_and_the_rest_kept(backbone, tmp_path):
    path = written(tmp_path / "x", backbone)
    for name in (
        "README.md",
        "checkpoint",
        "bert_model.ckpt.meta",
        "model.ckpt-7.index",
    ):
        (path / name).write_text("old")
    random_bert.shake(backbone, seed=3)
    written(path, backbone)
    names = {file.name for file in path.iterdir()}
    assert "README.md" in names
    assert not names & {"checkpoint", "bert_model.ckpt.meta", "model.ckpt-7.index"}
    again = kbert.BertBackbone.from_preset(path)
    np.testing.assert_array_equal(again.weights[0].numpy(), backbone.weights[0].numpy())


def test_a_model_in_transformers_format_is_not_written_over(classifier, tmp_path):
    classifier.save_to_preset(tmp_path / "x")
    with pytest.raises(ValueError, match="Received: .*x', which has a config.json"):
        written(tmp_path / "x", classifier)


# --- the head of run_squad.py --------------------------------------------------------


def test_the_head_of_run_squad(tmp_path):
    preprocessor = kbert.BertPreprocessor(TOKENIZER, max_sequence_length=8)
    answerer = kbert.BertQuestionAnswerer(random_bert.make(**SIZES), preprocessor)
    random_bert.shake(answerer)
    weights = {w.path: w.numpy() for w in answerer.backbone.weights}
    weights |= {path: w.numpy() for path, w in answerer.head_weights().items()}
    path = tmp_path / "uncased"
    google.write_checkpoint(path, weights, answerer.backbone.config, TOKENIZER)
    inputs = random_bert.inputs()
    computed, _ = google_bert.outputs(path, inputs)
    stored = tf.train.load_checkpoint(str(path / "bert_model.ckpt"))
    # create_model in run_squad.py: (B * S, H) times the transpose of (2, H).
    kernel = stored.get_tensor("cls/squad/output_weights")
    assert kernel.shape == (2, 16)
    logits = computed["sequence_output"] @ kernel.T
    logits += stored.get_tensor("cls/squad/output_bias")
    ours = answerer.predict(inputs, verbose=0)
    inside = ours.start > -1e9
    assert inside.sum() > len(inside)
    np.testing.assert_allclose(ours.start[inside], logits[..., 0][inside], atol=1e-5)
    np.testing.assert_allclose(ours.end[inside], logits[..., 1][inside], atol=1e-5)
    again = kbert.BertQuestionAnswerer.from_preset(path)
    np.testing.assert_array_equal(again.predict(inputs, verbose=0).end, ours.end)
