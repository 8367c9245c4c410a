"""A training goes on to the same bits, wherever it stopped."""

import concurrent.futures
import os
import signal

import keras
import numpy as np
import pytest

from kbert.training import AdamW, TrainingCheckpoint, WarmupLinearDecay
from kbert.training.randomness import random_states, set_random_states
from kbert.training.stopping import StopRequest

TOTAL = 12


class Batches(keras.utils.PyDataset):
    """Any batch by its number."""

    def __init__(self, first=0):
        super().__init__()
        self.first = first

    num_batches = None

    def __getitem__(self, index):
        rng = np.random.default_rng(self.first + index)
        x = rng.normal(size=(4, 6)).astype("float32")
        return x, x[:, :1] ** 2


def small_model(accumulate=None, width=8, **optimizer):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(width, "relu"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    rate = WarmupLinearDecay(0.1, TOTAL, 0.2)
    options = {"gradient_accumulation_steps": accumulate, "use_ema": True, **optimizer}
    model.compile(AdamW(rate, **options), "mse", metrics=["mae"])
    return model


class Interruption(keras.callbacks.Callback):
    """Does something after a batch of the fit."""

    def __init__(self, batch, action):
        super().__init__()
        self.batch, self.action = batch, action

    def on_train_batch_end(self, batch, logs=None):
        if batch == self.batch:
            self.action()


def fit(model, checkpoint, *others, until=TOTAL):
    batches = Batches(checkpoint.step)
    steps = until - checkpoint.step
    return model.fit(
        batches,
        steps_per_epoch=steps,
        shuffle=False,
        verbose=0,
        callbacks=[*others, checkpoint],
    ).history


def weights(model):
    return [keras.ops.convert_to_numpy(weight) for weight in model.weights]


def assert_same(first, second):
    for a, b in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    trained = {}
    for parts in (None, 2):
        model = small_model(parts)
        history = fit(model, TrainingCheckpoint(folder / str(parts)))
        trained[parts] = model, history
    return trained


def die():
    raise ZeroDivisionError


@pytest.mark.parametrize("parts", [None, 2])
def test_after_a_crash(tmp_path, undisturbed, parts):
    model = small_model(parts)
    with pytest.raises(ZeroDivisionError):
        fit(model, TrainingCheckpoint(tmp_path, every=3), Interruption(7, die))
    checkpoint = TrainingCheckpoint(tmp_path, every=3)
    assert checkpoint.step == 6
    again = small_model(parts)
    again.evaluate(Batches(), steps=1, verbose=0)  # makes metrics, and draws on torch
    history = fit(again, checkpoint)
    expected, expected_history = undisturbed[parts]
    assert_same(again, expected)
    assert history == expected_history  # sums of the whole epoch, not of its rest
    assert checkpoint.step == TOTAL
    assert TrainingCheckpoint(tmp_path).step == TOTAL  # saved at the end


def test_after_a_signal(tmp_path, undisturbed):
    model = small_model(2)
    with StopRequest() as stop:
        checkpoint = TrainingCheckpoint(tmp_path, every=100, stop=stop)
        asked = Interruption(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
        fit(model, checkpoint, asked)
    assert stop.received == signal.SIGTERM
    assert checkpoint.step == TrainingCheckpoint(tmp_path).step == 5
    again = small_model(2)
    again.evaluate(Batches(), steps=1, verbose=0)
    fit(again, TrainingCheckpoint(tmp_path))
    assert_same(again, undisturbed[2][0])


def test_several_fits_with_draws_between_them(tmp_path):
    models = []
    for ends in ((TOTAL,), (5, 9, TOTAL)):
        # Averages would become the weights at the end of each.
        model = small_model(use_ema=False)
        checkpoint = TrainingCheckpoint(tmp_path / str(len(ends)), every=100)
        for until in ends:
            fit(model, checkpoint, until=until)
            model.evaluate(Batches(), steps=2, verbose=0)
        models.append(model)
    assert_same(*models)


def test_without_seeds_it_would_differ(tmp_path, undisturbed):
    # The judge sees what `BackupAndRestore` leaves out.
    fit(small_model(), TrainingCheckpoint(tmp_path, every=3), until=6)
    again, checkpoint = small_model(), TrainingCheckpoint(tmp_path)
    again.evaluate(Batches(), steps=1, verbose=0)
    checkpoint.restore(again)
    for variable in again.variables:
        if "seed" in variable.path:
            variable.assign(variable + 1)
    keras.utils.set_random_seed(4)
    checkpoint._random = random_states()
    fit(again, checkpoint)
    pairs = zip(weights(again), weights(undisturbed[None][0]), strict=True)
    assert any(np.abs(a - b).max() > 1e-4 for a, b in pairs)


def test_facts_are_saved_beside(tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path, facts=lambda: {"name": "mine"})
    fit(small_model(), checkpoint, until=2)
    facts = TrainingCheckpoint(tmp_path).saved.facts
    assert facts["more"] == {"name": "mine"}
    assert facts["backend"] == keras.backend.backend()


def test_another_model_or_optimizer_is_refused(tmp_path):
    fit(small_model(), TrainingCheckpoint(tmp_path), until=2)
    with pytest.raises(ValueError, match=r"of shape \(6, 9\), for .* \(6, 8\)"):
        TrainingCheckpoint(tmp_path).restore(small_model(width=9))
    with pytest.raises(ValueError, match=r"_velocity .*, for .*_average \("):
        TrainingCheckpoint(tmp_path).restore(small_model(use_ema=False))
    shallow = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8)])
    shallow.compile(AdamW(0.1), "mse")
    with pytest.raises(ValueError, match="2 variables, for 5 that were saved"):
        TrainingCheckpoint(tmp_path).restore(shallow)
    model = small_model()
    model.optimizer = None
    with pytest.raises(ValueError, match="a model whose `fit` makes a new one"):
        TrainingCheckpoint(tmp_path).restore(model)


def test_another_backend_is_refused(tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path)
    fit(small_model(), checkpoint, until=2)
    checkpoint = TrainingCheckpoint(tmp_path)
    checkpoint.saved.facts["backend"] = "theano"
    with pytest.raises(ValueError, match="theano. Received: KERAS_BACKEND="):
        checkpoint.restore(small_model())


def test_sums_of_metrics_need_metrics(tmp_path, backend):
    with StopRequest() as stop:
        checkpoint = TrainingCheckpoint(tmp_path, stop=stop)
        asked = Interruption(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        fit(small_model(), checkpoint, asked)
    checkpoint = TrainingCheckpoint(tmp_path)
    if backend == "tensorflow":  # which makes them in its first step
        with pytest.raises(ValueError, match=r"steps=1\)` before `fit`. Received: \d+"):
            fit(small_model(), checkpoint)
    else:
        fit(small_model(), checkpoint)


@pytest.mark.parametrize("every", [0, -3, True, 1.5])
def test_bad_intervals(tmp_path, every):
    with pytest.raises(ValueError, match=f"every={every!r}"):
        TrainingCheckpoint(tmp_path, every=every)


def test_random_states_come_back():
    import random

    random.gauss(0, 1)
    np.random.normal(size=3)

    def draw():
        drawn = [random.random(), random.gauss(0, 1), np.random.normal()]
        if keras.backend.backend() == "torch":
            import torch

            drawn.append(torch.rand(()).item())
        return drawn

    states = random_states()
    first = draw()
    assert draw() != first
    set_random_states(states)
    assert draw() == first


def test_a_second_signal_is_not_held_back():
    with StopRequest() as stop:
        assert stop.received is None
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.received == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_gets_no_signals():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:

        def enter():
            with StopRequest() as stop:
                return stop.received, signal.getsignal(signal.SIGINT)

        assert pool.submit(enter).result() == (None, signal.default_int_handler)
