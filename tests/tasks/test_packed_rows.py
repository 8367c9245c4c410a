"""Several texts a row give what one text a row gives: nothing leaks, nothing counts."""

import keras
import numpy as np
import pytest
from keras import ops

import kbert
from tests import tiny

TEXTS, LABELS = tiny.sentiment(22)  # of batches of 8 the last has 6
BATCH = 8


class CountedTexts(keras.metrics.Metric):
    """How many texts the metric was shown."""

    def __init__(self, name="texts"):
        super().__init__(name=name)
        self.texts = self.add_weight(name="texts", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.texts.assign_add(ops.cast(ops.shape(y_pred)[0], "float32"))

    def result(self):
        return self.texts + 0.0


def spread(y_true, y_pred):
    """A loss of a text that depends on all texts of the batch: an empty slot shows."""
    centred = y_pred - ops.mean(y_pred, axis=0)
    own = keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
    return own + ops.sum(centred * centred, axis=-1)


class EachLoss(keras.callbacks.Callback):
    """The running loss after every step."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])


def weighted(model, rows):
    model.compile(
        keras.optimizers.SGD(0.1), loss=spread, metrics=[CountedTexts()], rows=rows
    )
    stopping = keras.callbacks.EarlyStopping("val_loss", min_delta=100.0, patience=1)
    return {
        "class_weight": {"negative": 3.0, "positive": 0.5},
        "validation_data": (TEXTS[:7], LABELS[:7]),
        "callbacks": [stopping],
        "epochs": 9,
    }


def accumulated(model, rows):
    model.enable_lora(2)
    optimizer = kbert.AdamW(0.01, gradient_accumulation_steps=2)
    model.compile(optimizer, weighted_metrics=["accuracy"], rows=rows)
    return {"sample_weight": np.linspace(0.1, 2.0, len(TEXTS)), "epochs": 3}


def automatic(model, rows):
    model.compile(rows=rows, learning_rate=0.01)
    return {"validation_split": 0.25, "epochs": 2}


@pytest.mark.parametrize("setting", [weighted, accumulated, automatic])
def test_fit_is_that_of_single_rows(setting):
    histories, weights = [], []
    for rows in ("packed", "single"):
        keras.utils.set_random_seed(1)
        model = tiny.classifier(dropout=0.0)
        arguments = setting(model, rows)
        each = EachLoss()
        callbacks = [each, *arguments.pop("callbacks", [])]
        told = model.fit(
            TEXTS,
            LABELS,
            BATCH,
            shuffle=False,
            verbose=0,
            callbacks=callbacks,
            **arguments,
        )
        histories.append({**told.history, "each": each.losses})
        weights.append(model.get_weights())
    packed, single = histories
    assert set(packed) == set(single)
    for name, values in single.items():
        np.testing.assert_allclose(packed[name], values, atol=1e-4, err_msg=name)
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    if setting is weighted:
        assert packed["texts"] == [len(TEXTS)] * 2  # stopped after two of nine
    else:
        assert abs(packed["loss"][0] - packed["loss"][-1]) > 1e-3


def test_a_hundred_steps_have_the_losses_of_single_rows():
    found = []
    for rows in ("packed", "single"):
        keras.utils.set_random_seed(1)
        model = tiny.classifier(dropout=0.0)
        model.compile(kbert.AdamW(kbert.WarmupLinearDecay(0.002, 102)), rows=rows)
        each = EachLoss()
        model.fit(TEXTS, LABELS, BATCH, 34, verbose=0, callbacks=[each], shuffle=False)
        found.append(each.losses)
    assert len(found[0]) == 102
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    assert found[0][0] - found[0][-1] > 0.1


@pytest.fixture(scope="module")
def model():
    return tiny.classifier(dropout=0.0)


@pytest.fixture
def packed(model):
    model.compile(rows="packed")
    return model


def test_evaluate_and_predict_are_those_of_single_rows(packed):
    weights = np.linspace(0.1, 2.0, len(TEXTS))
    measured = packed.evaluate(TEXTS, LABELS, 8, 0, sample_weight=weights)
    logits = packed.predict(TEXTS, verbose=0)
    packed.compile(rows="single")
    expected = packed.evaluate(TEXTS, LABELS, 8, 0, sample_weight=weights)
    assert measured == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(packed.predict(TEXTS, verbose=0), logits, atol=1e-5)


def test_a_text_is_answered_alike_in_any_company(packed):
    alone = packed.predict(TEXTS[3:4], verbose=0)
    with_others = packed.predict([*TEXTS[10:], TEXTS[3]], batch_size=4, verbose=0)
    np.testing.assert_allclose(with_others[-1], alone[0], atol=1e-5)


def test_pairs(packed):
    pairs = (TEXTS[:9], TEXTS[9:18])
    logits = packed.predict(pairs, verbose=0)
    packed.compile(rows="single")
    np.testing.assert_allclose(packed.predict(pairs, verbose=0), logits, atol=1e-5)


def test_the_choice_and_the_share_of_positions_are_told(packed, capfd):
    packed.predict(TEXTS, verbose=2)
    told = capfd.readouterr().err
    assert "Several texts a row, " in told and "% of the positions are used" in told
    packed.compile(rows="single")
    packed.evaluate(TEXTS, LABELS, verbose=2)
    assert "One text a row, " in capfd.readouterr().err
    packed.evaluate(TEXTS, LABELS, verbose=0)
    assert capfd.readouterr().err == ""


def test_texts_of_one_length_are_not_packed_by_themselves(model, capfd):
    model.compile()
    model.predict([15 * "a film "] * 5, verbose=2)  # as long as the model can read
    assert "One text a row" in capfd.readouterr().err


def test_unknown_rows_are_refused(model):
    with pytest.raises(ValueError, match="Received: 'double'"):
        model.compile(rows="double")


def test_the_choice_is_kept_in_a_file(packed, tmp_path):
    packed.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert copy.choices.rows == "packed"
    np.testing.assert_allclose(
        copy.predict(TEXTS, verbose=0), packed.predict(TEXTS, verbose=0), atol=1e-6
    )


def test_mixed_precision():
    backbone = tiny.backbone(dropout=0.0, attention_dropout=0.0, dtype="mixed_bfloat16")
    model = kbert.BertClassifier(backbone, tiny.preprocessor(), labels=tiny.LABELS)
    found = []
    for rows in ("packed", "single"):
        model.compile(rows=rows)
        found.append(model.predict(TEXTS, verbose=0))
    np.testing.assert_allclose(found[0], found[1], atol=0.05)


def test_packed_rows_under_a_distribution_are_refused(model, monkeypatch):
    model.compile(rows="packed")
    monkeypatch.setattr(keras.distribution, "distribution", lambda: object())
    with pytest.raises(ValueError, match="Received: rows='packed'"):
        model.predict(TEXTS, verbose=0)


def test_every_metric_is_reported_once(model):
    for _ in range(2):
        model.compile()
    assert len(model.evaluate(TEXTS, LABELS, verbose=0)) == 2
