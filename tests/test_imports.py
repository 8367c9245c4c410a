"""Importing kbert is cheap and brings along nothing that Keras did not."""

import re
import subprocess
import sys

import pytest

SECONDS_OVER_KERAS = 0.15
TRIES = 5
HEAVY = {
    "apache_beam",
    "huggingface_hub",
    "jax",
    "keras_hub",
    "matplotlib",
    "onnxruntime",
    "pandas",
    "sklearn",
    "tensorflow",
    "tensorflow_text",
    "tokenizers",
    "torch",
    "transformers",
    "typer",
}


def modules_after(statement: str) -> set[str]:
    """The top names in sys.modules of a new process that ran a statement."""
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def test_import_brings_nothing_heavy(backend):
    of_keras = modules_after("import keras")
    of_kbert = modules_after("import kbert")
    assert (of_kbert - of_keras) & HEAVY == set()
    assert backend == "tensorflow" or "tensorflow" not in of_kbert


def seconds_over_keras() -> float:
    """What `import kbert` costs in a new process over the `import keras` in it."""
    command = [sys.executable, "-X", "importtime", "-c", "import kbert"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times = re.findall(r"import time: +\d+ \| +(\d+) \| +(\S+)", done.stderr)
    microseconds = {name: int(cumulative) for cumulative, name in times}
    of_keras = microseconds.get("keras", 0)  # absent: kbert did not import it
    return (microseconds["kbert"] - of_keras) / 1e6


def test_import_costs_little_over_keras():
    measured = []
    for _ in range(TRIES):
        measured.append(seconds_over_keras())
        if measured[-1] <= SECONDS_OVER_KERAS:
            return
    pytest.fail(f"import kbert took {min(measured):.3f} s over import keras at best")
