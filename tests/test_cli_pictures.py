"""Pictures of a training, where matplotlib is, and none where it is not."""

import importlib.util
import sys

import numpy as np

from kbert_cli import pictures
from kbert_cli.training import _confusion

HISTORY = {"loss": [0.7, 0.5], "val_loss": [0.6, 0.4], "accuracy": [0.5, 0.9]}
if importlib.util.find_spec("matplotlib") is not None:
    import matplotlib.pyplot as plt

    def test_what_is_drawn(tmp_path, monkeypatch):
        figures = []
        monkeypatch.setattr(plt, "close", figures.append)  # to look at it
        path = tmp_path / "training.png"
        confusion = np.array([[5, 1], [2, 9]])
        assert pictures.draw_training(path, HISTORY, confusion, ["bad", "good"])
        assert path.read_bytes().startswith(b"\x89PNG")
        curve, matrix = figures[0].axes
        lines = {line.get_label(): line.get_ydata() for line in curve.lines}
        assert {name: list(values) for name, values in lines.items()} == {
            "training": HISTORY["loss"],
            "held out": HISTORY["val_loss"],
        }
        assert [text.get_text() for text in matrix.texts] == ["5", "1", "2", "9"]
        names = [label.get_text() for label in matrix.get_yticklabels()]
        assert names == ["bad", "good"]

    def test_many_classes_have_no_matrix(tmp_path, monkeypatch):
        figures = []
        monkeypatch.setattr(plt, "close", figures.append)
        many = np.eye(41, dtype=int)
        assert pictures.draw_training(tmp_path / "x.png", HISTORY, many, ["x"] * 41)
        assert len(figures[0].axes) == 1


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not pictures.draw_training(tmp_path / "x.png", HISTORY)
    assert not (tmp_path / "x.png").exists()


def test_the_matrix_counts_truth_by_answer():
    logits = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert _confusion(np.array([0, 0, 1, 1]), logits).tolist() == [[1, 1], [1, 1]]
    assert _confusion(np.array([0, 0, 0, 1]), logits).tolist() == [[1, 2], [1, 0]]
