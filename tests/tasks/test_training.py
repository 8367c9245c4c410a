"""What `fit` does with weights, splits, schedules and frozen or low-rank parts."""

import keras
import numpy as np
import pytest

import kbert
from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


def logits(model, x=TEXTS[:5]):
    return model.predict(x, verbose=0)


# Weights, splits, validation, schedules


def loss_of(model, y=LABELS, **weights):
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    history = model.fit(TEXTS, y, batch_size=8, shuffle=False, verbose=0, **weights)
    return history.history["loss"][0]


def test_the_reported_loss_is_the_mean_over_texts():
    model = tiny.classifier(dropout=0.0)
    rows = logits(model, TEXTS)
    losses = np.log(np.exp(rows).sum(1)) - rows[np.arange(len(TEXTS)), INDICES]
    assert loss_of(model) == pytest.approx(losses.mean(), rel=1e-5)
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    history = model.fit(TEXTS, LABELS, batch_size=7, verbose=0)  # the last batch has 3
    assert history.history["loss"][0] == pytest.approx(losses.mean(), rel=1e-5)


def test_class_weights_and_sample_weights_change_the_loss_alike():
    model = tiny.classifier(dropout=0.0)
    of_classes = loss_of(model, class_weight={"negative": 3.0, "positive": 0.5})
    assert of_classes == pytest.approx(loss_of(model, class_weight={0: 3.0, 1: 0.5}))
    of_samples = loss_of(model, sample_weight=[[3.0, 0.5][i] for i in INDICES])
    assert of_classes == pytest.approx(of_samples, rel=1e-5)
    assert abs(of_classes - loss_of(model)) > 1e-3


def ways_to_pass_texts():
    batches = tiny.RawBatches(TEXTS, LABELS)
    return {
        "arrays": {"x": tiny.preprocessor()(TEXTS), "y": LABELS, "batch_size": 8},
        "dataset": {"x": batches},
        "generator": {"x": (batches[i] for i in range(3)), "steps_per_epoch": 3},
    }


@pytest.mark.parametrize("way", ways_to_pass_texts())
def test_class_weights_mean_the_same_as_with_lists(way):
    model = tiny.classifier(dropout=0.0)
    weights = {"negative": 3.0, "positive": 0.5}
    expected = loss_of(model, class_weight=weights)
    data = ways_to_pass_texts()[way]
    history = model.fit(**data, class_weight=weights, shuffle=False, verbose=0)
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-4)


def test_class_weights_of_unknown_classes_are_refused():
    with pytest.raises(ValueError, match="neutral"):
        tiny.classifier().fit(TEXTS, LABELS, class_weight={"neutral": 2.0})
    with pytest.raises(ValueError, match="multi_label"):
        model = tiny.classifier(problem="multi_label")
        model.fit(TEXTS, np.eye(2)[INDICES], class_weight={0: 2.0})


def test_validation_split_holds_back_the_last_texts(trained):
    model = tiny.classifier(dropout=0.0)
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    history = model.fit(TEXTS, LABELS, validation_split=0.25, verbose=0)
    expected = model.evaluate(TEXTS[18:], LABELS[18:], verbose=0)[0]
    assert history.history["val_loss"][0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "held_out",
    [
        (TEXTS[:6], LABELS[:6]),
        (TEXTS[:6], LABELS[:6], np.ones(6)),
        (tiny.preprocessor()(TEXTS[:6]), INDICES[:6]),
    ],
)
def test_validation_data_of_every_kind(held_out):
    model = tiny.classifier(dropout=0.0)
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    history = model.fit(TEXTS, LABELS, validation_data=held_out, epochs=2, verbose=0)
    expected = model.evaluate(TEXTS[:6], LABELS[:6], verbose=0)
    assert history.history["val_loss"] == pytest.approx([expected[0]] * 2, rel=1e-5)


def test_fit_makes_a_new_schedule_each_time_and_says_so(capfd):
    model = tiny.classifier()
    model.fit(TEXTS, LABELS, batch_size=8, epochs=2)
    first = model.optimizer
    assert "6 steps" in capfd.readouterr().err
    model.fit(TEXTS, LABELS, batch_size=8, epochs=1)
    assert model.optimizer is not first
    assert "3 steps" in capfd.readouterr().err


def test_what_the_user_compiled_stays():
    model = tiny.classifier()
    optimizer = keras.optimizers.SGD(0.01)
    model.compile(optimizer, metrics=[])
    model.fit(TEXTS, LABELS, verbose=0)
    model.fit(TEXTS, LABELS, verbose=0)
    assert model.optimizer is optimizer
    assert int(optimizer.iterations) == 2


def test_fit_shuffles_reproducibly():
    model = tiny.classifier(dropout=0.0)
    model.compile(keras.optimizers.SGD(0.1))
    start = model.get_weights()

    def weights(seed):
        model.set_weights(start)
        keras.utils.set_random_seed(seed)
        model.fit(TEXTS, LABELS, batch_size=4, verbose=0)
        return np.array(model.head.kernel)

    np.testing.assert_array_equal(weights(1), weights(1))
    assert np.abs(weights(1) - weights(2)).max() > 0


def test_truncation_is_told(capfd):
    model = tiny.classifier(preprocessor=tiny.preprocessor(sequence_length=6))
    model.fit(TEXTS, LABELS, batch_size=8)
    told = capfd.readouterr().err
    long = sum(len(text.split()) > 4 for text in TEXTS)
    assert f"{long} of 24 texts were longer than 6 tokens and were truncated" in told


def test_batch_methods_take_text():
    model = tiny.classifier()
    assert model.train_on_batch(TEXTS, LABELS)[0] > 0
    assert model.test_on_batch(TEXTS, LABELS, return_dict=True)["loss"] > 0
    assert model.predict_on_batch(TEXTS).shape == (24, 2)
    assert int(model.optimizer.iterations) == 1


# Freezing, LoRA, precision


def changed(model, train):
    before = {w.path: np.array(w) for w in model.weights}
    train()
    return {w.path for w in model.weights if np.abs(np.array(w) - before[w.path]).max()}


def test_freeze_backbone_leaves_the_head_alone_to_train():
    model = tiny.classifier()
    model.fit(TEXTS, LABELS, verbose=0)  # traced with everything trainable
    model.freeze_backbone()
    moved = changed(model, lambda: model.fit(TEXTS, LABELS, epochs=3, verbose=0))
    assert moved == {"classifier/kernel", "classifier/bias"}


def test_freezing_works_with_an_optimizer_of_the_users_own():
    model = tiny.classifier()
    model.compile(keras.optimizers.Adam(1e-2))
    model.fit(TEXTS, LABELS, verbose=0)
    model.freeze_backbone()
    moved = changed(model, lambda: model.fit(TEXTS, LABELS, verbose=0))
    assert moved == {"classifier/kernel", "classifier/bias"}


def test_lora_trains_its_factors_and_the_head():
    model = tiny.classifier(dropout=0.0)
    before = logits(model)
    model.enable_lora(2)
    np.testing.assert_allclose(logits(model), before, atol=1e-6)
    model.compile(learning_rate=1e-2)
    moved = changed(model, lambda: model.fit(TEXTS, LABELS, epochs=5, verbose=0))
    assert moved == {
        f"encoder_layer_0/attention/{name}/lora_kernel_{factor}"
        for name in ("query", "value")
        for factor in "ab"
    } | {"classifier/kernel", "classifier/bias"}


def test_lora_goes_on_after_keras_saving(tmp_path):
    model = tiny.classifier(dropout=0.0)
    model.enable_lora(2)
    model.compile(learning_rate=1e-2)
    model.fit(TEXTS, LABELS, epochs=3, verbose=0)
    model.save(tmp_path / "lora.keras")
    again = keras.saving.load_model(tmp_path / "lora.keras")
    assert again.lora_rank == 2
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)
    factors = {w.path: np.array(w) for w in model.weights if "lora" in w.path}
    for weight in again.weights:
        if "lora" in weight.path:
            np.testing.assert_array_equal(np.array(weight), factors[weight.path])
    moved = changed(again, lambda: again.fit(TEXTS, LABELS, epochs=3, verbose=0))
    assert moved == {*factors, "classifier/kernel", "classifier/bias"}


def test_lora_is_merged_in_a_preset(tmp_path):
    model = tiny.classifier(dropout=0.0)
    model.enable_lora(2)
    model.compile(learning_rate=1e-2)
    model.fit(TEXTS, LABELS, epochs=3, verbose=0)
    model.save_to_preset(tmp_path / "merged")
    again = kbert.BertClassifier.from_preset(tmp_path / "merged")
    assert again.lora_rank is None
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-5)


@pytest.mark.parametrize("rank", [0, 17, 2.0])
def test_bad_ranks_are_refused(rank):
    with pytest.raises(ValueError, match=f"Received: {rank}"):
        tiny.classifier().enable_lora(rank)


def test_lora_twice_is_refused():
    model = tiny.classifier()
    model.enable_lora(2)
    with pytest.raises(ValueError, match="rank=4, after 2"):
        model.enable_lora(4)


def test_mixed_bfloat16_trains(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = tiny.classifier()
    model.fit(TEXTS, LABELS, verbose=0)
    assert model.backbone.pooler.dense.compute_dtype == "bfloat16"
    assert logits(model).dtype == np.float32
    assert np.isfinite(logits(model)).all()
    model.save(tmp_path / "bf16.keras")
    keras.config.set_dtype_policy("float32")
    again = keras.saving.load_model(tmp_path / "bf16.keras")
    assert again.backbone.pooler.dense.compute_dtype == "bfloat16"
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)


def test_an_interrupted_run_keeps_what_it_learned():
    model = tiny.classifier()
    model.compile(learning_rate=1e-2)
    before = np.array(model.head.kernel)

    def interrupt(batch, logs):
        if batch == 1:
            raise KeyboardInterrupt

    stop = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(TEXTS, LABELS, batch_size=8, callbacks=[stop], verbose=0)
    assert np.isfinite(logits(model)).all()
    assert np.abs(np.array(model.head.kernel) - before).max() > 0


def test_no_epoch_is_no_training():
    model = tiny.classifier()
    before = np.array(model.head.kernel)
    model.fit(TEXTS, LABELS, epochs=0, verbose=0)
    np.testing.assert_array_equal(np.array(model.head.kernel), before)
