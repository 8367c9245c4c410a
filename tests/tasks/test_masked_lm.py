"""Masked words: text in, the words behind [MASK] out."""

import keras
import numpy as np
import pytest
from keras import ops

import kbert
from kbert.preprocessing.masking import MaskingRule
from kbert.tasks import feeding
from tests import bert_reference, random_bert, tiny

TEXTS = tiny.sentiment(24)[0]
BLANKS = [
    "a [MASK] film",
    "it was [MASK] and [MASK]",
    "[MASK] good and",
    "[MASK]",
]


def make(**arguments):
    backbone = tiny.backbone(dropout=0.0, attention_dropout=0.0)
    preprocessor = tiny.preprocessor(sequence_length=16)
    return kbert.BertMaskedLM(backbone, preprocessor, **arguments)


@pytest.fixture(scope="module")
def trained():
    """A model that has learned what stands in a film review of one sentence."""
    keras.utils.set_random_seed(1)
    model = make()
    model.compile(learning_rate=1e-2)
    model.history_of_fit = model.fit(TEXTS, batch_size=12, epochs=20, verbose=0)
    return model


def ready(texts=BLANKS):
    """The same as ready arrays: two columns of positions, 0 where there is none."""
    mask_id = tiny.preprocessor().tokenizer.mask_id
    encoded = tiny.preprocessor().encode_blanks(texts)
    width = int(encoded.lengths.max())
    x = {key: np.zeros((len(texts), width), "int32") for key in random_bert.inputs()}
    x["mask_positions"] = np.zeros((len(texts), 2), "int32")
    for row, (start, end) in enumerate(
        zip(encoded.row_splits[:-1], encoded.row_splits[1:], strict=True)
    ):
        ids = encoded.token_ids[start:end]
        x["token_ids"][row, : len(ids)] = ids
        x["padding_mask"][row, : len(ids)] = 1
        found = np.flatnonzero(ids == mask_id)
        x["mask_positions"][row, : len(found)] = found
    return x


# --- training ----------------------------------------------------------------------


def test_it_learns(trained):
    history = trained.history_of_fit.history
    assert set(history) == {"loss", "accuracy"}
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    loss, accuracy = trained.evaluate(TEXTS, verbose=0)
    assert loss < np.log(len(tiny.VOCABULARY)) - 0.5 and accuracy > 0.1


def test_evaluating_twice_says_the_same_in_any_batches_and_rows(trained):
    expected = trained.evaluate(TEXTS, verbose=0)
    trained.compile(rows="packed")
    found = trained.evaluate(TEXTS, batch_size=9, verbose=0)
    assert found[1] == pytest.approx(expected[1])
    # Keras weighs the losses of batches by their slots, of which some are empty where
    # programs are compiled for a number of slots.
    is_jax = keras.backend.backend() == "jax"
    assert found[0] == pytest.approx(expected[0], rel=0.03 if is_jax else 1e-4)


def test_packed_rows_predict_the_same(trained):
    found = []
    for rows in ("packed", "single"):
        trained.compile(rows=rows)
        found.append(trained.predict(BLANKS * 3, verbose=0))
    assert found[0].shape == (15, len(tiny.VOCABULARY))
    np.testing.assert_allclose(*found, atol=1e-5)


def test_ready_arrays_predict_the_same(trained):
    expected = trained.predict(BLANKS, verbose=0)
    np.testing.assert_allclose(trained.predict(ready(), verbose=0), expected, atol=1e-5)
    np.testing.assert_allclose(trained.predict_on_batch(BLANKS), expected, atol=1e-5)


def test_the_numbers_are_those_of_the_reference(trained):
    x = ready()
    weights = {w.path: ops.convert_to_numpy(w) for w in trained.weights}
    states, _, _ = bert_reference.forward(
        x, weights, num_layers=1, num_heads=2, activation="gelu", epsilon=1e-12
    )
    rows, slots = np.nonzero(x["mask_positions"])
    flat = rows * x["token_ids"].shape[1] + x["mask_positions"][rows, slots]
    expected = bert_reference.masked_logits(
        states[-1], flat, weights, activation="gelu", epsilon=1e-12
    )
    np.testing.assert_allclose(trained.predict(x, verbose=0), expected, atol=1e-5)
    positions = {**x, "mask_positions": flat.astype("int32")}
    np.testing.assert_allclose(
        ops.convert_to_numpy(trained(positions)), expected, atol=1e-5
    )


def test_loss_and_accuracy_of_ready_arrays(trained):
    x = ready()
    y = np.random.RandomState(0).randint(0, len(tiny.VOCABULARY), (4, 2))
    logits = trained.predict(x, verbose=0).astype("float64")
    labels = y[x["mask_positions"] > 0]
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(5), labels]
    trained.compile()
    loss, accuracy = trained.evaluate(x, y, verbose=0)
    assert loss == pytest.approx(each.mean(), rel=1e-4)
    assert accuracy == pytest.approx((logits.argmax(1) == labels).mean())


def test_a_weight_a_text(trained):
    weights = np.where(np.arange(len(TEXTS)) < 12, 2.0, 0.0)
    trained.compile()
    loss, *_ = trained.evaluate(TEXTS, verbose=0, sample_weight=weights)
    half, *_ = trained.evaluate(TEXTS, verbose=0, sample_weight=weights / 2)
    assert loss == pytest.approx(2 * half, rel=1e-5) and loss > 0


def test_a_part_is_held_back():
    model = make()
    weights = np.arange(24, dtype="float32")
    data = feeding.prepare(model, TEXTS, None, weights, training=True)
    first, last = data.split(0.25)
    assert (first.steps(8), last.steps(8)) == (3, 1)
    np.testing.assert_array_equal(last.sample_weight, weights[18:])
    np.testing.assert_array_equal(
        last.texts.encoded.token_ids, model.preprocessor.encode(TEXTS[18:]).token_ids
    )
    x, y = ready(), np.full((4, 2), 7)
    first, last = feeding.prepare(model, x, y, np.ones(4)).split(0.5)
    (inputs, labels, _), _ = first.single_batch(), last.single_batch()
    assert labels[labels >= 0].tolist() == [7] * 3
    assert (inputs["token_ids"] == x["token_ids"][:2]).all()


def test_a_stream_of_texts_is_masked_when_its_turn_comes():
    model = make()
    stream = feeding.prepare(model, iter([TEXTS[:8], TEXTS[8:16]]), steps=2).dataset
    for index in range(2):
        inputs, labels = stream[index]
        assert inputs["mask_positions"].shape == labels.shape
        assert 8 <= (labels >= 0).sum() <= 16 and len(inputs["token_ids"]) == 8
    blanks = feeding.prepare(model, iter([BLANKS]), steps=1, targets=False).dataset
    (inputs,) = blanks[0]
    assert len(inputs["mask_positions"]) == 5


# --- answers -----------------------------------------------------------------------


def test_fill(trained):
    one, two, three, four = trained.fill(BLANKS, top_k=3)
    assert [len(answer.fillings) for answer in (one, two, three, four)] == [1, 2, 1, 1]
    assert one.text == f"a {one.fillings[0].token} film"
    assert two.text == "it was {} and {}".format(*(f.token for f in two.fillings))
    for filling in two.fillings:
        assert list(filling.probabilities)[0] == filling.token
        values = list(filling.probabilities.values())
        assert values == sorted(values, reverse=True) and len(values) == 3
        assert filling.probability == values[0] and 0 < sum(values) <= 1
    logits = trained.predict(BLANKS, verbose=0)
    best = [tiny.VOCABULARY[i] for i in logits.argmax(1)]
    answers = (one, two, three, four)
    assert best == [f.token for answer in answers for f in answer.fillings]
    every = trained.fill("a [MASK] film", top_k=len(tiny.VOCABULARY))
    assert sum(every[0].fillings[0].probabilities.values()) == pytest.approx(1.0)


def test_a_continuation_joins_its_word():
    model = make()
    bias = np.zeros(len(tiny.VOCABULARY), "float32")
    bias[tiny.VOCABULARY.index("##ly")] = 99
    model.head.bias.assign(bias)
    (answer,) = model.fill("it was bad [MASK] .")
    assert (answer.text, answer.fillings[0].token) == ("it was badly .", "##ly")


def test_rows_beyond_the_vocabulary_are_never_an_answer():
    size = len(tiny.VOCABULARY)
    backbone = tiny.backbone(vocabulary_size=size + 6)
    model = kbert.BertMaskedLM(backbone, tiny.preprocessor())
    model.head.bias.assign(np.arange(size + 6, dtype="float32") * 99)
    (answer,) = model.fill(["a [MASK]"], top_k=2)
    assert list(answer.fillings[0].probabilities) == tiny.VOCABULARY[:-3:-1]


@pytest.mark.parametrize(
    ("texts", "received"),
    [
        ("a film", "text 0, 'a film', without one"),
        (["a [MASK]", "a [mask]"], r"text 1, 'a \[mask\]'"),
        ("a " * 40 + "[MASK]", "text 0 with 1, of which 0 are within its first 16"),
        ((["a [MASK]"], ["b"]), "a pair"),
    ],
)
def test_texts_that_cannot_be_filled(trained, texts, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        trained.fill(texts)


@pytest.mark.parametrize("top_k", [0, 25, 2.0])
def test_numbers_of_answers_that_are_none(trained, top_k):
    with pytest.raises(ValueError, match=f"1 to 24.*Received: {top_k}"):
        trained.fill("a [MASK]", top_k=top_k)


# --- refusals ----------------------------------------------------------------------


def changed(**changes):
    return {**ready(), **changes}


@pytest.mark.parametrize(
    ("x", "y", "received"),
    [
        (TEXTS[:4], [1, 2, 3, 4], "text and `y` of type list"),
        (changed(mask_positions=None), None, r"\['padding_mask'"),
        (
            changed(mask_positions=np.zeros((4, 2), int)),
            None,
            "`mask_positions` of zeros alone",
        ),
        (changed(mask_positions=np.full((3, 2), 1)), None, r"\(3, 2\)"),
        (changed(mask_positions=np.full((4, 2), 99)), None, "values from 99 to 99"),
        (changed(mask_positions=np.full((4, 2), -1)), None, "values from -1 to -1"),
        (changed(mask_positions=np.full((4, 2), 0.5)), None, "float64"),
        (changed(mask_positions=np.full((4, 1), 6)), None, "row 0 with .*6"),
        (ready(), np.full((4, 2), 24), "values from 24 to 24"),
        (ready(), np.full((4, 2), -1), "values from -1 to -1"),
        (ready(), np.zeros((4, 3), int), r"int64 of shape \(4, 3\)"),
        (ready(), np.zeros((4, 2)), "float64 of shape"),
        (ready(), None, "None"),
    ],
)
def test_data_that_do_not_fit(trained, x, y, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        trained.fit(x, y, verbose=0)


def test_a_call_with_positions_outside_of_the_rows(trained):
    x = {**ready(), "mask_positions": np.array([99], "int32")}
    with pytest.raises(ValueError, match="below 28.*int32 of shape .* from 99 to 99"):
        trained(x)
    with pytest.raises(ValueError, match="'mask_positions'.*Received"):
        trained({key: x[key] for key in random_bert.inputs()})


def test_what_the_task_has_not(trained, tmp_path):
    with pytest.raises(ValueError, match="class_weight={0: 2.0}"):
        trained.fit(TEXTS, class_weight={0: 2.0}, verbose=0)
    with pytest.raises(NotImplementedError, match="BertMaskedLM.*served"):
        trained.export(tmp_path / "served")
    with pytest.raises(ValueError, match="Received: 'selu'"):
        make(head_activation="selu")
    with pytest.raises(ValueError, match="Received: 2.0"):
        make(head_epsilon=2.0)
    with pytest.raises(ValueError, match="SparseCategoricalCrossentropy"):
        trained.compile(loss="sparse_categorical_crossentropy")


def test_a_distribution_is_refused(trained, monkeypatch):
    monkeypatch.setattr(keras.distribution, "distribution", lambda: object())
    with pytest.raises(ValueError, match="one device.*Received: a BertMaskedLM"):
        trained.fit(TEXTS, verbose=0)


# --- saving ------------------------------------------------------------------------


def test_keras_file_keeps_everything(tmp_path):
    model = make(
        masking=MaskingRule(share=0.3, most=4, whole_words=True),
        head_activation="tanh",
        head_epsilon=1e-5,
        name="named",
    )
    random_bert.shake(model)
    model.enable_lora(2)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    assert again.masking == model.masking
    assert [w.path for w in again.trainable_weights] == [
        w.path for w in model.trainable_weights
    ]
    assert again.head.token_embedding is again.backbone.embeddings.token_embedding
    assert len(again.weights) == len(model.weights)
    np.testing.assert_allclose(
        again.predict(BLANKS, verbose=0), model.predict(BLANKS, verbose=0), atol=1e-6
    )


@pytest.mark.parametrize("maths", [{}, {"head_activation": "relu"}])
def test_preset_keeps_everything_but_the_pooler(tmp_path, maths):
    model = make(**maths)
    random_bert.shake(model)
    model.save_to_preset(tmp_path)
    again = kbert.BertMaskedLM.from_preset(tmp_path)
    assert again.head.activation == maths.get("head_activation", "gelu")
    ours = {w.path: ops.convert_to_numpy(w) for w in model.weights}
    for weight in again.weights:
        if not weight.path.startswith("pooler/"):
            np.testing.assert_array_equal(
                ops.convert_to_numpy(weight), ours[weight.path]
            )
    with pytest.warns(UserWarning, match="pooler/dense/kernel.*stay random"):
        kbert.BertClassifier.from_preset(tmp_path, labels=tiny.LABELS)


def test_a_preset_without_a_head_starts_a_random_one(tmp_path, capfd):
    tiny.classifier().save_to_preset(tmp_path)
    with pytest.warns(UserWarning, match="mlm/dense/kernel.*mlm/bias.*stay random"):
        kbert.BertMaskedLM.from_preset(tmp_path)
    told = capfd.readouterr().err
    assert "also holds" in told and "classifier.weight" in told


def test_the_pooler_is_not_trained_and_the_rest_is():
    model = make()
    frozen = {w.path for w in model.weights} - {w.path for w in model.trainable_weights}
    assert frozen == {"pooler/dense/kernel", "pooler/dense/bias"}
    model.freeze_backbone()
    assert {w.path for w in model.trainable_weights} == set(model.head_weights())


def test_mixed_precision():
    backbone = tiny.backbone(dtype="mixed_bfloat16")
    model = kbert.BertMaskedLM(backbone, tiny.preprocessor())
    logits = model.predict(BLANKS, verbose=0)
    assert logits.dtype == np.float32
    plain = kbert.BertMaskedLM(tiny.backbone(), tiny.preprocessor())
    for ours, theirs in zip(plain.weights, model.weights, strict=True):
        ours.assign(theirs)
    np.testing.assert_allclose(logits, plain.predict(BLANKS, verbose=0), atol=0.1)
