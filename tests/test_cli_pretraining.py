"""The commands `kbert vocabulary`, `kbert instances` and `kbert pretrain`."""

import json
import signal

import keras
import pytest

import kbert
from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining.batches import InstanceBatches
from kbert.pretraining.recording import Progress
from kbert_cli import pretrain_run
from tests.pretraining import toy
from tests.test_cli import failed, run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(toy.text(30))
    return path


@pytest.fixture(scope="module")
def vocabulary(corpus):
    path = corpus.parent / "vocab" / "vocab.txt"
    done = run("vocabulary", corpus, "--size", 250, "--out", path, "--unused", 2)
    assert done.exit_code == 0, done.stderr
    assert "Read 30 documents." in done.stderr
    assert "Learnt 250 pieces with " in done.stderr and f"Wrote {path}." in done.stderr
    return path


def test_a_vocabulary_is_learnt(corpus, vocabulary):
    tokenizer = kbert.BertTokenizer(vocabulary)
    assert tokenizer.vocabulary[:4] == ("[PAD]", "[unused0]", "[unused1]", "[UNK]")
    assert tokenizer.vocabulary_size == 250
    line = failed("vocabulary", corpus, "--out", vocabulary)
    assert "must be new" in line
    done = run(
        "vocabulary", corpus, "--out", vocabulary.parent / "large", "--size", 9999
    )
    assert "fewer than 9,999 were found" in done.stderr


def test_instances_are_made(corpus, vocabulary, tmp_path):
    command = (
        *("instances", corpus, "--vocab", vocabulary, "--out", tmp_path / "made"),
        *("--sequence-length", 64, "--dupe-factor", 1, "--workers", 1, "--seed", 7),
        *("--next-sentence", "order", "--whole-words", "--ngrams", 2),
        *("--short-seq-prob", 0.2, "--masked-lm-prob", 0.2, "--dynamic-masks"),
    )
    done = run(*command)
    assert done.exit_code == 0, done.stderr
    assert "instances of " in done.stderr and "of class 1." in done.stderr
    batches = InstanceBatches(tmp_path / "made", 4)
    settings = batches.settings
    assert settings.masking == MaskingRule(0.2, 13, whole_words=True, ngrams=2)
    told = json.loads((tmp_path / "made" / "plan.json").read_text())["settings"]
    assert (settings.next_sentence, settings.static_masks) == ("order", False)
    assert (told["seed"], told["dupe_factor"], told["short_seq_prob"]) == (7, 1, 0.2)
    assert batches[0][0]["token_ids"].shape == (4, 64)
    assert run(*command).exit_code == 0  # all is there
    assert "has other settings" in failed(*command, "--seed", 8)


def test_json_lines_of_a_preset(tmp_path):
    path = tmp_path / "corpus.jsonl"
    record = json.dumps({"body": "He came. She saw it.\nThey left. It ended."})
    path.write_text(f"{record}\n" * 4)
    done = run(
        *("instances", path, "--field", "body", "--vocab", "bert_base_en_uncased"),
        *("--out", tmp_path / "made", "--workers", 1, "--max-predictions", 3),
    )
    assert done.exit_code == 0, done.stderr
    assert "4 documents of 16 sentences" in done.stderr
    rule = InstanceBatches(tmp_path / "made", 1).settings.masking
    assert rule == MaskingRule(most=3)


def test_bad_input(corpus, tmp_path):
    out = ("--out", tmp_path / "made")
    line = failed("instances", corpus, "--vocab", "nothing", *out)
    assert "must be a vocab.txt or a preset. Received: nothing" in line
    line = failed(
        "instances", corpus, "--vocab", "bert_base_en_uncased", "--cased", *out
    )
    assert "--cased goes with a vocab.txt" in line
    line = failed("instances", tmp_path / "no*", "--vocab", "bert_base_zh", *out)
    assert "names no file" in line
    line = failed("vocabulary", corpus, "--size", 3, *out)
    assert "Received: size=3" in line


CONFIG = """
output = "run"
steps = 9_000
[[phases]]
instances = "made"
"""
SHOWN = Progress(1200, 9000, 128, {"loss": 7.5, "mlm_accuracy": 0.1}, 5432.1, 75.2)
LINE = "length 128, loss 7.500, mlm accuracy 0.100, 5,432 tokens/s, 0:01:15 left"


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Settings of a run that tells where it stands, and ends as it is asked to."""
    path, ended = tmp_path / "run.toml", []
    path.write_text(CONFIG)

    def run_once(settings, *, tell, progress):
        assert settings.phases[0].instances == tmp_path / "made"
        tell("Begins.")
        for _ in range(3):
            progress(SHOWN)
        return ended.pop() if ended else None

    monkeypatch.setattr(pretrain_run, "run", run_once)
    return path, ended


@pytest.mark.parametrize(
    ("number", "status"), [(None, 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_how_a_run_ends(config, number, status):
    path, ended = config
    ended.append(number)
    done = run("pretrain", path, "--backend", keras.config.backend())
    assert done.exit_code == status
    assert done.stderr.splitlines() == ["Begins.", f"step 1,200/9,000 {LINE}"]


def test_a_terminal_shows_a_bar(config, monkeypatch):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("COLUMNS", "150")
    done = run("pretrain", config[0])
    assert done.exit_code == 0 and "Begins." in done.stderr
    assert "1200/9000" in done.stderr and LINE in done.stderr


def test_bad_settings(tmp_path):
    assert "which is no file" in failed("pretrain", tmp_path / "run.toml")
    (tmp_path / "run.toml").write_text(CONFIG)
    assert "must have instances.json" in failed("pretrain", tmp_path / "run.toml")
