import lzma
import tomllib

import pytest

documents = pytest.importorskip("documents")
example = pytest.importorskip("pretrain")

from kbert.pretraining.batches import InstanceBatches  # noqa: E402
from kbert.pretraining.run_data import open_phases  # noqa: E402
from kbert.pretraining.run_settings import read_settings  # noqa: E402
from kbert_cli import app  # noqa: E402
from tests.pretraining import toy  # noqa: E402


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt.xz"
    path.write_bytes(lzma.compress(toy.text(120).encode()))
    return path


def test_documents_are_parted_alike_whatever_stands_beside_them(corpus, tmp_path):
    learn, held_out = tmp_path / "learn.txt", tmp_path / "held_out.txt"
    counts = documents.part([str(corpus)], learn, held_out)
    assert counts[0] + counts[2] == 120 and 1 <= counts[2] <= 15
    judged = [each.split("\n") for each in held_out.read_text().split("\n\n")[:-1]]
    assert len(judged) == counts[2]
    assert all(documents.is_held_out(document) for document in judged)
    assert sum(len(" ".join(each).split()) for each in judged) == counts[3]
    other = tmp_path / "other.txt"
    other.write_text("\n\n".join(["Alone.", *("\n".join(d) for d in judged)]))
    assert documents.part([str(other)], learn, held_out)[2] == counts[2]
    assert not documents.is_held_out(["x" * (documents.LONGEST + 1)])


def test_all_of_it_up_to_the_run(corpus, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    commands = []

    def run(*arguments):
        commands.append(arguments[0])
        if arguments[0] != "pretrain":
            arguments = [str(each) for each in arguments]
            assert CliRunner().invoke(app, [*arguments]).exit_code == 0

    monkeypatch.setattr(example, "kbert", run)
    monkeypatch.setattr(example, "SIZE", 150)
    monkeypatch.setattr(example, "COPIES", 1)
    folder = tmp_path / "made"
    example.main(str(folder), str(corpus))
    made = ["instances"] * 6
    assert commands == ["vocabulary", *made, "pretrain"]
    assert InstanceBatches(folder / "held-out-512", 1).settings.masking.most == 77
    settings = read_settings(folder / "kbert_tiny.toml")
    lengths = [phase.sequence_length for phase in open_phases(settings)]
    assert lengths == [32, 128, 512] and settings.output == folder / "run"
    example.main(str(folder), str(corpus))  # what is complete stays
    assert commands[8:] == [*made, "pretrain"]


def test_its_settings_are_those_of_the_shipped_preset():
    content = tomllib.loads((example.HERE / "kbert_tiny.toml").read_text())
    assert content["architecture"]["hidden_dim"] == 128
    with pytest.raises(SystemExit, match="Received no files"):
        example.main("folder")
