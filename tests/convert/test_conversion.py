"""`convert_preset`: what is written answers as what was read, as the report says."""

import keras
import numpy as np
import pytest
import safetensors.numpy

import kbert
from kbert.checkpoints import folder as checkpoint
from kbert.convert import conversion
from tests import random_bert, tiny


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A classifier as a preset, and what became of it as a preset of KerasHub's."""
    place = tmp_path_factory.mktemp("place")
    backbone = tiny.backbone(activation="gelu_tanh", num_layers=2)
    model = kbert.BertClassifier(backbone, tiny.preprocessor(), labels=["x", "y", "z"])
    random_bert.shake(model)
    model.save_to_preset(place / "ours")
    (place / "ours" / "README.md").write_text("Trained on films.")
    return place


@pytest.fixture(scope="module")
def done(place):
    return kbert.convert_preset(place / "ours", place / "hub", "keras_hub")


def test_both_sides_answer_the_same(done):
    assert done.kind == "BertClassifier"
    assert set(done.outputs) == {"sequence_output", "pooled_output", "answers"}
    assert max(done.outputs.values()) <= 1e-6
    assert done.faithful


def test_every_tensor_is_mapped(done, place):
    arrays = safetensors.numpy.load_file(place / "ours" / "model.safetensors")
    assert sum(row.count for row in done.mapped) == len(arrays)
    (row,) = (r for r in done.mapped if r.path == "encoder_layer_{i}/output/kernel")
    assert row.source == "bert.encoder.layer.0.output.dense.weight"
    assert row.target == ("layers/transformer_encoder/_feedforward_output_dense/vars/0")
    assert (row.shape, row.count) == ((24, 16), 2)


def test_what_is_dropped_and_why(done):
    dropped = dict(done.dropped)
    assert dropped["README.md"] == "no file of a model's"
    assert "no place" in dropped["kbert.json"]
    assert "no place" in dropped["id2label={'0': 'x', '1': 'y', '2': 'z'}"]
    assert "standard deviation of 0.02" in " ".join(done.differences)


def test_what_is_new(done):
    assert done.new == ()
    assert "task.weights.h5" in done.files


def test_back_again_is_bit_equal(done, place):
    back = kbert.convert_preset(place / "hub", place / "back", "huggingface")
    assert back.faithful
    assert dict(back.new)["kbert.json"] == "the hashes of all files"
    ours, again = (
        safetensors.numpy.load_file(place / name / "model.safetensors")
        for name in ("ours", "back")
    )
    assert set(ours) == set(again)
    for name, array in ours.items():
        np.testing.assert_array_equal(again[name], array)


@pytest.mark.filterwarnings("ignore:.*stay random")
def test_an_encoder_without_a_pooler(place, tmp_path):
    variables = safetensors.numpy.load_file(place / "ours" / "model.safetensors")
    arrays = {n: a for n, a in variables.items() if n.startswith("bert.enc")}
    arrays |= {
        n: a.astype("float16") for n, a in variables.items() if n.startswith("bert.emb")
    }
    arrays["cls.seq_relationship.bias"] = np.zeros(2, "float32")
    arrays["bert.embeddings.position_ids"] = np.arange(4)
    source = tmp_path / "source"
    config = kbert.BertBackbone.from_preset(place / "ours", load_weights=False).config
    checkpoint.write_folder(source, {}, config, kbert.BertTokenizer(tiny.VOCABULARY))
    (source / "kbert.json").unlink()
    safetensors.numpy.save_file(arrays, source / "model.safetensors")
    done = kbert.convert_preset(source, tmp_path / "target", "huggingface")
    assert done.faithful
    assert set(done.outputs) == {"sequence_output"}
    dropped = dict(done.dropped)
    assert dropped["bert.embeddings.position_ids"] == "a buffer, no weight"
    assert "another head" in dropped["cls.seq_relationship.bias"]
    new = dict(done.new)
    assert "none was written" in new["pooler/dense/kernel"]
    assert new["dtype float32"] == "the source has float16, float32"
    written = safetensors.numpy.load_file(tmp_path / "target" / "model.safetensors")
    assert not [name for name in written if "pooler" in name]


def test_a_target_that_answers_otherwise_is_noticed(place, tmp_path, monkeypatch):
    def wrong(target, variables, config, tokenizer, head=None):
        path = "encoder_layer_1/output_norm/gamma"
        variables = {**variables, path: variables[path] * 1.001}
        return conversion.keras_hub.write_folder(target, variables, config, tokenizer)

    monkeypatch.setitem(conversion.WRITERS, "keras_hub", wrong)
    done = kbert.convert_preset(place / "ours", tmp_path / "hub", "keras_hub")
    assert 1e-5 < done.outputs["sequence_output"] < 1e-2
    assert not done.faithful


def test_other_ids_are_noticed():
    cased = kbert.BertTokenizer([*tiny.VOCABULARY, "The"], lowercase=False)
    uncased = kbert.BertTokenizer([*tiny.VOCABULARY, "The"], lowercase=True)
    texts = conversion._other_ids(cased, uncased)
    assert texts == (conversion.TEXTS[0],)
    assert conversion._other_ids(cased, cased) == ()


def test_no_number_is_no_small_difference():
    one = np.zeros(3)
    assert conversion.largest_difference(one, np.array([0, np.nan, 0])) == float("inf")
    assert conversion.largest_difference(one, np.zeros(2)) == float("inf")
    assert conversion.largest_difference(one, np.array([0, -2.0, 1])) == 2


def test_an_unknown_format_is_refused(place, tmp_path):
    with pytest.raises(ValueError, match="Received: format='gguf'"):
        kbert.convert_preset(place / "ours", tmp_path / "x", "gguf")


def test_the_fixed_texts_are_read_as_the_source_reads_them(place):
    config = kbert.BertBackbone.from_preset(place / "ours", load_weights=False).config
    side = conversion.open_preset(place / "ours")
    inputs = conversion._inputs(side)
    rows = len(conversion.TEXTS) + 4
    assert {array.shape for array in inputs.values()} == {(rows, 24)}
    assert inputs["token_ids"].max() < config.vocabulary_size
    assert keras.backend.standardize_dtype(inputs["token_ids"].dtype) == "int32"


@pytest.mark.parametrize(
    ("kind", "labels"),
    [("BertTokenClassifier", {"labels": ["O", "X"]}), ("BertMultipleChoice", {})],
)
def test_heads_called_classifier_keep_their_task(kind, labels, tmp_path):
    model = getattr(kbert, kind)(tiny.backbone(), tiny.preprocessor(), **labels)
    model.save_to_preset(tmp_path / "one")
    done = kbert.convert_preset(tmp_path / "one", tmp_path / "other", "huggingface")
    assert (done.kind, done.faithful) == (kind, True)
    assert "answers" in done.outputs
    assert any(row.path == "classifier/kernel" for row in done.mapped)
