"""The settings that recipes try, and what is kept of their runs."""

import numpy as np
import pytest

from kbert_cli import trials
from kbert_cli.grid import Search, Setting, settings_of
from kbert_cli.recipes import DevScores, Measured
from kbert_cli.trials import Outcome


def test_the_settings_of_the_paper():
    chosen = Setting(1e-5, 1, 8, seed=5)
    assert settings_of(chosen, Search.none, 2) == [chosen, chosen._replace(seed=6)]
    rates = [setting.learning_rate for setting in settings_of(chosen, Search.rates, 1)]
    assert rates == [5e-5, 4e-5, 3e-5, 2e-5]
    grid = settings_of(chosen, Search.grid, 1)
    assert len(set(grid)) == 18
    assert {(s.batch_size, s.epochs) for s in grid} == {
        (b, e) for b in (16, 32) for e in (2, 3, 4)
    }


def outcome(score, seed=0, degenerate=""):
    return Outcome(Setting(1e-4, 1, 8, seed), score, {}, [], degenerate, 1.0)


def test_a_failed_run_is_counted_and_not_chosen():
    outcomes = [outcome(0.9, 0, "it failed"), outcome(0.5, 1), outcome(0.7, 2)]
    assert trials.best(outcomes).score == 0.7
    (line,) = trials.summary(outcomes)
    assert (line["runs"], line["failed"]) == (3, 1)
    assert line["mean"] == pytest.approx(0.6)
    assert line["stdev"] == pytest.approx(0.2 / np.sqrt(2))


def test_only_failed_runs_are_an_error(tmp_path):
    settings = [Setting(1e-4, 1, 8, seed) for seed in range(2)]

    def failing(setting):
        return None, outcome(0.5, setting.seed, "it failed")  # nobody saves it

    for _ in range(2):
        with pytest.raises(ValueError, match="Received: 2 that failed"):
            trials.run_all(settings, failing, tmp_path, {"task": "x"})


def test_a_stop_loses_no_run_and_not_the_best_model(tmp_path):
    """The third run is interrupted: the first two stay, and the best of them."""

    class Task:
        def __init__(self, name):
            self.name = name

        def save_to_preset(self, folder):
            folder.mkdir(exist_ok=True)
            (folder / "name").write_text(self.name)

    asked = []

    def running(setting):
        asked.append(setting.seed)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return Task(str(setting.seed)), outcome(1 - setting.seed / 10, setting.seed)

    settings = [Setting(1e-4, 1, 8, seed) for seed in range(4)]
    with pytest.raises(KeyboardInterrupt):
        trials.run_all(settings, running, tmp_path, {"task": "x"})
    outcomes = trials.run_all(settings, running, tmp_path, {"task": "x"})
    assert asked == [0, 1, 2, 2, 3]
    assert [each.setting for each in outcomes] == settings
    assert (tmp_path / trials.BEST / "name").read_text() == "0"


class Model:
    stop_training = False


@pytest.mark.parametrize(
    ("alike", "losses", "epochs", "message"),
    [
        ([True, True], [1, 1], 3, "after epoch 2 all answers are alike"),
        ([True] * 4, [1] * 4, 5, "after epoch 4 all answers are alike"),
        ([True, True, False], [1] * 3, 4, ""),
        ([True], [1], 1, "after epoch 1 all answers are alike"),
        ([True, False, True], [1, 1, 1], 4, ""),
        ([], [float("nan")], 3, "the loss of epoch 1 is nan"),
    ],
)
def test_a_run_that_learns_nothing_is_stopped(alike, losses, epochs, message):
    answers = iter(alike)
    watch = DevScores(lambda model: Measured(0.5, {}, next(answers)))
    watch.set_model(Model())
    watch.set_params({"epochs": epochs})
    for epoch, loss in enumerate(losses):
        assert not watch.model.stop_training
        watch.on_epoch_end(epoch, {"loss": loss})
    assert watch.model.stop_training == bool(message)
    assert message in watch.failed
