"""More pieces: tokenizer, embedding, decoder and bias grow together."""

import numpy as np
import pytest
from keras import ops

import kbert
from tests import random_bert, tiny

NEW = ["covid", "##demic", "popcorn"]
SIZE = len(tiny.VOCABULARY)


def masked_lm(**sizes):
    model = kbert.BertMaskedLM(tiny.backbone(**sizes), tiny.preprocessor())
    random_bert.shake(model)
    return model


def arrays(model):
    return {w.path: ops.convert_to_numpy(w) for w in model.weights}


def check_old_weights(model, grown):
    old, new = arrays(model), arrays(grown)
    assert set(old) == set(new)
    for path, array in old.items():
        np.testing.assert_array_equal(new[path][: len(array)], array)


def test_everything_grows_and_comes_back_from_a_preset(tmp_path, capfd):
    model = masked_lm()
    grown = model.with_added_tokens(NEW)
    assert "24 to 26" in capfd.readouterr().err
    check_old_weights(model, grown)
    assert grown.backbone.config.vocabulary_size == SIZE + 3
    table, bias = grown.backbone.embeddings.token_embedding, grown.head.bias
    assert tuple(table.embeddings.shape) == (SIZE + 3, 16)
    assert tuple(bias.shape) == (SIZE + 3,)
    assert np.abs(ops.convert_to_numpy(table.embeddings)[SIZE:]).min(axis=1).all()
    assert ops.convert_to_numpy(bias)[SIZE:].tolist() == [0, 0, 0]
    tokenizer = grown.preprocessor.tokenizer
    assert tokenizer("covid popcorn filmdemic") == [SIZE, SIZE + 2, 7, SIZE + 1]
    assert model.preprocessor.tokenizer("covid") == [1]
    expected = model.predict(["a [MASK] film"], verbose=0)
    found = grown.predict(["a [MASK] film"], verbose=0)
    np.testing.assert_allclose(found[:, :SIZE], expected, atol=1e-5)
    grown.save_to_preset(tmp_path)
    again = kbert.BertMaskedLM.from_preset(tmp_path)
    for path, array in arrays(grown).items():
        if not path.startswith("pooler/"):
            np.testing.assert_array_equal(arrays(again)[path], array)
    assert list(again.preprocessor.tokenizer.vocabulary[-3:]) == NEW


def test_spare_rows_are_used_first():
    model = masked_lm(vocabulary_size=SIZE + 2)
    check_old_weights(model, model.with_added_tokens(NEW[:2]))
    grown = model.with_added_tokens(NEW[:2])
    assert grown.backbone.config.vocabulary_size == SIZE + 2
    assert model.with_added_tokens(NEW).backbone.config.vocabulary_size == SIZE + 3


def test_a_classifier_grows_and_keeps_what_is_frozen_and_lora():
    model = tiny.classifier()
    model.enable_lora(2)
    grown = model.with_added_tokens(["popcorn"])
    check_old_weights(model, grown)
    assert [w.path for w in grown.trainable_weights] == [
        w.path for w in model.trainable_weights
    ]
    texts = ["a good film"]
    np.testing.assert_allclose(
        grown.predict(texts, verbose=0), model.predict(texts, verbose=0), atol=1e-6
    )


@pytest.mark.parametrize(
    ("task", "own"),
    [
        (kbert.BertTokenClassifier, {"labels": ["NOUN", "VERB"]}),
        (kbert.BertMultipleChoice, {"dropout": 0.3}),
        (kbert.BertQuestionAnswerer, {"null_threshold": 2.0}),
        (kbert.BertPretrainer, {"head_epsilon": 1e-5}),
        (kbert.BertEmbedder, {"pooling": "max"}),
        (kbert.BertFeatureExtractor, {"layers": [0, -1]}),
    ],
)
def test_every_task_grows_and_keeps_its_own(task, own):
    model = task(tiny.backbone(), tiny.preprocessor(), **own)
    grown = model.with_added_tokens(["popcorn"])
    check_old_weights(model, grown)
    config = grown.get_config()
    assert {key: config[key] for key in own} == own
    assert grown.preprocessor.tokenizer("popcorn") == [SIZE]


@pytest.fixture(scope="module")
def model():
    return kbert.BertMaskedLM(tiny.backbone(), tiny.preprocessor())


@pytest.mark.parametrize(
    ("tokens", "received"),
    [
        ([], r"\[\]"),
        ("popcorn", "'popcorn'"),
        (["film"], "'film' again"),
        (["popcorn", "popcorn"], "'popcorn' again"),
        (["Popcorn"], r"'Popcorn', which is cut into \['popcorn'\]"),
        (["pop corn"], r"'pop corn', which is cut into \['pop', 'corn'\]"),
        (["covid-19"], "'covid-19'"),
        (["##"], "'##'"),
        ([""], "''"),
        ([3], "3"),
        (["x" * 300], "'xxx"),
    ],
)
def test_pieces_that_are_none(model, tokens, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        model.with_added_tokens(tokens)
