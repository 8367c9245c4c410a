"""BertClassifier: what it learns, and the kinds of text and labels that it takes."""

import keras
import numpy as np
import pandas
import pytest

import kbert
from kbert.backbone import INPUTS
from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


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


def test_a_dataset_predicts_in_order(trained):
    dataset = tiny.RawBatches(TEXTS, LABELS)
    np.testing.assert_allclose(
        logits(trained, dataset), logits(trained, TEXTS), atol=1e-5
    )


def test_a_dataset_evaluates_like_lists(trained):
    of_lists = trained.evaluate(TEXTS, LABELS, batch_size=8, verbose=0)
    of_dataset = trained.evaluate(tiny.RawBatches(TEXTS, LABELS), verbose=0)
    np.testing.assert_allclose(of_lists, of_dataset, rtol=1e-5)


def test_fit_takes_a_generator():
    model = tiny.classifier()

    def endless():
        while True:
            yield from (tiny.RawBatches(TEXTS, LABELS)[i] for i in range(3))

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


@pytest.mark.parametrize("where", ["metrics", "weighted_metrics"])
@pytest.mark.parametrize("name", ["accuracy", "acc"])
@pytest.mark.parametrize("problem", ["single_label", "multi_label"])
def test_accuracy_by_name_is_the_tasks(problem, name, where):
    model = tiny.classifier(problem=problem, labels=["a", "b", "c"], dropout=0.0)
    y = np.random.default_rng(0).integers(0, 2, (24, 3))
    y = y.argmax(1) if problem == "single_label" else y
    expected = model.evaluate(TEXTS, y, verbose=0, return_dict=True)["accuracy"]
    model.compile(**{where: [name]})
    assert model.evaluate(TEXTS, y, verbose=0, return_dict=True)[name] == expected


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


# Inside of another model


def test_a_task_inside_of_another_model(trained, tmp_path):
    inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in INPUTS}
    model = keras.Model(inputs, keras.layers.Softmax()(trained(inputs)))
    ready = tiny.preprocessor()(TEXTS[:5])
    expected = [list(a.probabilities.values()) for a in trained.classify(TEXTS[:5])]
    np.testing.assert_allclose(model.predict(ready, verbose=0), expected, atol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.predict(ready, verbose=0), expected, atol=1e-5)
