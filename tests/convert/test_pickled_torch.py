"""A pickle becomes a preset, once that is asked for."""

import numpy as np
import torch
from typer.testing import CliRunner

import kbert
from kbert.checkpoints import folder as checkpoint
from kbert.tasks import saving
from kbert_cli import app
from tests import random_bert, tiny


def test_a_pickle_becomes_a_preset(tmp_path):
    model = tiny.classifier()
    random_bert.shake(model)
    model.save_to_preset(tmp_path / "model")
    arrays = checkpoint.dump(saving.merged_weights(model))
    content = {name: torch.from_numpy(array) for name, array in arrays.items()}
    for name in ("kbert.json", "model.safetensors"):
        (tmp_path / "model" / name).unlink()
    torch.save(content, tmp_path / "model" / "pytorch_model.bin")

    def run(*arguments):
        arguments = map(str, (*arguments, "--allow-pickle"))
        return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})

    done = run("inspect", tmp_path / "model")
    assert done.exit_code == 0, done.stdout
    assert "BertClassifier: loads" in done.stdout
    target = tmp_path / "preset"
    done = run("convert", tmp_path / "model", target, "--format", "huggingface")
    assert done.exit_code == 0, done.stderr
    again = kbert.BertClassifier.from_preset(target)
    assert again.labels == model.labels
    for name, array in checkpoint.dump(saving.merged_weights(again)).items():
        np.testing.assert_array_equal(array, arrays[name])
