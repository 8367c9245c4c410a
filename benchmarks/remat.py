"""What re-materialisation saves in memory and costs in time, with the same losses.

    .venv-bench/bin/python benchmarks/remat.py [--backends tensorflow,jax,torch]

Trains a BERT of 12 layers for a few steps with dropout 0.1, with `remat` and without,
each in a process of its own, and takes the peak of its resident memory. JAX runs with
the flag of XLA that kbert asks for where it is absent. Exits with 1 if
losses differ by more than 1e-4, or the peak is more than 60 % on a backend. Takes about
five minutes on two cores; writes benchmarks/results/remat.json.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import time

from contestants import BACKENDS, RESULTS, SET
from demo_accuracy import machine

SIZES = {
    "vocabulary_size": 1000,
    "num_layers": 12,
    "num_heads": 8,
    "hidden_dim": 256,
    "intermediate_dim": 1024,
    "max_sequence_length": 256,
}
BATCH, STEPS = 32, 4
LARGEST_SHARE, LARGEST_DIFFERENCE = 0.6, 1e-4
PACKAGES = ("keras", "numpy", "tensorflow", "jax", "torch")


def run_one(remat):
    """Trains; prints losses, seconds of a step and the peak of memory in megabytes."""
    import keras
    import numpy as np

    import kbert

    keras.utils.set_random_seed(0)
    backbone = kbert.BertBackbone(**SIZES, remat=remat)
    model = kbert.BertClassifier(backbone, num_classes=2)
    model.compile(keras.optimizers.SGD(0.01))
    rng = np.random.default_rng(0)
    shape = (BATCH, SIZES["max_sequence_length"])
    ids = rng.integers(0, SIZES["vocabulary_size"], shape).astype("int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    y = ids[:, 0] % 2
    losses, seconds = [], []
    for _ in range(STEPS):
        model.reset_metrics()
        start = time.perf_counter()
        logs = model.train_on_batch(inputs, y, return_dict=True)
        losses.append(float(logs["loss"]))
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps({"losses": losses, "step": min(seconds), "megabytes": peak}),
        flush=True,
    )


def run_in_process(backend, remat):
    command = [sys.executable, __file__, "--one", "remat" if remat else "plain"]
    environment = {**os.environ, **SET, "KERAS_BACKEND": backend}
    environment["XLA_FLAGS"] = "--xla_disable_hlo_passes=cse_barrier_expander"
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--one", choices=("remat", "plain"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one == "remat")
        return 0
    results, missed = {}, []
    for backend in arguments.backends.split(","):
        plain, remat = (run_in_process(backend, wanted) for wanted in (False, True))
        share = remat["megabytes"] / plain["megabytes"]
        pairs = zip(plain["losses"], remat["losses"], strict=True)
        difference = max(abs(one - other) for one, other in pairs)
        results[backend] = {"plain": plain, "remat": remat, "share": share}
        print(
            f"{backend:10}  peak {plain['megabytes']:.0f} -> {remat['megabytes']:.0f} "
            f"MB ({share:.0%}), step {plain['step']:.2f} -> {remat['step']:.2f} s, "
            f"losses differ by {difference:.1e}",
            flush=True,
        )
        if share > LARGEST_SHARE or difference > LARGEST_DIFFERENCE:
            missed.append(backend)
    result = {
        "sizes": {**SIZES, "batch": BATCH},
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "results": results,
    }
    (RESULTS / "remat.json").write_text(json.dumps(result, indent=2) + "\n")
    if missed:
        print(f"Missed on {', '.join(missed)}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
