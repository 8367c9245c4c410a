"""A module imports from lower rows; TensorFlow lazily in few; private Keras never."""

import re

import pytest

from tests import house


def test_kbert_keeps_the_rule():
    assert house.violations() == []


def test_every_room_stands_in_one_row():
    rooms = {house.room_of(module) for module in house.sources()} - {house.ROOT}
    in_rows = [room for row in house.ROWS for room in row]
    assert rooms <= set(in_rows)
    assert len(in_rows) == len(set(in_rows))


# Each: the module, its source, and the words of the complaint (none where allowed).
CASES = {
    "upwards": ("layers/heads.py", "from kbert.tasks import base", "row 5 may not"),
    "same row": ("layers/heads.py", "import kbert.training", "row 5 may not .* row 5"),
    "same room": ("layers/heads.py", "from kbert.layers import attention", None),
    "downwards": ("tasks/base.py", "from kbert import config", None),
    "relative": ("config.py", "from . import convert", "row 2 may not .* row 8"),
    "two dots": ("layers/heads.py", "from ..tasks.base import X", "row 5 may not"),
    "inside of a function": (
        "config.py",
        "def f():\n    from kbert.tokenization.wordpiece import W",
        "row 2 may not import from row 3",
    ),
    "the whole": ("tasks/base.py", "import kbert", "only the commands"),
    "a name of the whole": ("tasks/base.py", "from kbert import Bert", "only the comm"),
    "the commands": ("tasks/base.py", "import kbert_cli", "not among the packages"),
    "no row": ("utils.py", "import kbert.config", "utils stands in no row"),
    "tensorflow": (
        "layers/heads.py",
        "def f():\n    import tensorflow as tf",
        "only these may",
    ),
    "tensorflow at once": (
        "tokenization/in_graph.py",
        "import tensorflow as tf",
        "inside of a function",
    ),
    "tensorflow lazily": (
        "tokenization/in_graph.py",
        "def f():\n    import tensorflow as tf",
        None,
    ),
    "tensorflow for checkers": (
        "export/saved_model.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tensorflow",
        None,
    ),
    "jax": ("layers/heads.py", "def f():\n    import jax.numpy", "nowhere"),
    "torch by name": (
        "layers/heads.py",
        "import importlib\ndef f():\n    importlib.import_module('torch.nn')",
        "nowhere",
    ),
    "keras_hub": ("convert.py", "def f():\n    import keras_hub", "nowhere"),
    "private Keras": ("backbone.py", "from keras.src import backend", "nowhere"),
    "private Keras as a name": ("backbone.py", "from keras import src", "nowhere"),
    "private Keras by dots": (
        "backbone.py",
        "import keras\nx = keras.src.backend",
        "nowhere",
    ),
    "Keras below": ("tokenization/wordpiece.py", "import keras", "do without Keras"),
    "hub at once": ("presets.py", "import huggingface_hub", "inside of a function"),
    "hub lazily": ("presets.py", "def f():\n    import huggingface_hub", None),
    "typer": ("tasks/base.py", "import typer", "not among the packages"),
    "unknown": ("config.py", "import requests", "not among the packages"),
}


@pytest.mark.parametrize("case", CASES)
def test_planted_violation_is_found(case, tmp_path):
    file, source, complaint = CASES[case]
    package = tmp_path / "kbert"
    rooms = ["config", "presets", "backbone", "convert"]
    for name in ["__init__", *rooms, "tasks/base", "layers/heads", "layers/attention"]:
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    for name in ["tasks", "layers", "training", "tokenization"]:
        (package / name).mkdir(exist_ok=True)
        (package / name / "__init__.py").write_text("")
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(source)
    told = house.violations(package)
    if complaint is None:
        assert told == []
    else:
        assert len(told) == 1
        assert re.search(complaint, told[0])
