"""Importing kbert is cheap and brings along nothing that Keras did not."""

import functools
import json
import os
import subprocess
import sys

import pytest

SECONDS_OVER_KERAS = 0.15
TRIES = 3
HEAVY = {
    "apache_beam",
    "huggingface_hub",
    "jax",
    "kagglehub",
    "keras_hub",
    "matplotlib",
    "onnxruntime",
    "pandas",
    "pyarrow",
    "sentencex",
    "sklearn",
    "tensorflow",
    "tensorflow_text",
    "tokenizers",
    "torch",
    "transformers",
    "typer",
    "zstandard",
}


# Seconds of the processor, since the wall clock also counts what others run. Without
# the garbage collector: a walk through all that Keras and torch made, 0.2 s, would fall
# due at some import or other.
PROGRAM = """
import gc, json, sys, time
import keras
gc.disable()
of_keras = set(sys.modules)
start = time.process_time()
import kbert
seconds = time.process_time() - start
print(json.dumps([seconds, sorted(set(sys.modules) - of_keras), sorted(sys.modules)]))
"""


@functools.cache
def imported(attempt: int) -> tuple[float, list[str], list[str]]:
    """A new process's seconds for kbert over Keras, the modules it added, and all.

    The first may have to compile kbert; what it writes serves the next.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(json.loads(done.stdout))


def test_import_brings_nothing_heavy(backend):
    _, added, loaded = imported(0)
    assert "kbert.config" in added
    assert {name.split(".")[0] for name in added} & HEAVY <= {backend}
    assert backend == "tensorflow" or "tensorflow" not in loaded


def test_import_costs_little_over_keras():
    measured = []
    for attempt in range(TRIES):
        measured.append(imported(attempt)[0])
        if measured[-1] <= SECONDS_OVER_KERAS:
            return
    pytest.fail(f"import kbert took {min(measured):.3f} s over import keras at best")
