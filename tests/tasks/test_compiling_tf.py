"""XLA is chosen for a training run on TensorFlow where it pays, and the choice told."""

import keras
import pytest

from kbert.tasks import compiling
from tests import tiny

TEXTS, LABELS = tiny.sentiment()


def test_a_short_run_is_not_compiled(capfd):
    model = tiny.classifier()
    model.fit(TEXTS, LABELS)
    assert "No XLA" in capfd.readouterr().err


def test_a_long_run_is_compiled_for_training_alone(monkeypatch, capfd):
    monkeypatch.setattr(compiling, "_COMPILATION_SECONDS", 0.0)
    model = tiny.classifier()
    seen = []
    watch = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: seen.append(model.jit_compile)
    )
    model.fit(TEXTS, LABELS, batch_size=24, callbacks=[watch])
    assert seen == [True]
    assert not model.jit_compile
    assert "\nXLA: compiling" in capfd.readouterr().err


@pytest.mark.parametrize("steps, expected", [(10, False), (10**12, True)])
def test_long_runs_are_compiled(steps, expected):
    model = tiny.classifier()
    told = compiling.choose_jit(model, steps, positions=1000)
    assert bool(model.jit_compile) is expected
    assert told.startswith("XLA" if expected else "No XLA")


def test_a_stream_is_not_compiled():
    model = tiny.classifier()
    assert "not known" in compiling.choose_jit(model, 10**12, positions=None)
    assert not model.jit_compile


def test_a_compiled_step_trains():
    model = tiny.classifier(dropout=0.0)
    before = model.evaluate(TEXTS, LABELS, verbose=0)[0]
    model.compile(learning_rate=1e-2, jit_compile=True)
    model.fit(TEXTS, LABELS, batch_size=24, epochs=8, verbose=0)
    assert model.jit_compile
    assert model.evaluate(TEXTS, LABELS, verbose=0)[0] < before


def test_what_the_user_chose_stays(capfd):
    model = tiny.classifier()
    model.compile(jit_compile=False)
    model.fit(TEXTS, LABELS)
    assert "XLA" not in capfd.readouterr().err
