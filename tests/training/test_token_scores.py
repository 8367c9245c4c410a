import keras
import numpy as np
import pytest

from kbert.training.token_scores import TokenAccuracy, TokenCrossentropy

LOGITS = np.random.RandomState(0).normal(size=(6, 9)).astype("float32")
LABELS = np.array([3, -1, 0, 8, -1, 2], "int32")
TOKENS = LABELS >= 0
# Google's: sum(w * loss) / (sum(w) + 1e-5), but for the 1e-5.
EACH = np.log(np.exp(LOGITS).sum(1)) - LOGITS[np.arange(6), np.maximum(LABELS, 0)]


def test_the_mean_is_that_of_the_tokens():
    found = float(TokenCrossentropy()(LABELS, LOGITS))
    assert found == pytest.approx(EACH[TOKENS].mean(), rel=1e-6)
    in_rows = TokenCrossentropy()(LABELS.reshape(2, 3), LOGITS.reshape(2, 3, 9))
    assert found == pytest.approx(float(in_rows), rel=1e-6)
    without = float(TokenCrossentropy()(LABELS[TOKENS], LOGITS[TOKENS]))
    assert found == pytest.approx(without, rel=1e-6)


def test_keras_says_the_same():
    # By its own way to pass over a class.
    theirs = keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)
    ours = TokenCrossentropy()
    assert float(ours(LABELS, LOGITS)) == pytest.approx(float(theirs(LABELS, LOGITS)))


def test_weights():
    weights = np.array([1, 7, 2, 0.5, 7, 0], "float32")
    found = float(TokenCrossentropy()(LABELS, LOGITS, weights))
    expected = (weights * EACH)[TOKENS].sum() / TOKENS.sum()
    assert found == pytest.approx(expected, rel=1e-6)


def test_nothing_but_empty_slots():
    assert float(TokenCrossentropy()(np.array([-1, -1]), LOGITS[:2])) == 0
    metric = TokenAccuracy()
    metric.update_state(np.array([-1, -1]), LOGITS[:2])
    assert float(metric.result()) == 0


def test_accuracy():
    best = LOGITS.argmax(1)
    labels = np.where(np.arange(6) < 2, best, (best + 1) % 9)
    labels[1] = -1
    metric = TokenAccuracy()
    metric.update_state(labels, LOGITS)
    assert float(metric.result()) == pytest.approx(1 / 5)
    metric.update_state(best[3:], LOGITS[3:], sample_weight=np.array([1.0, 0.0, 2.0]))
    assert float(metric.result()) == pytest.approx((1 + 3) / (5 + 3))
    metric.reset_state()
    assert float(metric.result()) == 0


def test_they_come_back_from_a_configuration():
    for thing in (TokenCrossentropy(name="x", reduction="sum"), TokenAccuracy("y")):
        again = type(thing).from_config(thing.get_config())
        assert again.name == thing.name
        assert again.get_config() == thing.get_config()
