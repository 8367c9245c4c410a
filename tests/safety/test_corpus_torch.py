"""Hostile preset folders load rightly or are refused, and touch nothing else.

On the backend that builds models fastest: what reads files is the same on all.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import kbert
from tests import tiny
from tests.safety import controls, corpus_files, corpus_formats, corpus_json, judge

CASES = {
    **corpus_files.NAMES,
    **{f"tensors: {name}": case for name, case in corpus_files.TENSORS.items()},
    **{f"pickles: {name}": case for name, case in corpus_files.PICKLES.items()},
    **{f"h5: {name}": case for name, case in corpus_formats.HDF5.items()},
    **{f"flax: {name}": case for name, case in corpus_formats.FLAXES.items()},
    **{f"ckpt: {name}": case for name, case in corpus_formats.CHECKPOINTS.items()},
    **corpus_json.FORMS,
    **corpus_json.CONFIGS,
    **corpus_json.METADATA,
    **corpus_json.TOKENS,
    **corpus_json.VOCABULARIES,
}
# What is wrong with numbers alone, of which inspection reads none.
OF_NUMBERS = ("ckpt: data flipped",)
PROGRAM = pathlib.Path(judge.__file__)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """The folder of all folders; those of the cases are called by their numbers."""
    folder = tmp_path_factory.mktemp("corpus").resolve()
    tiny.classifier().save_to_preset(folder / "outside")
    good = folder / "good"
    shutil.copytree(folder / "outside", good)
    (good / "kbert.json").unlink()  # its hashes would hide what the readers do
    for number, case in enumerate(CASES.values()):
        hostile = folder / f"{number:03d}"
        shutil.copytree(good, hostile)
        case.damage(hostile)
    (good / "link").symlink_to("../outside/vocab.txt")
    return folder


@pytest.fixture(scope="session")
def verdicts(corpus):
    """What the judge says, in one process for all."""
    root = pathlib.Path(kbert.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, PROGRAM, corpus],
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore"},
        cwd=corpus,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    shutil.rmtree(corpus)
    return json.loads(done.stdout)


def test_the_good_folder_loads(verdicts):
    for verdict in verdicts["cases"]["good"].values():
        assert (verdict["outcome"], verdict["faults"]) == ("loaded", [])


@pytest.mark.parametrize("act", controls.ACTS)
def test_the_judge_convicts(act, verdicts):
    faults = verdicts["controls"][act]["faults"]
    assert any(re.search(controls.CONVICTIONS[act], fault) for fault in faults), faults


@pytest.mark.parametrize("name", CASES)
def test_hostile_folder(name, verdicts):
    case = CASES[name]
    number = list(CASES).index(name)
    for loader, verdict in verdicts["cases"][f"{number:03d}"].items():
        assert verdict["faults"] == [], verdict
        if loader == "I":
            continue  # which refuses nothing
        if loader in case.refused_by:
            assert verdict["outcome"] in ("ValueError", "FileNotFoundError"), verdict
            assert re.search(case.told, verdict["message"], re.DOTALL), verdict
        else:
            expected = verdicts["cases"]["good"][loader]["message"]
            assert (verdict["outcome"], verdict["message"]) == ("loaded", expected)


def settled(message):
    """The message without what safetensors picks anew each time: one of two tensors."""
    return message and re.sub("`[^`]*`", "`…`", message)


@pytest.mark.parametrize("name", CASES)
def test_inspection_says_what_loading_says(name, verdicts):
    verdict = verdicts["cases"][f"{list(CASES).index(name):03d}"]
    told = json.loads(verdict["I"]["message"])
    for loader, kind in (("B", "BertBackbone"), ("T", "BertTokenizer")):
        loaded = verdict[loader]["outcome"] == "loaded" or name in OF_NUMBERS
        expected = None if loaded else settled(verdict[loader]["message"])
        assert settled(told[kind]) == expected


def test_names_of_cases_are_distinct():
    parts = (corpus_files.NAMES, corpus_files.TENSORS, corpus_files.PICKLES)
    formats = (
        corpus_formats.HDF5,
        corpus_formats.FLAXES,
        corpus_formats.CHECKPOINTS,
    )
    more = (corpus_json.FORMS, corpus_json.CONFIGS, corpus_json.METADATA)
    rest = (corpus_json.TOKENS, corpus_json.VOCABULARIES)
    assert sum(map(len, (*parts, *formats, *more, *rest))) == len(CASES)
