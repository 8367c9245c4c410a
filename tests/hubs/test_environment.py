"""Handles in commands, and the variables of huggingface_hub in a new process."""

import json
import os
import pathlib
import subprocess
import sys

from typer.testing import CliRunner

import kbert
from kbert_cli import app
from tests.hubs.conftest import NAME, SPEC, content_of

# kbert without its __init__.py, which would import Keras, for seconds.
PROGRAM = """
import sys, types
package = sys.modules["kbert"] = types.ModuleType("kbert")
package.__path__ = [sys.argv[1]]
from kbert import presets
preset = presets.find_preset(sys.argv[2])
preset.fetch_weights()
print(preset.folder)
"""


def test_variables(hub, tmp_path):
    hub.repositories[NAME].access = "private"  # HF_TOKEN opens it
    home, lock = tmp_path / "home", tmp_path / "lock.json"
    places = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "KBERT_LOCK": str(lock)}
    package = pathlib.Path(kbert.__file__).parent
    command = [sys.executable, "-c", PROGRAM, package, SPEC]

    def run(**more):
        environment = {**os.environ, **places, **more}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    done = run()
    assert done.returncode == 0, done.stderr
    assert pathlib.Path(done.stdout.strip()).is_relative_to(home)
    assert "model.safetensors" in json.loads(lock.read_text())["presets"][SPEC]["files"]
    hub.asked.clear()
    done = run(HF_HUB_OFFLINE="1")
    assert (done.returncode, hub.asked) == (0, [])


def test_commands(hub, folder, tmp_path):
    runner, target = CliRunner(), tmp_path / "converted"
    done = runner.invoke(app, ["tokenize", SPEC, "good films"])
    assert done.exit_code == 0, done.stderr
    assert "##s" in done.stdout
    done = runner.invoke(app, ["convert", SPEC, str(target), "--format", "huggingface"])
    assert done.exit_code == 0, done.stderr
    name = "model.safetensors"
    assert content_of(target)[name] == content_of(folder)[name]
    told = json.loads((target / "kbert.json").read_text())["provenance"]
    assert told["preset"] == SPEC
    done = runner.invoke(app, ["inspect", SPEC], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.stdout
    assert "BertClassifier: loads" in done.stdout
    assert "README.md" not in done.stdout  # which is not fetched
    done = runner.invoke(app, ["tokenize", "hf://kbert/none", "good films"])
    assert done.exit_code == 2
    assert "Error: hf://kbert/none must be a repository that exists" in done.stderr
