import keras
import numpy as np
import pytest

from kbert.training import WarmupLinearDecay
from tests.training.reference import google_learning_rate


def test_equals_googles_formula_at_every_step():
    schedule = WarmupLinearDecay(5e-5, total_steps=230, warmup_fraction=0.1)
    assert schedule.warmup_steps == 23
    rates = [float(schedule(step)) for step in range(240)]
    expected = [google_learning_rate(step, 5e-5, 230, 23) for step in range(240)]
    np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=1e-12)


def test_no_warmup_starts_at_the_peak():
    assert float(WarmupLinearDecay(0.5, 10, warmup_fraction=0)(0)) == 0.5


def test_is_never_negative_and_takes_tensors():
    schedule = WarmupLinearDecay(1.0, 4)
    step = keras.ops.convert_to_tensor(1000)
    assert float(schedule(step)) == 0.0


def test_survives_serialisation():
    schedule = WarmupLinearDecay(3e-4, 77, 0.25)
    config = keras.saving.serialize_keras_object(schedule)
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == {
        "peak_learning_rate": 3e-4,
        "total_steps": 77,
        "warmup_fraction": 0.25,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1e-4, 0), "total_steps=0"),
        ((1e-4, -3), "total_steps=-3"),
        ((1e-4, 2.5), "total_steps=2.5"),
        ((1e-4, True), "total_steps=True"),
        ((1e-4, 10, 1.01), "warmup_fraction=1.01"),
        ((1e-4, 10, -0.1), "warmup_fraction=-0.1"),
        ((1e-4, 10, 100), "warmup_fraction=100"),
        ((-1e-4, 10), "peak_learning_rate=-0.0001"),
        ((float("nan"), 10), "peak_learning_rate=nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupLinearDecay(*arguments)
