"""The exported model answers in a process where kbert and Keras cannot be imported."""

import pathlib
import subprocess
import sys

from tests import tiny

ASK = pathlib.Path(__file__).resolve().parents[2] / "examples/sentiment/ask.py"


def test_ask_prints_a_line_a_sentence(tmp_path):
    classifier = tiny.classifier()
    classifier.export(tmp_path / "saved_model", verbose=False)
    sentences = ["the film was good", "", "bad"]
    command = [sys.executable, "-I", ASK, tmp_path / "saved_model", *sentences]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = classifier.classify(sentences)
    for line, answer, sentence in zip(
        done.stdout.splitlines(), expected, sentences, strict=True
    ):
        assert line == f"{answer.label}  {answer.probability:.3f}  {sentence}"


def test_ask_tells_its_usage():
    done = subprocess.run([sys.executable, ASK], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Usage" in done.stderr
