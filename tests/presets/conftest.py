"""A preset that kbert saved."""

import pytest

from kbert import presets

FILES = {"config.json": b'{"vocab_size": 5}', "model.safetensors": b"weights"}


@pytest.fixture
def saved(tmp_path):
    """A preset that kbert saved."""
    presets.write_preset(tmp_path / "model", FILES, {"task": "BertClassifier"})
    return presets.find_preset(tmp_path / "model")
