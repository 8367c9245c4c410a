"""Two processes of torch train what one trains."""

import keras
import numpy as np
import pytest

from tests import tiny
from tests.pretraining import toy
from tests.tasks import replicas, replicas_torch


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What two processes wrote, and what one process does."""
    folder = tmp_path_factory.mktemp("replicas")
    (folder / "corpus.txt").write_text(toy.text(20))
    toy.create(folder / "corpus.txt", folder / "instances")
    found = replicas.in_children(
        "tests.tasks.replicas_torch", 2, folder / "instances", folder
    )
    expected = replicas.train(folder / "instances") | replicas_torch.without_ddp()
    return found, expected


def test_the_weights_are_those_of_one_process(runs):
    (first, second), expected = runs
    for name, values in expected.items():
        if not name.startswith("history/"):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
            np.testing.assert_allclose(first[name], values, atol=1e-5, err_msg=name)


def test_the_mean_of_the_losses_is_that_of_one_process(runs):
    (first, second), expected = runs
    for name in ("history/loss", "history/mlm_loss", "history/nsp_loss"):
        mean = (first[name] + second[name]) / 2
        np.testing.assert_allclose(mean, expected[name], atol=1e-5, err_msg=name)
        assert np.abs(first[name] - second[name]).max() > 1e-4


def test_refusals(runs):
    for found in runs[0]:
        assert "Received: 7, for 2 replicas" in str(found["told/batch"])
        assert "Received: a BertClassifier with texts" in str(found["told/texts"])
        assert "must be kbert.AdamW" in str(found["told/optimizer"])
        assert "Received: one batch, in 2 processes" in str(found["told/step"])


def test_what_keras_distributes_on_jax_alone(monkeypatch):
    monkeypatch.setattr(keras.distribution, "distribution", lambda: object())
    with pytest.raises(
        ValueError, match="JAX alone.*an? object on 'torch'.*torch.dist"
    ):
        tiny.classifier().fit(*tiny.sentiment(8), verbose=0)
