"""What a classifier refuses, before any work."""

import functools

import keras
import numpy as np
import pytest

import kbert
from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


def logits(model, x=TEXTS[:5]):
    return model.predict(x, verbose=0)


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
        (TEXTS, None, "`y` must hold a target"),
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


def test_evaluate_needs_targets(trained):
    with pytest.raises(ValueError, match="`y` must hold a target"):
        trained.evaluate(TEXTS, verbose=0)


@pytest.mark.parametrize("size", [0, -1])
def test_batch_sizes_are_positive(size):
    with pytest.raises(ValueError, match=f"positive. Received: {size}"):
        tiny.classifier().fit(TEXTS, LABELS, batch_size=size, verbose=0)


def test_steps_go_with_a_dataset(trained):
    with pytest.raises(ValueError, match="steps=1"):
        trained.predict(TEXTS, steps=1)


def test_rows_longer_than_the_positions_are_refused():
    ids = np.full((1, 33), 5)
    with pytest.raises(ValueError, match="33"):
        tiny.classifier().predict({"token_ids": ids, "padding_mask": np.ones_like(ids)})


@pytest.mark.parametrize(
    "text", ["a", ["a"], np.array(["a"]), (["a"], ["b"]), {"first": ["a"]}]
)
def test_calling_the_model_on_text_says_what_to_do(text):
    with pytest.raises(ValueError, match=f"predict.*{type(text).__name__} of text"):
        tiny.classifier()(text)


@pytest.mark.parametrize("kind", [np.array, keras.ops.convert_to_tensor])
@pytest.mark.parametrize("extra", ["aaa", "zzz"])
def test_calling_the_model_with_unknown_keys_is_refused(extra, kind):
    ready = {key: kind(value) for key, value in tiny.preprocessor()(["a"]).items()}
    with pytest.raises(ValueError, match=f"Received: .*'{extra}'"):
        tiny.classifier()({**ready, extra: ready["token_ids"]})


@pytest.mark.parametrize("key", ["token_ids", "segment_ids", "padding_mask"])
def test_calling_the_model_without_a_key_is_refused(key):
    ready = tiny.preprocessor()(["a"])
    del ready[key]
    with pytest.raises(ValueError, match=f"with the keys .*'{key}'.*Received"):
        tiny.classifier()(ready)


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
        ({"num_classes": 1}, "num_classes=1.*regression.*multi_label"),
        ({"num_classes": 0}, "num_classes=0"),
        ({"num_classes": "2"}, "integer.*num_classes='2'"),
        ({"num_classes": 2.5}, "integer.*num_classes=2.5"),
        ({"num_classes": True}, "integer.*num_classes=True"),
        ({"num_classes": 2.0, "labels": ["a", "b"]}, "integer.*num_classes=2.0"),
        ({"num_classes": "1", "problem": "regression"}, "integer.*num_classes='1'"),
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
        "BinaryCrossentropy",
        "bce",
        "BCE",
        "binary_focal_crossentropy",
        "categorical_focal_crossentropy",
        "kld",
        "dice",
        keras.losses.sparse_categorical_crossentropy,
        functools.partial(keras.losses.binary_crossentropy, label_smoothing=0.1),
        keras.losses.SparseCategoricalCrossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.BinaryCrossentropy(),
        keras.losses.KLDivergence(),
        ["sparse_categorical_crossentropy"],
        {"classifier": "bce"},
    ],
)
def test_a_loss_on_probabilities_is_refused(loss):
    with pytest.raises(ValueError, match="loss must take logits.*Received: .*which"):
        tiny.classifier().compile(loss=loss)


def on_logits(truth, outputs):
    return keras.losses.sparse_categorical_crossentropy(truth, outputs, True)


@pytest.mark.parametrize(
    "loss",
    [
        "mse",
        on_logits,
        functools.partial(
            keras.losses.sparse_categorical_crossentropy, from_logits=True
        ),
        [keras.losses.SparseCategoricalCrossentropy(from_logits=True)],
        keras.losses.CategoricalHinge(),
    ],
)
def test_a_loss_on_logits_is_taken(loss):
    tiny.classifier().compile(loss=loss)


@pytest.mark.parametrize("where", ["metrics", "weighted_metrics"])
@pytest.mark.parametrize(
    "metric",
    [
        "binary_accuracy",
        "bce",
        keras.metrics.BinaryAccuracy,
        keras.metrics.Precision(),
        keras.metrics.AUC(),
        keras.metrics.RecallAtPrecision(0.5),
        keras.metrics.BinaryCrossentropy(),
        keras.metrics.KLDivergence(),
        keras.metrics.F1Score(threshold=0.5),
    ],
)
def test_a_metric_on_probabilities_is_refused(metric, where):
    model = tiny.classifier(problem="multi_label")
    with pytest.raises(ValueError, match="metric must take logits.*Received: .*which"):
        model.compile(**{where: [metric]})


@pytest.mark.parametrize(
    "metric",
    [
        keras.metrics.BinaryAccuracy(threshold=0.0),
        keras.metrics.Precision(thresholds=0.0),
        keras.metrics.Recall(top_k=1),
        keras.metrics.AUC(from_logits=True),
        keras.metrics.F1Score(),
        "mse",
    ],
)
def test_a_metric_on_logits_is_taken(metric):
    tiny.classifier(problem="multi_label").compile(metrics=[metric])


def test_metrics_of_numbers_may_have_thresholds():
    model = tiny.classifier(problem="regression")
    model.compile(metrics=["binary_accuracy"])
