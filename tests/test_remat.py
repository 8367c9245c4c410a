"""Re-materialisation changes neither losses nor gradients, with dropout on."""

import keras
import numpy as np
import pytest

from kbert import BertBackbone, BertClassifier
from tests import random_bert

FLAG = "--xla_disable_hlo_passes=cse_barrier_expander"


@pytest.fixture(autouse=True)
def flag(monkeypatch):
    """XLA's flag, which kbert warns about on JAX; read when JAX started."""
    monkeypatch.setenv("XLA_FLAGS", FLAG)


def losses(remat, dropouts, steps=4):
    """Losses of training steps on one batch, the same at every call but for `remat`."""
    keras.utils.set_random_seed(0)
    backbone = BertBackbone(
        vocabulary_size=23,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        dropout=dropouts[0],
        attention_dropout=dropouts[1],
        max_sequence_length=16,
        remat=remat,
    )
    classifier = BertClassifier(backbone, num_classes=2)
    random_bert.shake(classifier, seed=1)
    classifier.compile(optimizer=keras.optimizers.SGD(0.5))
    numbers = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
    inputs = random_bert.inputs(numbers, seed=2)
    inputs["segment_ids"] %= 2
    y = np.array([0, 1, 1])
    found = [classifier.train_on_batch(inputs, y, return_dict=True)["loss"]]
    for _ in range(steps - 1):
        classifier.reset_metrics()
        found.append(classifier.train_on_batch(inputs, y, return_dict=True)["loss"])
    return [float(loss) for loss in found]


@pytest.mark.parametrize("dropouts", [(0.3, 0.2), (0.3, 0.0), (0.0, 0.2), (0.0, 0.0)])
def test_losses_are_those_without(dropouts):
    plain = losses(False, dropouts)
    assert losses(True, dropouts) == pytest.approx(plain, abs=1e-5)
    assert len({round(loss, 4) for loss in plain}) == 4


def test_it_is_kept_with_the_model():
    backbone = random_bert.make(remat=True)
    copy = BertBackbone.from_config(backbone.get_config())
    assert copy.remat
    assert all(layer.remat for layer in copy.encoder_layers)
    assert not random_bert.make().remat


def test_what_xla_undoes_is_told(backend, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    if backend == "jax":  # the tests run without a GPU
        with pytest.warns(UserWarning, match=FLAG):
            random_bert.make(remat=True)
    else:
        random_bert.make(remat=True)
