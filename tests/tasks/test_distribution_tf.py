"""Two replicas train what one device trains; what they cannot do is refused."""

import keras
import pytest

from tests import tiny
from tests.pretraining import toy
from tests.tasks import replicas


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What two replicas did, what they refused, and what one device does."""
    folder = tmp_path_factory.mktemp("replicas")
    (folder / "corpus.txt").write_text(toy.text(20))
    toy.create(folder / "corpus.txt", folder / "instances")
    (found,) = replicas.in_children(
        "tests.tasks.replicas_tf", 1, folder / "instances", folder
    )
    told = {
        name.removeprefix("told/"): str(found.pop(name))
        for name in list(found)
        if name.startswith("told/")
    }
    expected = replicas.train(folder / "instances") | replicas.classify()
    return found, told, expected


def test_two_replicas_train_what_one_device_trains(runs):
    found, _, expected = runs
    replicas.check_equal(found, expected)


def test_refusals(runs):
    _, told, _ = runs
    assert "Received: rows='packed'" in told["rows"]
    assert "Received: jit_compile=True, for 2 replicas" in told["xla"]
    assert "'global_clipnorm': 1.0" in told["clipping"]
    assert "gradient_accumulation_steps=2" in told["adding"]
    assert "number of texts" in told["texts"] and "Received: 33" in told["texts"]
    assert "Received: 31, for 2 replicas" in told["rest"]
    assert "Received: 9, for 2 replicas" in told["batch"]
    assert "Received: arrays" in told["arrays"]


def test_what_keras_distributes_on_jax_alone(monkeypatch):
    monkeypatch.setattr(keras.distribution, "distribution", lambda: object())
    with pytest.raises(ValueError, match="JAX alone.*object on 'tensorflow'.*Mirrored"):
        tiny.classifier().fit(*tiny.sentiment(8), verbose=0)
