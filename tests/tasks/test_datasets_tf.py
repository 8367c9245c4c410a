"""A `tf.data.Dataset` of text trains, evaluates and predicts like lists do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


def dataset(*columns, batch_size=8):
    columns = columns if len(columns) > 1 else columns[0]
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def test_it_evaluates_and_predicts_like_lists(trained):
    expected = trained.evaluate(TEXTS, LABELS, verbose=0)
    of_dataset = trained.evaluate(dataset(TEXTS, INDICES), verbose=0)
    np.testing.assert_allclose(of_dataset, expected, rtol=1e-5)
    rows = trained.predict(dataset(TEXTS), verbose=0)
    np.testing.assert_allclose(rows, trained.predict(TEXTS, verbose=0), atol=1e-5)


def test_names_as_labels(trained):
    expected = trained.evaluate(TEXTS, LABELS, verbose=0)
    of_dataset = trained.evaluate(dataset(TEXTS, LABELS), verbose=0)
    np.testing.assert_allclose(of_dataset, expected, rtol=1e-5)


def test_class_weights_mean_the_same_as_with_lists():
    model = tiny.classifier(dropout=0.0)
    model.compile(keras.optimizers.SGD(0.0))

    def loss(x, y=None, **weights):
        history = model.fit(x, y, batch_size=8, shuffle=False, verbose=0, **weights)
        return history.history["loss"][0]

    weighted = loss(dataset(TEXTS, INDICES), class_weight={0: 3.0, 1: 0.5})
    expected = loss(TEXTS, LABELS, class_weight={0: 3.0, 1: 0.5})
    assert weighted == pytest.approx(expected, rel=1e-4)
    assert abs(weighted - loss(dataset(TEXTS, INDICES))) > 1e-3


def test_sample_weights_in_the_dataset():
    model = tiny.classifier(dropout=0.0)
    model.compile(keras.optimizers.SGD(0.0))
    weights = np.where(INDICES, 3.0, 0.5)
    history = model.fit(dataset(TEXTS, INDICES, weights), verbose=0)
    lists = model.fit(
        TEXTS, LABELS, batch_size=8, sample_weight=weights, shuffle=False, verbose=0
    )
    expected = lists.history["loss"][0]
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-4)


def test_pairs_in_a_dataset():
    model = tiny.classifier(dropout=0.0)
    pairs = tf.data.Dataset.from_tensor_slices(
        ({"first": TEXTS, "second": TEXTS[::-1]}, INDICES)
    ).batch(8)
    expected = model.evaluate((TEXTS, TEXTS[::-1]), LABELS, verbose=0)
    np.testing.assert_allclose(model.evaluate(pairs, verbose=0), expected, rtol=1e-5)


def test_an_unbatched_dataset_is_refused():
    single = tf.data.Dataset.from_tensor_slices((TEXTS, INDICES))
    with pytest.raises(ValueError, match="batch the dataset first"):
        tiny.classifier().fit(single, verbose=0)


def test_targets_beside_a_dataset_are_refused():
    with pytest.raises(ValueError, match="holds its targets"):
        tiny.classifier().fit(dataset(TEXTS), LABELS, verbose=0)


def test_calling_the_model_on_a_text_tensor_says_what_to_do():
    with pytest.raises(ValueError, match="predict.*EagerTensor of text"):
        tiny.classifier()(tf.constant(["a"]))
