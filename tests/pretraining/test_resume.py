"""Fifty SIGKILLs at random steps, and the same bits: `pytest -m resume`."""

import multiprocessing
import random
import signal

import pytest

from kbert.pretraining.run import pretrain
from kbert.training.checkpoint_folder import CheckpointFolder
from tests.pretraining import runs

KILLS, STEPS = 50, 150


def long_run(root, output):
    return runs.settings_of(
        root, output, steps=STEPS, log_every=5, evaluate_every=50, checkpoint_every=3
    )


@pytest.mark.resume
def test_fifty_kills_at_random_steps(tmp_path):
    root = runs.make_instances(tmp_path)
    assert pretrain(long_run(root, root / "undisturbed")) is None
    settings = long_run(root, root / "killed")
    # Children of one process that has imported all, and has computed nothing.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.pretraining.runs"])
    rng, went_on_from = random.Random(0), []
    for _ in range(KILLS):
        newest = CheckpointFolder(settings.output / "checkpoints").newest()
        done = newest.step // settings.accumulation if newest else 0
        went_on_from.append(done)
        # On the whole forward: by up to five steps, of which three are saved.
        step = min(done + rng.randint(1, 5), STEPS - 1)
        child = context.Process(target=runs.run_and_die, args=(settings, step))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
    assert len(set(went_on_from)) > 20
    assert pretrain(settings) is None
    found, expected = runs.outcome(settings.output), runs.outcome(root / "undisturbed")
    assert found == expected
