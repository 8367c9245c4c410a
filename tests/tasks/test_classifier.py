"""BertClassifier: what it learns, answers, refuses, keeps and gives back."""

import keras
import numpy as np
import pandas
import pytest

import kbert
from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


@pytest.fixture(scope="module")
def trained():
    """One classifier that has learned to tell the texts apart."""
    keras.utils.set_random_seed(1)
    model = tiny.classifier(dropout=0.0)
    model.compile(learning_rate=1e-2)
    model.fit(TEXTS, LABELS, batch_size=8, epochs=12, verbose=0)
    return model


def logits(model, x=TEXTS[:5]):
    return model.predict(x, verbose=0)


# Answers


def test_it_learns(trained):
    answers = trained.classify(TEXTS)
    assert [answer.label for answer in answers] == LABELS
    assert all(answer.probability > 0.5 for answer in answers)


def test_classification_holds_every_probability(trained):
    (answer,) = trained.classify("a good film")
    assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-6)
    assert answer.probabilities[answer.label] == answer.probability
    assert list(answer.probabilities) == tiny.LABELS


def test_predict_keeps_the_order(trained):
    one_by_one = np.concatenate([logits(trained, [text]) for text in TEXTS])
    np.testing.assert_allclose(
        trained.predict(TEXTS, batch_size=5, verbose=0), one_by_one, atol=1e-5
    )


def test_multi_label_answers():
    model = tiny.classifier(problem="multi_label", labels=["a", "b", "c"])
    model.head.bias.assign([5.0, -5.0, 5.0])
    (answer,) = model.classify(["the film"])
    assert answer.labels == ("a", "c")
    assert list(answer.probabilities) == ["a", "b", "c"]


def test_regression_answers():
    model = tiny.classifier(problem="regression")
    model.head.bias.assign([3.0])
    model.head.kernel.assign(np.zeros((16, 1)))
    assert model.classify(["the film"]) == [kbert.Regression(3.0)]


# What x and y may be


def kinds_of_texts():
    arrays = tiny.preprocessor()(TEXTS[:5])
    return {
        "list": TEXTS[:5],
        "object array": np.array(TEXTS[:5], dtype=object),
        "str array": np.array(TEXTS[:5]),
        "series": pandas.Series(TEXTS[:5], index=[9, 8, 7, 6, 5]),
        "bytes": [text.encode() for text in TEXTS[:5]],
        "dictionary": {"first": TEXTS[:5]},
        "ready": arrays,
        "ready without segments": {k: arrays[k] for k in ("token_ids", "padding_mask")},
    }


@pytest.mark.parametrize("kind", kinds_of_texts())
def test_every_kind_of_text_means_the_same(trained, kind):
    x = kinds_of_texts()[kind]
    np.testing.assert_allclose(logits(trained, x), logits(trained), atol=1e-5)


class RawBatches(keras.utils.PyDataset):
    """A user's own dataset of raw batches."""

    def __init__(self, *columns, **kwargs):
        super().__init__(**kwargs)
        self.columns = columns

    def __len__(self):
        return 3

    def __getitem__(self, index):
        part = slice(8 * index, 8 * index + 8)
        return tuple(column[part] for column in self.columns)


def test_a_dataset_predicts_in_order(trained):
    dataset = RawBatches(TEXTS, LABELS)
    np.testing.assert_allclose(
        logits(trained, dataset), logits(trained, TEXTS), atol=1e-5
    )


def test_a_dataset_evaluates_like_lists(trained):
    of_lists = trained.evaluate(TEXTS, LABELS, batch_size=8, verbose=0)
    of_dataset = trained.evaluate(RawBatches(TEXTS, LABELS), verbose=0)
    np.testing.assert_allclose(of_lists, of_dataset, rtol=1e-5)


def test_fit_takes_a_generator():
    model = tiny.classifier()

    def endless():
        while True:
            yield from (RawBatches(TEXTS, LABELS)[i] for i in range(3))

    history = model.fit(endless(), steps_per_epoch=2, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    assert int(model.optimizer.iterations) == 4


def test_fit_refuses_a_generator_of_unknown_length():
    model = tiny.classifier()
    with pytest.raises(ValueError, match="steps_per_epoch"):
        model.fit((batch for batch in [(TEXTS, LABELS)]), verbose=0)


@pytest.mark.parametrize(
    "y", [LABELS, INDICES, np.array(INDICES), pandas.Series(LABELS), np.array(LABELS)]
)
def test_every_kind_of_label_means_the_same(trained, y):
    expected = trained.evaluate(TEXTS, LABELS, verbose=0)
    assert trained.evaluate(TEXTS, y, verbose=0) == pytest.approx(expected)


def test_pairs():
    model = tiny.classifier(dropout=0.0)
    firsts, seconds = ["a film", "we saw it"], ["the film was bad", "it was good"]
    as_tuple = logits(model, (firsts, seconds))
    as_dictionary = logits(model, {"first": firsts, "second": seconds})
    np.testing.assert_allclose(as_tuple, as_dictionary, atol=1e-6)
    assert np.abs(as_tuple - logits(model, firsts)).max() > 1e-4
    loss = model.evaluate((firsts, seconds), tiny.LABELS, verbose=0)[0]
    chances = np.exp(as_tuple) / np.exp(as_tuple).sum(1, keepdims=True)
    expected = -np.log(chances[[0, 1], [0, 1]])
    assert loss == pytest.approx(float(np.mean(expected)), rel=1e-4)


def test_pairs_use_the_second_segment():
    model = tiny.classifier(dropout=0.0)
    before = logits(model, (["a film"], ["bad"]))
    table = model.backbone.embeddings.segment_embedding.embeddings
    table.assign(np.array(table) + [[0.0] * 16, [1.0, -1.0] * 8])
    assert np.abs(before - logits(model, (["a film"], ["bad"]))).max() > 1e-4


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


def test_class_weights_work_with_a_dataset():
    model = tiny.classifier(dropout=0.0)
    weights = {"negative": 3.0, "positive": 0.5}
    expected = loss_of(model, class_weight=weights)
    history = model.fit(RawBatches(TEXTS, LABELS), class_weight=weights, verbose=0)
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


# Refusals


@pytest.mark.parametrize(
    "x, y, message",
    [
        ([], [], "at least one"),
        (["a", None], LABELS[:2], "None"),
        (["a", b"\xff"], LABELS[:2], "0xff"),
        (TEXTS, LABELS[:3], "3"),
        (TEXTS, ["neutral"] * 24, "neutral"),
        (TEXTS, [2] * 23 + [0], "2"),
        (TEXTS, [-1] * 24, "-1"),
        (TEXTS, ["positive"] * 24, "at least two classes"),
        (["a", 3], LABELS[:2], "int"),
        (None, None, "None"),
    ],
)
def test_fit_refuses_bad_input_before_any_work(x, y, message):
    model = tiny.classifier()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(x, y, verbose=0)
    assert model.optimizer is None


@pytest.mark.parametrize(
    "change, message",
    [
        ({"token_ids": [[2, 99, 3, 0]]}, "99"),
        ({"token_ids": [[2, -1, 3, 0]]}, "-1"),
        ({"segment_ids": [[0, 0, 2, 0]]}, "segment_ids.*2"),
        ({"padding_mask": [[1, 1, 2, 0]]}, "padding_mask.*2"),
        ({"padding_mask": [[1, 1, -1, 0]]}, "padding_mask.*-1"),
        ({"token_ids": [[2.5, 5.0, 3.0, 0.0]]}, "float"),
        ({"token_ids": [2, 5, 3, 0]}, r"\(4,\)"),
        ({"segment_ids": [[0, 0, 0]]}, "one shape"),
        ({"extra": [[0, 0, 0, 0]]}, "extra"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "predict", "evaluate"])
def test_bad_arrays_are_refused(change, message, method):
    good = {
        "token_ids": [[2, 5, 3, 0]],
        "segment_ids": [[0, 0, 0, 0]],
        "padding_mask": [[1, 1, 1, 0]],
    }
    x = {key: np.array(value) for key, value in {**good, **change}.items()}
    arguments = () if method == "predict" else ([1],)
    with pytest.raises(ValueError, match=message):
        getattr(tiny.classifier(), method)(x, *arguments, verbose=0)


def test_rows_longer_than_the_positions_are_refused():
    ids = np.full((1, 33), 5)
    with pytest.raises(ValueError, match="33"):
        tiny.classifier().predict({"token_ids": ids, "padding_mask": np.ones_like(ids)})


def test_calling_the_model_on_text_says_what_to_do():
    with pytest.raises(ValueError, match="predict"):
        tiny.classifier()(["a good film"])


def test_text_without_a_preprocessor_is_refused():
    model = tiny.classifier(preprocessor=None)
    with pytest.raises(ValueError, match="preprocessor"):
        model.predict(TEXTS)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"labels": None}, "neither"),
        ({"labels": ["one"]}, "one"),
        ({"labels": ["a", "a"]}, "'a' twice"),
        ({"labels": "ab"}, "list of names.*'ab'"),
        ({"labels": [0, 1]}, "must be a string.*0"),
        ({"num_classes": 3, "labels": ["a", "b"]}, "num_classes=3"),
        ({"num_classes": 1}, "LABEL_0"),
        ({"problem": "ranking"}, "ranking"),
        ({"problem": "regression", "labels": ["a", "b"]}, "no classes"),
    ],
)
def test_bad_heads_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tiny.classifier(**arguments)


def test_a_vocabulary_larger_than_the_embedding_is_refused():
    with pytest.raises(ValueError, match="24.*10"):
        kbert.BertClassifier(
            tiny.backbone(vocabulary_size=10), tiny.preprocessor(), num_classes=2
        )


def test_a_preprocessor_longer_than_the_positions_is_refused():
    with pytest.raises(ValueError, match="64 tokens for 32"):
        tiny.classifier(preprocessor=tiny.preprocessor(max_sequence_length=64))


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.BinaryCrossentropy(),
    ],
)
def test_a_loss_on_probabilities_is_refused(loss):
    with pytest.raises(ValueError, match="logits"):
        tiny.classifier().compile(loss=loss)


# Problems


def test_multi_label_targets():
    model = tiny.classifier(problem="multi_label", labels=["a", "b", "c"])
    matrix = np.random.default_rng(0).integers(0, 2, (24, 3))
    names = [[n for n, on in zip("abc", row, strict=True) if on] for row in matrix]
    by_matrix = model.evaluate(TEXTS, matrix, verbose=0)
    assert model.evaluate(TEXTS, names, verbose=0) == pytest.approx(by_matrix)
    rows = 1 / (1 + np.exp(-logits(model, TEXTS)))
    accuracy = ((rows > 0.5) == matrix).mean()
    assert by_matrix[1] == pytest.approx(accuracy, abs=1e-6)


def test_regression_learns():
    model = tiny.classifier(problem="regression", dropout=0.0)
    model.compile(learning_rate=1e-2)
    targets = np.array(INDICES, "float32") * 2 - 1
    history = model.fit(TEXTS, targets, batch_size=8, epochs=10, verbose=0)
    assert history.history["loss"][-1] < 0.5 * history.history["loss"][0]
    rows = logits(model, TEXTS)
    assert rows.shape == (24, 1)
    expected = ((rows[:, 0] - targets) ** 2).mean()
    assert model.evaluate(TEXTS, targets, verbose=0)[0] == pytest.approx(
        expected, rel=1e-4
    )


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


# Saving


def test_keras_file_keeps_everything(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(logits(again), logits(trained), atol=1e-6)
    assert again.labels == trained.labels
    assert again.get_config() == trained.get_config()
    again.fit(TEXTS, LABELS, verbose=0)


def test_config_keeps_every_argument():
    model = kbert.BertClassifier(
        tiny.backbone(),
        tiny.preprocessor(sequence_length=9, long_text="head_tail"),
        labels=["x", "y", "z"],
        problem="multi_label",
        dropout=0.3,
        name="named",
    )
    again = kbert.BertClassifier.from_config(model.get_config())
    assert again.get_config() == model.get_config()
    assert again.labels == ("x", "y", "z")
    assert (again.problem, again.dropout, again.name) == ("multi_label", 0.3, "named")
    assert again.preprocessor.sequence_length == 9
    assert again.preprocessor.long_text == "head_tail"


@pytest.mark.parametrize("part", ["backbone", "embeddings", "first layer's norm"])
def test_frozen_stays_frozen(part, tmp_path):
    model = tiny.classifier()
    layer = {
        "backbone": model.backbone,
        "embeddings": model.backbone.embeddings,
        "first layer's norm": model.backbone.encoder_layers[0].attention_norm,
    }[part]
    layer.trainable = False
    model.compile()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    paths = [w.path for w in model.trainable_weights]
    assert [w.path for w in again.trainable_weights] == paths
    assert len(paths) < len(tiny.classifier().trainable_weights)


def test_weights_file(trained, tmp_path):
    trained.save_weights(tmp_path / "model.weights.h5")
    again = tiny.classifier()
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(logits(again), logits(trained), atol=1e-6)


@pytest.mark.parametrize("problem", ["single_label", "multi_label", "regression"])
def test_preset_keeps_everything(problem, tmp_path):
    labels = None if problem == "regression" else ["bad", "good"]
    model = kbert.BertClassifier(
        tiny.backbone(activation="gelu_tanh"),
        tiny.preprocessor(sequence_length=9, long_text="head_tail"),
        labels=labels,
        problem=problem,
        dropout=0.3,
    )
    model.save_to_preset(tmp_path / "preset")
    again = kbert.BertClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)
    assert (again.labels, again.problem, again.dropout) == (
        model.labels,
        problem,
        0.3,
    )
    assert again.preprocessor.sequence_length == 9
    assert again.preprocessor.long_text == "head_tail"
    assert again.backbone.config.activation == "gelu_tanh"


def test_preset_for_other_labels_starts_a_new_head(tmp_path):
    model = tiny.classifier()
    model.save_to_preset(tmp_path / "preset")
    with pytest.warns(UserWarning, match="new one starts at random"):
        other = kbert.BertClassifier.from_preset(
            tmp_path / "preset", labels=["positive", "negative"]
        )
    assert other.labels == ("positive", "negative")
    assert np.abs(np.array(other.head.kernel) - np.array(model.head.kernel)).max() > 0
    np.testing.assert_array_equal(
        np.array(other.backbone.pooler.dense.kernel),
        np.array(model.backbone.pooler.dense.kernel),
    )


def test_nameless_labels_take_names(tmp_path):
    model = kbert.BertClassifier(tiny.backbone(), tiny.preprocessor(), num_classes=2)
    assert model.labels == ("LABEL_0", "LABEL_1")
    model.save_to_preset(tmp_path / "preset")
    named = kbert.BertClassifier.from_preset(tmp_path / "preset", labels=tiny.LABELS)
    np.testing.assert_allclose(logits(named), logits(model), atol=1e-6)


def test_a_failed_write_leaves_the_old_preset(tmp_path, monkeypatch):
    model = tiny.classifier()
    model.save_to_preset(tmp_path / "preset")
    expected = logits(model)
    model.head.bias.assign([9.0, 0.0])

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("kbert.checkpoints.folder.write_weights", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save_to_preset(tmp_path / "preset")
    again = kbert.BertClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(logits(again), expected, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["preset"]


def test_a_preset_without_weights_is_random_only_when_asked():
    with pytest.raises((ValueError, FileNotFoundError), match="load_weights=False"):
        kbert.BertClassifier.from_preset("bert_tiny_en_uncased", num_classes=2)
    model = kbert.BertClassifier.from_preset(
        "bert_tiny_en_uncased", num_classes=2, load_weights=False
    )
    assert model.backbone.count_params() == 4_385_920
    assert model.predict(["a film"], verbose=0).shape == (1, 2)
