"""`kbert finetune glue`, `squad`, `swag` and `ner`, on files in official layouts.

On one backend: what the recipes add to the tasks knows of none.
"""

import json
import random
import shutil

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
from kbert_cli.grid import Setting
from tests import tiny

pytestmark = pytest.mark.filterwarnings("ignore:The head of", "ignore:.*stay random")

FAST = ("--epochs", 8, "--batch-size", 8, "--learning-rate", 0.01)
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
    assert [len(outcome["history"]) for outcome in results["runs"]] == [8, 8]
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


def test_other_data_are_another_run(glue_run, base, tmp_path):
    data, output, rows, _ = glue_run
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        (tmp_path / name).write_bytes((data / name).read_bytes())
    changed = (tmp_path / "train.tsv").read_text().replace("good", "fine")
    (tmp_path / "train.tsv").write_text(changed)
    arguments = ("glue", "sst2", "--data", tmp_path, "--preset", base)
    done = run(*arguments, "--output", output, *FAST, *SHORT)
    assert done.exit_code == 2
    assert "hold runs of the same data" in done.stderr


def test_the_best_of_all_runs_is_named(glue_run, base):
    """Also where this command's run is not it."""
    data, output, _, _ = glue_run
    runs = json.loads((output / trials.RESULTS).read_text())["runs"]
    before = max(runs, key=lambda each: (not each["degenerate"], each["score"]))
    arguments = ("glue", "sst2", "--data", data, "--preset", base, "--output", output)
    settings = ("--epochs", 1, "--batch-size", 32, "--learning-rate", 1e-9)
    done = run(*arguments, *settings, *SHORT)
    assert done.exit_code == 0
    assert f"The best model, of {Setting(**before['setting'])}, is" in done.stderr


def test_damaged_results_and_a_lost_model(glue_run, base, tmp_path):
    data, output, _, _ = glue_run
    copy = tmp_path / "copy"
    shutil.copytree(output, copy)
    arguments = ("glue", "sst2", "--data", data, "--preset", base, "--output", copy)
    shutil.rmtree(copy / trials.BEST)
    done = run(*arguments, *FAST, *SHORT)
    assert done.exit_code == 2 and "is gone. To train it again" in done.stderr
    for content in ("{}", "[]", "null", '{"runs": 5}', "", "{", "[" * 99999):
        (copy / trials.RESULTS).write_text(content)
        done = run(*arguments, *FAST, *SHORT)
        assert done.exit_code == 2
        assert trials.RESULTS in done.stderr
        assert "delete it or name another output" in done.stderr
    assert (copy / trials.RESULTS).read_text() == "[" * 99999  # not lost


def test_what_cannot_be_answered_stops_before_training(base, tmp_path, monkeypatch):
    monkeypatch.setattr(kbert.BertClassifier, "fit", None)  # nobody may call it
    sst2(tmp_path)
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\ta\tb\n")
    arguments = ("glue", "sst2", "--data", tmp_path, "--preset", base)
    done = run(*arguments, "--output", tmp_path / "new", *FAST)
    assert done.exit_code == 2 and "test set of SST-2 must be" in done.stderr
    done = run(*arguments, "--output", tmp_path / "dev.tsv", *FAST)
    assert done.exit_code == 2
    (tmp_path / "test.tsv").unlink()
    done = run(*arguments, "--output", tmp_path / "dev.tsv", *FAST)
    assert done.exit_code == 2 and "dev.tsv, a file" in done.stderr
    done = run(*arguments, "--seed", 2**32 - 1, "--restarts", 2)
    assert done.exit_code == 2 and "2 from 4294967295 on" in done.stderr
    (tmp_path / "train.csv").write_text("sent1,sent2,ending0,ending1,ending2,ending3\n")
    with (tmp_path / "train.csv").open("a") as file:
        file.write("a,b,c,d,e,f\n")
    (tmp_path / "val.csv").write_bytes((tmp_path / "train.csv").read_bytes())
    done = run("swag", "--data", tmp_path, "--preset", base)
    assert done.exit_code == 2 and "train.csv, without" in done.stderr


def test_a_version_of_squad_is_what_its_file_is(base, tmp_path):
    qas = [{"id": "1", "question": "q", "answers": [{"text": "a", "answer_start": 0}]}]
    paragraphs = [{"context": "a b", "qas": qas}]
    content = json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]})
    for kind in ("train", "dev"):
        (tmp_path / f"{kind}-v2.0.json").write_text(content)
    done = run("squad", "--version", "2.0", "--data", tmp_path, "--preset", base)
    assert done.exit_code == 2
    assert (
        "2.0 some, not all, must be without an answer. Received: 0 of 1" in done.stderr
    )


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
    assert "Nothing will be answered for the leaderboard. The test" in done.stderr
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
