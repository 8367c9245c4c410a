"""The tables of a run survive a kill amid a line, and lose what is done again."""

import builtins

import pytest

from kbert.pretraining import curves
from kbert.pretraining.curves import CurveTable, draw, open_tensorboard, read_rows


def test_a_table_grows_and_goes_back(tmp_path):
    path = tmp_path / "curve.csv"
    table = CurveTable(path, after=0)
    assert table.rows == [] and not table.has(1)
    for step in (1, 2, 3):
        table.add({"step": step, "loss": step / 7})
    assert path.read_text().splitlines()[0] == "step,loss"
    assert read_rows(path) == [{"step": n, "loss": n / 7} for n in (1, 2, 3)]
    with path.open("a") as file:
        file.write("4,0.5")  # killed amid a line
    again = CurveTable(path, after=2)
    assert again.has(2) and not again.has(3)
    again.add({"step": 3, "loss": 9.0})
    assert [row["loss"] for row in read_rows(path)] == [1 / 7, 2 / 7, 9.0]
    assert [row["step"] for row in CurveTable(path, after=0).rows] == []
    assert read_rows(tmp_path / "nothing.csv") == []


def without(monkeypatch, package):
    imported = builtins.__import__

    def without_it(name, *arguments):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return imported(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_it)


def test_what_is_not_installed(tmp_path, monkeypatch):
    without(monkeypatch, "tensorboardX")
    with pytest.raises(ImportError, match="tensorboardX.*tensorboard = false"):
        open_tensorboard(tmp_path, 0)
    without(monkeypatch, "matplotlib")
    assert draw(tmp_path) is None


def test_a_picture_of_nothing_and_of_something(tmp_path):
    assert draw(tmp_path).stat().st_size > 1000
    table = CurveTable(tmp_path / curves.TRAINING, after=0)
    table.add({"step": 1, "mlm_loss": 3.0, "mlm_accuracy": 0.2})
    first = (tmp_path / curves.PICTURE).read_bytes()
    assert draw(tmp_path).read_bytes() != first
