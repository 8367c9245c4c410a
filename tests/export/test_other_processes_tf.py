"""The SavedModel in processes that have TensorFlow only, and made by other backends."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

import kbert
from tests.export.served import (
    OUTPUTS,
    SECONDS,
    TEXTS,
    ask,
    expect_single_label,
    graph,
    ids,
)

REQUESTS = [
    {"signature": "serving_default", "inputs": {"text": TEXTS[:1]}},
    {"signature": "serving_default", "inputs": {"text": TEXTS}},
    {"signature": "serving_default", "inputs": {"text": [""]}},
    {"signature": "serving_default", "inputs": {"text": ["a good film " * 1667]}},
    {"signature": "pairs", "inputs": {"first": TEXTS, "second": SECONDS}},
    {
        "signature": "ids",
        "inputs": {name: rows.tolist() for name, rows in ids(TEXTS[:3]).items()},
    },
    {"signature": "serving_default", "inputs": {"text": []}},
]


def in_session(python, folder):
    """The answers of the stock session loader in a process that has no kbert."""
    requests = [
        {
            "signature": request["signature"],
            "inputs": {
                name: [v.encode().decode("latin-1") for v in values]
                if name in ("text", "first", "second")
                else values
                for name, values in request["inputs"].items()
            },
        }
        for request in REQUESTS
    ]
    client = pathlib.Path(__file__).with_name("client.py")
    done = subprocess.run(
        [str(python), "-I", str(client), str(folder)],
        input=json.dumps(requests),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expect_all(task, told):
    assert told["strangers"] == []
    *full, empty = told["answers"]
    for request, outputs in zip(REQUESTS[:-1], full, strict=True):
        inputs = request["inputs"]
        if request["signature"] == "ids":
            answers = task.classify(TEXTS[:3])
        elif request["signature"] == "pairs":
            answers = task.classify((inputs["first"], inputs["second"]))
        else:
            answers = task.classify(inputs["text"])
        expect_single_label(outputs, answers)
    assert empty["label"] == empty["probabilities"] == []


def test_session_of_this_tensorflow(task, folder):
    told = in_session(sys.executable, folder)
    assert told["version"] == tf.__version__
    expect_all(task, told)


def test_session_of_the_oldest_tensorflow(task, folder, serving_python):
    told = in_session(serving_python, folder)
    assert told["version"] == "2.15.1"
    expect_all(task, told)


def saved_model_cli(*arguments):
    program = pathlib.Path(sys.executable).with_name("saved_model_cli")
    done = subprocess.run(
        [str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_saved_model_cli_shows_it(folder):
    shown = saved_model_cli("show", "--dir", folder, "--all")
    for name in ("serving_default", "pairs", "ids"):
        assert f"signature_def['{name}']" in shown
    for name in ("text", "first", "second", "token_ids", "segment_ids", "padding_mask"):
        assert f"inputs['{name}']" in shown
    for name in OUTPUTS["single_label"]:
        assert f"outputs['{name}']" in shown


def test_saved_model_cli_runs_it(task, folder):
    expression = "text=['a good film', '']"
    arguments = "--tag_set serve --signature_def serving_default --input_exprs".split()
    ran = saved_model_cli("run", "--dir", folder, *arguments, expression)
    labels = [answer.label for answer in task.classify(["a good film", ""])]
    assert f"[b'{labels[0]}' b'{labels[1]}']" in ran


PROGRAM = """
import dataclasses, json, sys
import keras, kbert
preset, folder, texts = sys.argv[1], sys.argv[2], json.load(sys.stdin)
task = kbert.BertClassifier.from_preset(preset, dtype=sys.argv[3])
task.export(folder, verbose=False)
answers = [dataclasses.asdict(answer) for answer in task.classify(texts)]
loaded = "tensorflow" in sys.modules
json.dump({"backend": keras.backend.backend(), "answers": answers,
           "loaded": loaded}, sys.stdout)
"""


@pytest.mark.parametrize(
    ("other", "dtype"), [("jax", "float32"), ("torch", "mixed_bfloat16")]
)
def test_export_from_another_backend(other, dtype, task, tmp_path, monkeypatch):
    if importlib.util.find_spec(other) is None:
        pytest.skip(f"needs {other} beside TensorFlow, which is absent")
    task.save_to_preset(tmp_path / "preset")
    monkeypatch.setenv("KERAS_BACKEND", other)
    root = pathlib.Path(kbert.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", str(root))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "preset", tmp_path / "model", dtype],
        input=json.dumps(TEXTS),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["backend"] == other
    assert not told["loaded"]
    answers = [kbert.Classification(**answer) for answer in told["answers"]]
    tolerance = 1e-5 if dtype == "float32" else 5e-2
    expect_single_label(ask(tmp_path / "model", text=TEXTS), answers, tolerance)
    stored = "BFLOAT16" in str(graph(tmp_path / "model")).upper()
    assert stored == (dtype != "float32")
