"""A torch `DataLoader` of text trains, evaluates and predicts like lists do."""

import keras
import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests import tiny

TEXTS, LABELS = tiny.sentiment()
INDICES = [tiny.LABELS.index(label) for label in LABELS]


def loader():
    return DataLoader(list(zip(TEXTS, INDICES, strict=True)), batch_size=8)


def test_it_evaluates_and_predicts_like_lists(trained):
    expected = trained.evaluate(TEXTS, LABELS, verbose=0)
    np.testing.assert_allclose(
        trained.evaluate(loader(), verbose=0), expected, rtol=1e-5
    )
    rows = trained.predict(DataLoader(TEXTS, batch_size=5), verbose=0)
    np.testing.assert_allclose(rows, trained.predict(TEXTS, verbose=0), atol=1e-5)


def test_it_trains():
    model = tiny.classifier()
    model.fit(loader(), epochs=2, verbose=0)
    assert int(model.optimizer.iterations) == 6


def test_class_weights_mean_the_same_as_with_lists():
    model = tiny.classifier(dropout=0.0)
    model.compile(keras.optimizers.SGD(0.0))

    def loss(x, y=None, **weights):
        history = model.fit(x, y, batch_size=8, shuffle=False, verbose=0, **weights)
        return history.history["loss"][0]

    weighted = loss(loader(), class_weight={0: 3.0, 1: 0.5})
    expected = loss(TEXTS, LABELS, class_weight={0: 3.0, 1: 0.5})
    assert weighted == pytest.approx(expected, rel=1e-4)
    assert abs(weighted - loss(loader())) > 1e-3
