"""A pipeline on Beam's own runner writes the bytes of `create_instances`.

In a process of its own, for the warnings that Beam gives. It is installed with one
backend, since it takes older versions of packages than TensorFlow does.
"""

import os
import subprocess
import sys

import pytest

from kbert.pretraining.beam_pipeline import create_instances_with_beam
from tests.conftest import PROJECT
from tests.pretraining import toy
from tests.pretraining.toy import SETTINGS, content, create

PROGRAM = """
import sys
from kbert.pretraining.beam_pipeline import create_instances_with_beam
from tests.pretraining.toy import SETTINGS, tokenizer

for _ in range(2):
    report = create_instances_with_beam(
        sys.argv[1], sys.argv[2], tokenizer(), SETTINGS, part_bytes=1 << 13
    )
print(report.instances)
"""


def test_beam_writes_the_same_bytes(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(toy.text(40))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, corpus, tmp_path / "beam"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = create(corpus, tmp_path / "here")
    assert int(done.stdout) == report.instances
    assert content(tmp_path / "beam") == content(tmp_path / "here")


def test_without_beam(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ImportError, match=r"apache-beam.*keras-kbert\[beam\]"):
        create_instances_with_beam("a.txt", tmp_path, toy.tokenizer(), SETTINGS)
