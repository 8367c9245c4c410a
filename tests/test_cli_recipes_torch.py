"""`kbert finetune glue`, `squad`, `swag` and `ner`, on files in official layouts.

On one backend: what the recipes add to the tasks knows of none.
"""

import json
import random

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

import kbert
from kbert.data.conll import read_conll
from kbert.data.swag import read_swag
from kbert.metrics.glue import glue_scores
from kbert.metrics.tagging import entity_scores
from kbert_cli import trials
from kbert_cli.commands import app
from kbert_cli.grid import Search, Setting, settings_of
from kbert_cli.recipes import DevScores, Measured
from kbert_cli.trials import Outcome
from tests import tiny

pytestmark = pytest.mark.filterwarnings("ignore:The head of", "ignore:.*stay random")

FAST = ("--epochs", 2, "--batch-size", 8, "--learning-rate", 0.02)
SHORT = ("--sequence-length", 16)
SST2 = "sentence\tlabel"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An encoder without a head."""
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("base") / "preset"
    tiny.classifier().save_to_preset(folder)
    return folder


def run(*arguments):
    done = CliRunner().invoke(app, ["finetune", *map(str, arguments)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def tab_separated(path, header, rows):
    lines = [header, *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sst2(folder, count=64):
    texts, labels = tiny.sentiment(count)
    rows = [
        (t, tiny.LABELS.index(label)) for t, label in zip(texts, labels, strict=True)
    ]
    tab_separated(folder / "train.tsv", SST2, rows)
    tab_separated(folder / "dev.tsv", SST2, rows[:16])
    hidden = [(number, text) for number, (text, _) in enumerate(rows[:3])]
    tab_separated(folder / "test.tsv", "index\tsentence", hidden)
    return rows


@pytest.fixture(scope="module")
def glue_run(base, tmp_path_factory):
    data, output = (tmp_path_factory.mktemp(name) for name in ("SST-2", "output"))
    rows = sst2(data)
    done = run(
        *("glue", "sst2", "--data", data, "--preset", base, "--output", output),
        *(*FAST, *SHORT, "--restarts", 2),
    )
    return data, output, rows, done


def test_glue_trains_chooses_and_answers(glue_run):
    _, output, rows, done = glue_run
    assert done.exit_code == 0
    assert "BERT-base 93.5, BERT-large 94.9" in done.stdout
    results = json.loads((output / trials.RESULTS).read_text())
    scores = [outcome["score"] for outcome in results["runs"]]
    assert len(scores) == 2
    assert results["settings"][0]["runs"] == 2
    assert results["settings"][0]["best"] == max(scores)
    assert [len(outcome["history"]) for outcome in results["runs"]] == [2, 2]
    best = kbert.BertClassifier.from_preset(output / trials.BEST)
    logits = best.predict([text for text, _ in rows], verbose=0)
    accuracy = (logits.argmax(axis=1) == [label for _, label in rows])[:16].mean()
    assert accuracy == max(scores)
    lines = (output / "submission" / "SST-2.tsv").read_text().splitlines()
    answers = [f"{number}\t{best}" for number, best in enumerate(logits[:3].argmax(1))]
    assert lines == ["index\tprediction", *answers]


def test_what_is_done_is_not_repeated(glue_run, base, monkeypatch):
    data, output, _, _ = glue_run
    arguments = ("glue", "sst2", "--data", data, "--preset", base, "--output", output)
    before = (output / trials.RESULTS).read_text()
    monkeypatch.setattr(kbert.BertClassifier, "fit", None)  # nobody may call it
    done = run(*arguments, *FAST, *SHORT, "--restarts", 2)
    assert done.exit_code == 0
    assert "Run 2 of 2 is done" in done.stderr
    assert (output / trials.RESULTS).read_text() == before
    done = run(*arguments, *FAST, "--sequence-length", 12)
    assert done.exit_code == 2
    assert "whose runs are of" in done.stderr and "'sequence_length': 16" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("glue", "imdb"), "Received: 'imdb'"),
        (("glue", "ax"), "AX has no training set"),
        (("glue", "rte"), "The train set of RTE must be train.tsv"),
        (("squad",), "The train set must be train-v1.1.json"),
        (("squad", "--version", "2.0"), "train-v2.0.json"),
        (("swag",), "SWAG's training set must be train.csv or train_full.csv"),
        (("ner",), "The training set must be eng.train or"),
    ],
)
def test_data_that_is_not_there(arguments, message, tmp_path):
    output = tmp_path / "output"
    done = run(*arguments, "--data", tmp_path, "--output", output)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not output.exists()


def test_regression(base, tmp_path):
    rows = sst2(tmp_path)
    header = "index\tsentence1\tsentence2\tscore"
    pairs = [(i, text, "it was", 5 * label) for i, (text, label) in enumerate(rows)]
    for split in ("train", "dev"):
        tab_separated(tmp_path / f"{split}.tsv", header, pairs)
    (tmp_path / "test.tsv").unlink()
    output = tmp_path / "output"
    done = run(
        *("glue", "STS-B", "--data", tmp_path, "--preset", base, "--output", output),
        *(*FAST, *SHORT),
    )
    assert done.exit_code == 0
    assert "Nothing is answered for the leaderboard. The test set of" in done.stderr
    (outcome,) = json.loads((output / trials.RESULTS).read_text())["runs"]
    best = kbert.BertClassifier.from_preset(output / trials.BEST)
    firsts, seconds = [[row[n] for row in pairs] for n in (1, 2)]
    logits = best.predict((firsts, seconds), verbose=0)[:, 0]
    expected = glue_scores("STS-B", np.array([row[3] for row in pairs]), logits)
    assert outcome["scores"] == pytest.approx(expected, abs=1e-5)
    assert outcome["score"] == pytest.approx(np.mean(list(expected.values())), abs=1e-5)


def test_squad_finds_its_threshold(base, tmp_path):
    questions, contexts, answers = questions_of(24)
    paragraphs = [
        {
            "context": context,
            "qas": [
                {
                    "id": str(number),
                    "question": question,
                    "is_impossible": not answer,
                    "answers": [
                        {"text": a.text, "answer_start": a.start} for a in answer
                    ],
                }
            ],
        }
        for number, (question, context, answer) in enumerate(
            zip(questions, contexts, answers, strict=True)
        )
    ]
    content = {"version": "v2.0", "data": [{"title": "T", "paragraphs": paragraphs}]}
    for kind in ("train", "dev"):
        (tmp_path / f"{kind}-v2.0.json").write_text(json.dumps(content))
    output = tmp_path / "output"
    done = run(
        *("squad", "--version", "2.0", "--data", tmp_path, "--preset", base),
        *("--output", output, *SHORT, *FAST),
    )
    assert done.exit_code == 0
    (outcome,) = json.loads((output / trials.RESULTS).read_text())["runs"]
    best = kbert.BertQuestionAnswerer.from_preset(output / trials.BEST)
    assert best.null_threshold is not None
    scores = best.evaluate((questions, contexts), answers, verbose=0, return_dict=True)
    assert outcome["scores"]["f1"] == pytest.approx(scores["f1"] / 100)
    assert {"exact_match", "has_answer_f1", "no_answer_f1"} < set(outcome["scores"])
    assert "BERT-large 81.9" in done.stdout and "BERT-base" not in done.stdout


def questions_of(count):
    questions, contexts, answers = tiny.questions(count, impossible=True)
    return (
        questions,
        contexts,
        [each if isinstance(each, list) else [each] for each in answers],
    )


def test_swag(base, tmp_path):
    texts, labels = tiny.sentiment(64)
    good = [t for t, label in zip(texts, labels, strict=True) if label == "positive"]
    bad = [t for t, label in zip(texts, labels, strict=True) if label == "negative"]
    choose = random.Random(0)
    lines = ["sent1,sent2,ending0,ending1,ending2,ending3,label"]
    for number in range(32):
        endings = choose.sample(bad, 4)
        right = choose.randrange(4)
        endings[right] = good[number]
        lines.append(f"we saw it,,{','.join(endings)},{right}")
    for name in ("train.csv", "val.csv"):
        (tmp_path / name).write_text("\n".join(lines))
    output = tmp_path / "output"
    done = run(
        "swag", "--data", tmp_path, "--preset", base, "--output", output, *FAST, *SHORT
    )
    assert done.exit_code == 0
    (outcome,) = json.loads((output / trials.RESULTS).read_text())["runs"]
    best = kbert.BertMultipleChoice.from_preset(output / trials.BEST)
    dev = read_swag(tmp_path / "val.csv")
    found = best.predict((dev.prompts, dev.choices), verbose=0).argmax(axis=1)
    assert outcome["score"] == (found == dev.labels).mean()
    assert "BERT-base 81.6" in done.stdout


def test_ner(base, tmp_path):
    """Every "film" is a work, the file in IOB1."""
    texts, _ = tiny.sentiment(48)
    tags = {"film": "I-WORK"}
    sentences = [
        "\n".join(f"{word} X {tags.get(word, 'O')}" for word in text.split())
        for text in texts
    ]
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (tmp_path / name).write_text("\n\n".join(["-DOCSTART- X O", *sentences]))
    output = tmp_path / "output"
    done = run(
        "ner", "--data", tmp_path, "--preset", base, "--output", output, *FAST, *SHORT
    )
    assert done.exit_code == 0
    (outcome,) = json.loads((output / trials.RESULTS).read_text())["runs"]
    best = kbert.BertTokenClassifier.from_preset(output / trials.BEST)
    assert best.labels == ("O", "B-WORK", "I-WORK")
    dev = read_conll(tmp_path / "eng.testa")
    expected = entity_scores(dev.tags, best.tag_words(dev.words)).overall.f1
    assert outcome["scores"]["f1"] == pytest.approx(expected)
    told = f"The best model on the test set: f1 {100 * outcome['score']:.1f}"
    assert told in done.stdout


# --- settings ----------------------------------------------------------------------


def test_the_settings_of_the_paper():
    chosen = Setting(1e-5, 1, 8, seed=5)
    assert settings_of(chosen, Search.none, 2) == [chosen, chosen._replace(seed=6)]
    rates = [setting.learning_rate for setting in settings_of(chosen, Search.rates, 1)]
    assert rates == [5e-5, 4e-5, 3e-5, 2e-5]
    grid = settings_of(chosen, Search.grid, 1)
    assert len(set(grid)) == 18
    assert {(s.batch_size, s.epochs) for s in grid} == {
        (b, e) for b in (16, 32) for e in (2, 3, 4)
    }


def outcome(score, seed=0, degenerate=""):
    return Outcome(Setting(1e-4, 1, 8, seed), score, {}, [], degenerate, 1.0)


def test_a_failed_run_is_counted_and_not_chosen():
    outcomes = [outcome(0.9, 0, "it failed"), outcome(0.5, 1), outcome(0.7, 2)]
    assert trials.best(outcomes).score == 0.7
    (line,) = trials.summary(outcomes)
    assert (line["runs"], line["failed"]) == (3, 1)
    assert line["mean"] == pytest.approx(0.6)
    assert line["stdev"] == pytest.approx(0.2 / np.sqrt(2))
    assert trials.best(outcomes[:1]).score == 0.9


def test_a_stop_loses_no_run_and_not_the_best_model(tmp_path):
    """The third run is interrupted: the first two stay, and the best of them."""

    class Task:
        def __init__(self, name):
            self.name = name

        def save_to_preset(self, folder):
            folder.mkdir(exist_ok=True)
            (folder / "name").write_text(self.name)

    asked = []

    def running(setting):
        asked.append(setting.seed)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return Task(str(setting.seed)), outcome(1 - setting.seed / 10, setting.seed)

    settings = [Setting(1e-4, 1, 8, seed) for seed in range(4)]
    with pytest.raises(KeyboardInterrupt):
        trials.run_all(settings, running, tmp_path, {"task": "x"})
    outcomes = trials.run_all(settings, running, tmp_path, {"task": "x"})
    assert asked == [0, 1, 2, 2, 3]
    assert [each.setting for each in outcomes] == settings
    assert (tmp_path / trials.BEST / "name").read_text() == "0"


class Model:
    stop_training = False


@pytest.mark.parametrize(
    ("alike", "losses", "epochs", "message"),
    [
        ([True, True], [1, 1], 3, "after epoch 2 all answers are alike"),
        ([True, True, True], [1] * 3, 6, "after epoch 3 all answers are alike"),
        ([True], [1], 1, "after epoch 1 all answers are alike"),
        ([True, False, True], [1, 1, 1], 4, ""),
        ([], [float("nan")], 3, "the loss of epoch 1 is nan"),
    ],
)
def test_a_run_that_learns_nothing_is_stopped(alike, losses, epochs, message):
    answers = iter(alike)
    watch = DevScores(lambda model: Measured(0.5, {}, next(answers)))
    watch.set_model(Model())
    watch.set_params({"epochs": epochs})
    for epoch, loss in enumerate(losses):
        assert not watch.model.stop_training
        watch.on_epoch_end(epoch, {"loss": loss})
    assert watch.model.stop_training == bool(message)
    assert message in watch.failed
