"""A training in numpy that is killed while it writes checkpoints, and goes on.

A script, run by itself: `python killed_writer.py KBERT SCRATCH CALLS TIMES SEED`. It
imports the checkpoints of the package in KBERT without its `__init__.py`, so without
Keras, and forks: each child goes on from the newest checkpoint and kills itself with
SIGKILL before one of the next calls that touch the disk (CALLS of them), or is killed
at a random moment (TIMES). After each the newest checkpoint must be whole, not older
than what was known to be written, and hold what an undisturbed run had at that step.
It prints what happened as JSON.
"""

import json
import os
import pathlib
import random
import signal
import sys
import time
import types

import numpy as np

TOUCH = ("mkdir", "fsync", "rename", "replace", "unlink", "rmdir", "open")
SIZE = 60_000  # numbers a group: a file takes a millisecond to write


def without_keras(package):
    """Let modules of kbert be imported without kbert itself."""
    for name, path in (("kbert", package), ("kbert.training", f"{package}/training")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module


def fresh():
    return np.zeros(SIZE), np.random.default_rng(7)


def advanced(weights, rng):
    """One step, which depends on all steps before and on random numbers."""
    return weights * 0.9 + rng.normal(size=SIZE)


def expected(total):
    """The weights of an undisturbed run after every step."""
    weights, rng = fresh()
    states = [weights]
    for _ in range(total):
        states.append(advanced(states[-1], rng))
    return states


def train(folder, total):
    """Go on from the newest checkpoint to the last step."""
    from kbert.training.checkpoint_folder import CheckpointFolder

    checkpoints = CheckpointFolder(folder, keep=2)
    weights, rng = fresh()
    saved, step = checkpoints.newest(), 0
    if saved is not None:
        step, weights = saved.step, saved.arrays("weights")["w"]
        rng.bit_generator.state = saved.facts["rng"]
    while step < total:
        weights, step = advanced(weights, rng), step + 1
        facts = {"rng": rng.bit_generator.state}
        checkpoints.write(step, {"weights": {"w": weights}}, facts)


def die_before(left):
    """Kill this process before the `left`th call that touches the disk."""

    def counted(call):
        def calling(*arguments, **options):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return calling

    for name in TOUCH:
        setattr(os, name, counted(getattr(os, name)))


def child(folder, total, calls):
    """Fork a process that trains, and dies where it is told to."""
    pid = os.fork()
    if pid == 0:
        if calls:
            die_before(calls)
        train(folder, total)
        os._exit(0)
    return pid


def main(package, scratch, calls, times, seed):
    without_keras(package)
    from kbert.training.checkpoint_folder import CheckpointFolder

    rng, folder, total = random.Random(seed), pathlib.Path(scratch) / "run", 10_000
    states, known, killed, went_on_from = expected(600), 0, 0, set()
    kinds = rng.sample(["call"] * calls + ["time"] * times, calls + times)
    for kind in kinds:
        pid = child(folder, total, rng.randint(1, 40) if kind == "call" else 0)
        if kind == "time":
            time.sleep(rng.uniform(0.002, 0.03))
            os.kill(pid, signal.SIGKILL)
        killed += os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
        saved = CheckpointFolder(folder, keep=2).newest()
        if saved is not None:
            assert saved.step >= known, (saved.step, known)
            known = saved.step
            went_on_from.add(known)
            assert (saved.arrays("weights")["w"] == states[known]).all(), known
    os.waitpid(child(folder, known + 3, 0), 0)
    last = CheckpointFolder(folder, keep=2).newest()
    assert last.step == known + 3
    assert (last.arrays("weights")["w"] == states[known + 3]).all()
    left = sorted(path.name for path in folder.iterdir())
    print(json.dumps({"killed": killed, "from": len(went_on_from), "left": left}))


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
