"""Export from JAX and torch: the model is built anew on TensorFlow, in a child process.

JAX's own way to a SavedModel emits XlaCallModule, which older servers cannot run and
where a free batch size and length need symbolic shapes; torch has none for TensorFlow.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Arguments: the task's class, its preset, its dtype policy, the folder to write.
_PROGRAM = """
import sys, kbert
task, preset, dtype, folder = sys.argv[1:]
getattr(kbert, task).from_preset(preset, dtype=dtype).export(folder, verbose=False)
"""


def export_in_child(save: Callable, task: str, dtype: str, folder: Path) -> None:
    """Writes a SavedModel through a process that runs Keras on TensorFlow.

    Args:
        save: writes the task's preset into the folder that it is given.
        task: name of the task's class.
        dtype: name of its dtype policy, which a preset does not hold.
        folder: where to, absolute.

    Raises:
        RuntimeError: if the child fails, with what it said.
    """
    with tempfile.TemporaryDirectory() as scratch:
        preset = os.path.join(scratch, "preset")
        save(preset)
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, task, preset, dtype, str(folder)],
            env=_environment(),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode:
        raise RuntimeError(
            "Building the model on TensorFlow, in a process of its own, must succeed. "
            f"Received: exit status {done.returncode} and\n{done.stderr[-4000:]}"
        )


def _environment() -> dict[str, str]:
    """Returns this process's environment with TensorFlow as Keras's backend."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "-1",  # the parent may hold all of the GPU's memory
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    root = Path(__file__).resolve().parents[2]
    if root.name not in ("site-packages", "dist-packages"):  # a bare checkout
        known = [path for path in [environment.get("PYTHONPATH")] if path]
        environment["PYTHONPATH"] = os.pathsep.join([str(root), *known])
    return environment
