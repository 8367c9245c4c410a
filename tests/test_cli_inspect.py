"""`kbert inspect`, on a preset of a BERT that builds in a moment."""

import json

import pytest
from typer.testing import CliRunner

from kbert_cli import app
from tests import tiny


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspected") / "preset"
    tiny.classifier(labels=["no", "[b]yes"]).save_to_preset(folder)
    return folder


def run(*arguments):
    environment = {"COLUMNS": "200"}
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)], env=environment)


def test_what_loads(preset):
    done = run(preset)
    assert done.exit_code == 0, done.stderr
    for words in (
        "a folder of transformers",
        "BertForSequenceClassification",
        "no, [b]yes",
        "tokenizer: lowercase",
        "kbert.json: task",
        "BertTokenizer: loads",
        "BertBackbone: loads",
        "BertClassifier: loads",
        "as saved",
    ):
        assert words in done.stdout
    assert done.stderr == ""


def test_what_does_not_load_says_why(preset, tmp_path):
    config = json.loads((preset / "config.json").read_text())
    for path in preset.iterdir():
        if path.name != "kbert.json":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_size": 18}))
    done = run(tmp_path)
    assert done.exit_code == 1
    assert "BertTokenizer: loads" in done.stdout
    assert "BertBackbone: The tensor" in done.stdout
    assert "must have the shape (24, 18)" in done.stdout


def test_what_is_not_there_does_not_load():
    done = run("no/such/folder")
    assert done.exit_code == 1
    assert "BertBackbone: A preset's folder must exist." in done.stdout
