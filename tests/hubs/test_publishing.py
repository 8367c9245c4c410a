import json
import pathlib
import re

import pytest
import yaml

import kbert
from kbert import presets
from kbert.hubs.model_card import model_card
from tests import tiny
from tests.hubs.conftest import NAME, SPEC, content_of

CONFIG = {
    "num_hidden_layers": 1,
    "hidden_size": 16,
    "architectures": ["BertForSequenceClassification"],
    "problem_type": "single_label_classification",
    "id2label": {"0": "negative", "1": "a|b\n# c"},
}
SETTINGS = {"sequence_length": None, "max_sequence_length": 32, "long_text": "truncate"}
METADATA = {"task": "BertClassifier", "preprocessing": SETTINGS}


def header_of(card: str) -> dict:
    return yaml.safe_load(card.split("---\n")[1])


def test_a_pushed_classifier_loads_from_its_handle(hub, folder):
    task = kbert.BertClassifier.from_preset(SPEC)
    address = task.push_to_hub("me/sentiment", private=True)
    pushed = hub.repositories["me/sentiment"]
    assert address == f"{hub.url}/me/sentiment/commit/{pushed.branches['main']}"
    assert pushed.access == "private"
    files = pushed.commits[pushed.branches["main"]]
    card = files["README.md"].decode()
    assert header_of(card) == {
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "tags": ["bert", "keras", "kbert"],
        "base_model": NAME,
    }
    assert f"Made from {SPEC} at {hub.repositories[NAME].branches['main']}" in card
    loaded = kbert.BertClassifier.from_preset("hf://me/sentiment")
    assert loaded.labels == task.labels
    assert files["model.safetensors"] == content_of(folder)["model.safetensors"]


def test_what_the_card_shows_to_copy_runs(hub):
    task = tiny.classifier()
    task.push_to_hub("me/copied")
    pushed = hub.repositories["me/copied"]
    card = pushed.commits[pushed.branches["main"]]["README.md"].decode()
    program = re.search(r"```python\n(import kbert.*?)```", card, re.DOTALL)[1]
    names = {}
    exec(program, names)
    assert names["model"].labels == task.labels


def test_a_second_push_keeps_the_readme_and_drops_what_contradicts(hub, folder):
    repository = hub.repositories[NAME]
    stale = {"pytorch_model.bin": b"old", "data.txt": b"kept"}
    repository.commit({**content_of(folder), "README.md": b"mine", **stale})
    with pytest.warns(UserWarning, match=f"{NAME} has a README.md, which was left"):
        kbert.BertClassifier.from_preset(folder).push_to_hub(NAME)
    files = repository.commits[repository.branches["main"]]
    assert files["README.md"] == b"mine"
    assert "pytorch_model.bin" not in files
    assert files["data.txt"] == b"kept"


def test_refusals(hub, monkeypatch, offline):
    task = tiny.classifier()
    with pytest.raises(ValueError, match="'organisation/name'.*Received: 'tiny'"):
        task.push_to_hub("tiny")
    assert hub.asked == []
    with pytest.raises(PermissionError, match=r"refuses others/tiny \(403\)"):
        task.push_to_hub("others/tiny")
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(PermissionError, match=r"\(401\); log in with `hf auth login`"):
        task.push_to_hub("me/tiny")
    offline()
    with pytest.raises(ConnectionError, match="cannot be reached"):
        task.push_to_hub("me/tiny")
    task.preprocessor = None
    with pytest.raises(ValueError, match="preprocessor"):
        task.push_to_hub("me/tiny")


def test_the_card_of_a_builtin_presets_child():
    preset = presets.find_preset("bert_base_en_uncased")
    metadata = {**METADATA, "provenance": preset.provenance()}
    card = model_card("me/mine", CONFIG, metadata)
    header = header_of(card)
    assert header["license"] == "apache-2.0"
    assert header["base_model"] == "google-bert/bert-base-uncased"
    assert "Made from bert\\_base\\_en\\_uncased." in card
    assert header_of(model_card("me/mine", CONFIG, METADATA, "MIT"))["license"] == "mit"


def test_labels_are_text_in_the_card():
    card = model_card("me/mine", CONFIG, METADATA)
    assert "| 0 | negative |\n| 1 | a\\|b \\# c |\n" in card
    several = {**CONFIG, "problem_type": "multi_label_classification"}
    assert "Any of these labels:" in model_card("me/mine", several, METADATA)
    number = {**CONFIG, "problem_type": "regression"}
    assert "A number." in model_card("me/mine", number, METADATA)
    assert "not recorded" in card


def test_provenance_is_passed_on(tmp_path, hub):
    kbert.BertClassifier.from_preset(SPEC).save_to_preset(tmp_path / "a")
    kbert.BertClassifier.from_preset(tmp_path / "a").save_to_preset(tmp_path / "b")
    told = [
        json.loads((pathlib.Path(tmp_path) / name / "kbert.json").read_text())
        for name in ("a", "b")
    ]
    commit = hub.repositories[NAME].branches["main"]
    assert told[0]["provenance"] == told[1]["provenance"]
    assert told[0]["provenance"] == {
        "preset": SPEC,
        "revision": commit,
        "repository": NAME,
    }
    tiny.classifier().save_to_preset(tmp_path / "c")
    assert presets.find_preset(tmp_path / "c").metadata()["provenance"] == {}
