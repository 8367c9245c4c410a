import json
import pickle

import keras
import numpy as np
import pandas as pd
import pytest

from kbert.preprocessing import preprocessor as module
from kbert.preprocessing.preprocessor import BertPreprocessor
from kbert.presets import find_preset, write_preset
from kbert.tokenization.wordpiece import BertTokenizer
from tests.layer_checks import check_arguments
from tests.preprocessing import reference
from tests.preprocessing.structures import assert_same, reloaded

WORDS = "a the film was good bad ##s caf ##é".split()
VOCABULARY = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *WORDS]
TOKENIZER = BertTokenizer(VOCABULARY)
FIRSTS = ["a film", "the films was good good good", "", "café!", "bad"]
SECONDS = ["good", "the bad film was bad", "a", "", "was"]


def expected(firsts, seconds, max_length, width, long_text="truncate"):
    ids = [None if part is None else TOKENIZER(part) for part in (firsts, seconds)]
    return reference.pack_dense(*ids, max_length, width, long_text)


def longest(firsts, seconds, max_length):
    return max(expected(firsts, seconds, max_length, 99)["padding_mask"].sum(axis=1))


@pytest.mark.parametrize("long_text", ["truncate", "head_tail"])
@pytest.mark.parametrize("length", [4, 6, 12])
def test_batch_of_one_width(length, long_text):
    preprocessor = BertPreprocessor(TOKENIZER, length, long_text=long_text)
    pair = (FIRSTS, SECONDS)
    assert_same(preprocessor(FIRSTS), expected(FIRSTS, None, length, length, long_text))
    assert_same(preprocessor(pair), expected(*pair, length, length, long_text))


def test_batch_is_as_wide_as_it_needs_up_to_the_positions():
    preprocessor = BertPreprocessor(TOKENIZER, max_sequence_length=7)
    width = longest(FIRSTS[2:], None, 7)
    assert width < 7
    assert_same(preprocessor(FIRSTS[2:]), expected(FIRSTS[2:], None, 7, width))
    assert_same(preprocessor((FIRSTS, SECONDS)), expected(FIRSTS, SECONDS, 7, 7))


def test_one_text_has_no_batch_axis():
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    batch = preprocessor({"first": FIRSTS[:1], "second": SECONDS[:1]})
    one = preprocessor({"first": FIRSTS[0], "second": SECONDS[0]})
    assert one["token_ids"].shape == (6,)
    assert_same(one, {name: array[0] for name, array in batch.items()})
    assert preprocessor("a film")["token_ids"].tolist() == [1, 5, 7, 2, 0, 0]


def test_encoding_counts_truncated_texts_over_chunks(monkeypatch):
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    whole = preprocessor.encode((FIRSTS, SECONDS))
    assert whole.num_truncated == 1
    monkeypatch.setattr(module, "_CHUNK", 2)
    parts = preprocessor.encode((FIRSTS, SECONDS))
    assert parts.token_ids.tolist() == whole.token_ids.tolist()
    assert parts.row_splits.tolist() == whole.row_splits.tolist()
    assert parts.num_truncated == 1


def test_column_of_a_table():
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    assert_same(preprocessor(pd.Series(FIRSTS)), preprocessor(FIRSTS))
    assert_same(preprocessor(np.array(FIRSTS)), preprocessor(FIRSTS))


def test_special_tokens_in_text_are_text():
    preprocessor = BertPreprocessor(TOKENIZER)
    ids = preprocessor(["a [SEP] film"])["token_ids"][0]
    assert (ids == TOKENIZER.sep_id).sum() == 1
    trusting = BertPreprocessor(BertTokenizer(VOCABULARY, special_tokens_in_text=True))
    ids = trusting(["a [SEP] film"])["token_ids"][0]
    assert ids.tolist() == [1, 5, 2, 7, 2]


def test_other_ids_of_special_tokens_are_used():
    vocabulary = ["a", "[MASK]", "[SEP]", "[PAD]", "[UNK]", "[CLS]"]
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), 5)
    assert preprocessor(["a"])["token_ids"].tolist() == [[5, 0, 2, 3, 3]]


# Configuration and files.

ARGUMENTS = {
    "tokenizer": TOKENIZER,
    "sequence_length": 7,
    "max_sequence_length": 40,
    "long_text": "head_tail",
}


def test_every_argument_survives():
    check_arguments(BertPreprocessor, ARGUMENTS)
    tokenizer = BertTokenizer(
        [*VOCABULARY, "É"], lowercase=False, split_on_cjk=False, max_word_length=20
    )
    layer = BertPreprocessor(**{**ARGUMENTS, "tokenizer": tokenizer}, name="mine")
    config = layer.get_config()
    copy = BertPreprocessor.from_config(json.loads(json.dumps(config)))
    assert copy.get_config() == config
    assert config == {
        **config,
        **ARGUMENTS,
        "tokenizer": tokenizer.get_config(),
        "name": "mine",
    }
    assert copy.tokenizer.get_config() == tokenizer.get_config()
    assert_same(copy(["É Café"] + FIRSTS), layer(["É Café"] + FIRSTS))


def test_copies_compute_the_same():
    layer = BertPreprocessor(**ARGUMENTS)
    serialized = keras.saving.serialize_keras_object(layer)
    for copy in (
        keras.saving.deserialize_keras_object(serialized),
        pickle.loads(pickle.dumps(layer)),
        BertPreprocessor.from_config(layer.get_config()),
    ):
        assert_same(copy(FIRSTS), layer(FIRSTS))


@keras.saving.register_keras_serializable(package="test")
class Holder(keras.Model):
    """A model with a preprocessor as its attribute."""

    def __init__(self, preprocessor, **kwargs):
        super().__init__(**kwargs)
        self.preprocessor = preprocessor
        self.dense = keras.layers.Dense(2)

    def build(self, input_shape):
        self.dense.build(input_shape["token_ids"])

    def call(self, inputs):
        return self.dense(keras.ops.cast(inputs["token_ids"], "float32"))

    def get_config(self):
        preprocessor = keras.saving.serialize_keras_object(self.preprocessor)
        return {**super().get_config(), "preprocessor": preprocessor}

    @classmethod
    def from_config(cls, config):
        config["preprocessor"] = keras.saving.deserialize_keras_object(
            config["preprocessor"]
        )
        return cls(**config)


def test_attribute_of_a_model(tmp_path):
    model = Holder(BertPreprocessor(**ARGUMENTS))
    model.compile("sgd", "mse")
    batch = model.preprocessor(FIRSTS)
    model.fit(batch, np.zeros((5, 2)), verbose=0)
    assert len(model.trainable_variables) == 2
    copy = reloaded(model, tmp_path)
    assert_same(copy.preprocessor(FIRSTS), batch)
    assert_same(copy(copy.preprocessor(FIRSTS)), model(batch))


def test_preset(tmp_path):
    config = {"model_type": "bert", "vocab_size": 14, "max_position_embeddings": 40}
    files = {"config.json": json.dumps(config).encode(), **TOKENIZER.to_files()}
    settings = {"sequence_length": 7, "long_text": "head_tail"}
    write_preset(tmp_path / "with", files, {"preprocessing": settings})
    loaded = BertPreprocessor.from_preset(tmp_path / "with")
    assert_same(loaded(FIRSTS), BertPreprocessor(**ARGUMENTS)(FIRSTS))
    assert loaded.get_config()["max_sequence_length"] == 40

    write_preset(tmp_path / "without", files, {})
    plain = BertPreprocessor.from_preset(tmp_path / "without", sequence_length=9)
    assert (plain.sequence_length, plain.long_text) == (9, "truncate")
    with pytest.raises(ValueError, match="sequence_length=41, max_sequence_length=40"):
        BertPreprocessor.from_preset(tmp_path / "without", sequence_length=41)


def test_built_in_preset():
    preprocessor = BertPreprocessor.from_preset("bert_tiny_en_uncased")
    ids = preprocessor(["Hello, world!"])["token_ids"]
    assert ids.tolist() == [[101, 7592, 1010, 2088, 999, 102]]
    assert find_preset("bert_tiny_en_uncased").has("vocab.txt")


# Refusals.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"sequence_length": 1}, "sequence_length.*at least 2.*Received: 1"),
        ({"sequence_length": 0}, "sequence_length.*Received: 0"),
        ({"sequence_length": 4.0}, "sequence_length.*integer. Received: 4.0"),
        ({"max_sequence_length": 1}, "max_sequence_length.*Received: 1"),
        ({"sequence_length": 513}, "sequence_length=513, max_sequence_length=512"),
        ({"long_text": "tail"}, "Received: 'tail'"),
    ],
)
def test_bad_arguments(arguments, told):
    with pytest.raises(ValueError, match=told):
        BertPreprocessor(TOKENIZER, **arguments)


def test_pair_without_room():
    preprocessor = BertPreprocessor(TOKENIZER, 2)
    assert preprocessor(["a"])["token_ids"].tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="at least 3.*Received: 2"):
        preprocessor((["a"], ["b"]))


@pytest.mark.parametrize(
    ("x", "error", "told"),
    [
        ([], ValueError, "at least one text"),
        (["a", None], TypeError, "None as text 1"),
        ([b"\xff"], ValueError, "byte 0xff"),
        ((["a"], ["b"], ["c"]), ValueError, "a tuple of 3"),
        (("a", "b"), ValueError, "could mean"),
        ([("a", "b")], TypeError, r"\(firsts, seconds\)"),
        (np.zeros((2, 3), "int32"), TypeError, "SentencePairPacker.*dtype int32"),
        ([[1, 2]], TypeError, r"takes text.*list of \[\[1, 2\]\]"),
    ],
)
def test_what_is_no_text_is_refused(x, error, told):
    with pytest.raises(error, match=told):
        BertPreprocessor(TOKENIZER)(x)
    with pytest.raises((TypeError, ValueError)):
        BertPreprocessor(TOKENIZER).encode(x)


def test_ids_in_a_functional_model(backend):
    ids = keras.Input((None,), dtype="int32")
    error = TypeError if backend == "tensorflow" else ValueError
    with pytest.raises(error, match="kbert.layers.SentencePairPacker"):
        BertPreprocessor(TOKENIZER)(ids)


def test_text_in_a_functional_model_needs_tensorflow(backend):
    if backend != "tensorflow":
        texts = keras.Input((), dtype="string")
        with pytest.raises(ValueError, match=f"on the backend '{backend}'"):
            BertPreprocessor(TOKENIZER)(texts)
