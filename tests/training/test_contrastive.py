import keras
import numpy as np
import pytest

from kbert.training.contrastive import InBatchAccuracy, InBatchNegatives

RANDOM = np.random.RandomState(0)
N, WIDTH = 5, 3
VECTORS = RANDOM.normal(size=(2 * N, WIDTH)).astype("float32")
UNLIKE = np.arange(2 * N).reshape(N, 2)
# Pairs 0 and 3 share their first text, 1 and 2 their second; 4's second is 0's first.
ALIKE = UNLIKE.copy()
ALIKE[3, 0], ALIKE[2, 1], ALIKE[4, 1] = ALIKE[0, 0], ALIKE[1, 1], ALIKE[0, 0]
NO_NEGATIVES = {(0, 3), (3, 0), (1, 2), (2, 1), (0, 4), (3, 4)}


def cosines():
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    return (unit[::2] @ unit[1::2].T).astype("float64")


def losses(scores, left_out):
    """The cross-entropy of every row, with numpy."""
    found = []
    for i, row in enumerate(scores):
        kept = [j for j in range(N) if (i, j) not in left_out]
        found.append(np.log(np.exp(row[kept]).sum()) - row[i])
    return np.array(found)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    ("y", "left_out"), [(UNLIKE, set()), (ALIKE, NO_NEGATIVES)], ids=["unlike", "alike"]
)
def test_the_loss_is_that_of_numpy(y, left_out, symmetric):
    weights = RANDOM.uniform(size=N).astype("float32")
    scores = cosines() / 0.2
    expected = losses(scores, left_out)
    if symmetric:
        turned = {(j, i) for i, j in left_out}
        expected = (expected + losses(scores.T, turned)) / 2
    loss = InBatchNegatives(0.2, symmetric)
    assert float(loss(y, VECTORS)) == pytest.approx(expected.mean(), rel=1e-5)
    weighted = float(loss(y, VECTORS, sample_weight=weights))
    assert weighted == pytest.approx((expected * weights).mean(), rel=1e-5)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.get_config() == loss.get_config()
    assert (again.temperature, again.symmetric) == (0.2, symmetric)


@pytest.mark.parametrize(
    ("y", "left_out"), [(UNLIKE, set()), (ALIKE, NO_NEGATIVES)], ids=["unlike", "alike"]
)
def test_the_accuracy_counts_who_is_nearest(y, left_out):
    scores = cosines()
    right = [
        all(
            scores[i, i] > scores[i, j]
            for j in range(N)
            if j != i and (i, j) not in left_out
        )
        for i in range(N)
    ]
    metric = InBatchAccuracy()
    metric.update_state(y, VECTORS)
    assert float(metric.result()) == pytest.approx(np.mean(right))
    metric.reset_state()
    weights = np.arange(N, dtype="float32")
    metric.update_state(y, VECTORS, weights)
    expected = (weights * right).sum() / weights.sum()
    assert float(metric.result()) == pytest.approx(expected)


def test_equal_vectors_are_no_success():
    metric = InBatchAccuracy()
    metric.update_state(UNLIKE, np.ones_like(VECTORS))
    assert float(metric.result()) == 0


@pytest.mark.parametrize(
    "temperature", [0, -1.0, float("nan"), float("inf"), "1", True]
)
def test_a_temperature_that_is_none(temperature):
    with pytest.raises(ValueError, match=f"temperature={temperature!r}"):
        InBatchNegatives(temperature)
