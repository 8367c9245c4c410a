"""Left-to-right attention: what stands behind a position does not reach it."""

import json

import numpy as np
import pytest

import kbert
from kbert import google_release, keras_hub_folder
from tests import bert_reference, random_bert, tiny
from tests.test_backbone_packed import LAYOUTS, PLAIN, WHERE_PLAIN, lay

PAIRED = np.array([[1] * 8, [1, 1, 1, 2, 2, 3, 3, 3], [1, 1, 1, 1, 1, 2, 0, 0]])


@pytest.fixture(scope="module")
def backbone():
    return random_bert.make(left_to_right=True)


def test_equals_numpy(backbone):
    values = random_bert.inputs(PAIRED)
    states, attentions, expected = bert_reference.forward(
        values,
        random_bert.weights(backbone),
        num_layers=2,
        num_heads=2,
        activation="gelu_tanh",
        epsilon=1e-3,
        left_to_right=True,
    )
    sequence, pooled = random_bert.run(backbone, values)
    np.testing.assert_allclose(sequence, states[-1], atol=1e-5)
    np.testing.assert_allclose(pooled, expected, atol=1e-5)
    for found, wanted in (
        (backbone.hidden_states(values), states),
        (backbone.attentions(values), attentions),
    ):
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(random_bert.as_array(ours), theirs, atol=1e-5)


@pytest.mark.parametrize("column", [1, 4, 7])
def test_a_later_token_changes_nothing_before_it(backbone, column):
    values = random_bert.inputs(PAIRED[:1])
    other = {key: value.copy() for key, value in values.items()}
    other["token_ids"][0, column:] = (other["token_ids"][0, column:] + 1) % 23
    first, second = (random_bert.run(backbone, v)[0][0] for v in (values, other))
    np.testing.assert_array_equal(first[:column], second[:column])
    assert np.abs(first - second)[column:].max(axis=-1).min() > 1e-3
    both = random_bert.make()
    first, second = (random_bert.run(both, v)[0][0] for v in (values, other))
    assert np.abs(first - second)[:column].max() > 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_packed_equals_single(backbone, layout):
    numbers, where = LAYOUTS[layout]
    runs = []
    for numbers, where in (LAYOUTS[layout], (PLAIN, WHERE_PLAIN)):
        values = lay(numbers, where, seed=1)
        values.pop("first_positions")
        sequence, _ = random_bert.run(backbone, values)
        runs.append([sequence[row, at : at + n] for row, at, n in where])
    for packed, single in zip(*runs, strict=True):
        np.testing.assert_allclose(packed, single, atol=1e-5)


def test_a_task_trains_on_what_stands_before():
    model = kbert.BertMaskedLM(tiny.backbone(left_to_right=True), tiny.preprocessor())
    ids = np.array([[2, 8, 9, 10, 3]], "int32")
    x = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    x["mask_positions"] = np.array([[1, 2]])
    first = model.predict(x, verbose=0)
    x["token_ids"] = np.array([[2, 8, 9, 11, 4]], "int32")
    np.testing.assert_array_equal(model.predict(x, verbose=0), first)
    x["token_ids"] = np.array([[2, 7, 9, 10, 3]], "int32")
    assert np.abs(model.predict(x, verbose=0) - first).min() > 0


def test_folders_say_it(tmp_path):
    model = kbert.BertEmbedder(tiny.backbone(left_to_right=True), tiny.preprocessor())
    model.save_to_preset(tmp_path / "preset")
    content = json.loads((tmp_path / "preset" / "config.json").read_text("utf-8"))
    assert content["is_decoder"] is True
    again = kbert.BertEmbedder.from_preset(tmp_path / "preset")
    assert again.backbone.config.left_to_right
    texts = ["a great film", "we saw it"]
    np.testing.assert_allclose(again.embed(texts), model.embed(texts), atol=1e-6)
    model.save(tmp_path / "model.keras")
    import keras

    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.embed(texts), model.embed(texts), atol=1e-6)


@pytest.mark.parametrize("form", [google_release, keras_hub_folder])
def test_a_format_that_cannot_say_it_refuses(form):
    config = kbert.BertConfig(activation="gelu_tanh", left_to_right=True)
    with pytest.raises(ValueError, match="both directions.*left_to_right=True"):
        form.from_transformers(config.to_hugging_face())


@pytest.mark.parametrize(
    ("make", "reader"),
    [
        (kbert.BertPretrainer, "BertPretrainer"),
        (lambda b: kbert.BertClassifier(b, num_classes=2), "BertClassifier"),
        (kbert.BertMultipleChoice, "BertMultipleChoice"),
        (lambda b: kbert.BertEmbedder(b, pooling="cls"), "BertEmbedder with .*'cls'"),
    ],
)
def test_what_reads_the_first_position_is_refused(make, reader):
    # It would see [CLS] alone, and answer every text alike.
    with pytest.raises(ValueError, match=f"A {reader} reads .*left_to_right=True"):
        make(tiny.backbone(left_to_right=True))
