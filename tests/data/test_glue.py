"""The readers of GLUE's files: every task's layout, quotation marks, hidden labels."""

import csv
import io

import pytest

from kbert.data import glue

HEADERS = {
    "sst2": ("sentence\tlabel", "index\tsentence"),
    "mrpc": (
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String",
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "id\tquestion1\tquestion2",
    ),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1"
        "\tsentence2\tscore",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1"
        "\tsentence2",
    ),
    "qnli": ("index\tquestion\tsentence\tlabel", "index\tquestion\tsentence"),
    "rte": ("index\tsentence1\tsentence2\tlabel", "index\tsentence1\tsentence2"),
    "wnli": ("index\tsentence1\tsentence2\tlabel", "index\tsentence1\tsentence2"),
}
PARSES = "\t".join(
    f"sentence{number}_{kind}"
    for kind in ("binary_parse", "parse")
    for number in (1, 2)
)
MNLI = f"index\tpromptID\tpairID\tgenre\t{PARSES}\tsentence1\tsentence2"


def written(folder, name, header, *rows):
    """Writes a file whose rows name the columns that they fill."""
    columns = header.split("\t")
    lines = ["\t".join(row.get(column, "?") for column in columns) for row in rows]
    (folder / name).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return folder


def row_of(task, label, number=0):
    """Cells of a row of a task, by column."""
    cells = {column: f"{column} of {number}" for column in task.columns}
    return {**cells, task.label: label, task.index: str(number)}


@pytest.mark.parametrize("name", HEADERS)
def test_tasks_with_named_columns(tmp_path, name):
    task = glue.find_task(name)
    labels = task.labels or ("0.0", "4.75")
    rows = [row_of(task, label, number) for number, label in enumerate(labels)]
    written(tmp_path, "dev.tsv", HEADERS[name][0], *rows)
    dev = glue.read_glue(name, tmp_path, "dev")
    assert dev.texts == [f"{task.columns[0]} of {number}" for number in (0, 1)]
    assert dev.labels == (list(labels) if task.labels else [0.0, 4.75])
    if len(task.columns) == 2:
        assert dev.x == (dev.texts, [f"{task.columns[1]} of {n}" for n in (0, 1)])
    else:
        assert dev.x == dev.texts and dev.seconds is None
    written(tmp_path, "test.tsv", HEADERS[name][1], *rows)
    test = glue.read_glue(name, tmp_path, "test")
    assert test.labels is None
    assert test.x == dev.x
    assert test.ids == ["0", "1"]


def test_mnli_has_two_of_each(tmp_path):
    folder = tmp_path / "MNLI"
    folder.mkdir()
    task = glue.find_task("mnli")
    votes = "\t".join(f"label{number}" for number in range(1, 6))
    for split in ("dev_matched", "dev_mismatched"):
        rows = [row_of(task, label) for label in ("neutral", "-", "contradiction")]
        written(folder, f"{split}.tsv", f"{MNLI}\t{votes}\tgold_label", *rows)
    read = glue.read_glue("MNLI", tmp_path, "dev_mismatched")
    assert read.labels == ["neutral", "contradiction"]
    assert read.report.skipped == {"the label is '-'": [3]}
    assert "published with 9,832 rows; this file has 3" in read.report.lines()[-1]
    assert task.labels == ("contradiction", "entailment", "neutral")
    with pytest.raises(ValueError, match="dev_mismatched.*Received: 'dev'"):
        glue.read_glue("mnli", tmp_path, "dev")


def test_cola_has_no_header_but_in_its_test_set(tmp_path):
    lines = ["gj04\t1\t\tThe sailors rode.", 'bc01\t0\t*\tA "quoted one.']
    (tmp_path / "train.tsv").write_text("\n".join(lines), "utf-8")
    train = glue.read_glue("cola", tmp_path, "train")
    assert train.texts == ["The sailors rode.", 'A "quoted one.']
    assert train.labels == ["1", "0"]
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tBill left.\n", "utf-8")
    assert glue.read_glue("cola", tmp_path, "test").texts == ["Bill left."]


def test_diagnostics(tmp_path):
    header = "index\tsentence1\tsentence2"
    row = {"index": "7", "sentence1": "a", "sentence2": "b"}
    for name in ("AX.tsv", "diagnostic.tsv"):
        written(tmp_path, name, header, row)
        read = glue.read_glue("ax", tmp_path, "diagnostic")
        assert (read.x, read.ids, read.labels) == ((["a"], ["b"]), ["7"], None)


def test_quotation_marks_are_characters(tmp_path):
    """Python's csv reads the two rows as one."""
    content = 'sentence\tlabel\n"an open one\t0\nand a" closing one\t1\n'
    assert len(list(csv.reader(io.StringIO(content), delimiter="\t"))) == 2
    (tmp_path / "dev.tsv").write_text(content, "utf-8")
    read = glue.read_glue("sst2", tmp_path, "dev")
    assert read.texts == ['"an open one', 'and a" closing one']


def test_line_ends_and_marks(tmp_path):
    """A BOM, CRLF, and characters at which Python's `splitlines` breaks."""
    text = "a\u2028b\x0bc\x85d"
    content = f"\ufeffsentence\tlabel\r\n{text}\t1\r\n\r\n"
    (tmp_path / "train.tsv").write_bytes(content.encode())
    read = glue.read_glue("sst2", tmp_path, "train")
    assert (read.texts, read.labels) == ([text], ["1"])


def test_rows_that_cannot_be_read_are_told(tmp_path):
    header = HEADERS["qqp"][0]
    content = f"{header}\n1\t2\t3\ta\tb\t1\n1\t2\t3\ta\n1\t2\t3\ta\tb\tyes\n"
    (tmp_path / "train.tsv").write_text(content, "utf-8")
    read = glue.read_glue("qqp", tmp_path, "train")
    assert read.report.lines() == [
        f"{tmp_path / 'train.tsv'}: 1 of 3 rows read.",
        "Skipped 1: the row has not 6 cells (row 3).",
        "Skipped 1: the label is 'yes' (row 4).",
    ]


@pytest.mark.parametrize("score", ["-0.1", "5.1", "nan", "", "five"])
def test_scores_out_of_range(tmp_path, score):
    task = glue.find_task("stsb")
    rows = [row_of(task, "5.000"), row_of(task, score)]
    written(tmp_path, "dev.tsv", HEADERS["stsb"][0], *rows)
    read = glue.read_glue("STS-B", tmp_path, "dev")
    assert read.labels == [5.0]
    (reason,) = read.report.skipped
    assert repr(score) in reason


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Received: 'imdb'"):
        glue.find_task("imdb")
    with pytest.raises(FileNotFoundError, match="dev.tsv in .* or in .*RTE"):
        glue.read_glue("rte", tmp_path, "dev")
    (tmp_path / "dev.tsv").write_text("index\tsentence1\tlabel\n", "utf-8")
    with pytest.raises(ValueError, match=r"sentence2.*header is \['index', 'sen"):
        glue.read_glue("rte", tmp_path, "dev")
    written(tmp_path, "dev.tsv", HEADERS["rte"][0])
    with pytest.raises(ValueError, match="must be there.* with 0; nothing more"):
        glue.read_glue("rte", tmp_path, "dev")
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\ta\n1\tb\tc\n", "utf-8")
    with pytest.raises(
        ValueError, match="must be whole.* 2; 1 where the row has not 2"
    ):
        glue.read_glue("sst2", tmp_path, "test")


def test_submission(tmp_path):
    header = f"{MNLI}\n"
    rows = ["\t".join([str(number), *"?" * 7, "a", "b"]) for number in (0, 1)]
    for split in ("test_matched", "test_mismatched"):
        (tmp_path / f"{split}.tsv").write_text(header + "\n".join(rows), "utf-8")
    read = glue.read_glue("mnli", tmp_path, "test_mismatched")
    assert glue.submission_name(read) == "MNLI-mm.tsv"
    content = glue.submission(read, ["neutral", "entailment"])
    assert content == "index\tprediction\n0\tneutral\n1\tentailment\n"
    with pytest.raises(ValueError, match="Received: 1 for 2 rows"):
        glue.submission(read, ["neutral"])
    with pytest.raises(ValueError, match="Received: 'maybe' for the row 1"):
        glue.submission(read, ["neutral", "maybe"])


def test_submission_of_scores(tmp_path):
    rows = [row_of(glue.find_task("stsb"), "", number) for number in range(3)]
    written(tmp_path, "test.tsv", HEADERS["stsb"][1], *rows)
    read = glue.read_glue("stsb", tmp_path, "test")
    assert glue.submission_name(read) == "STS-B.tsv"
    content = glue.submission(read, [-0.3, 2.5, 5.2])
    assert content == "index\tprediction\n0\t0.000\n1\t2.500\n2\t5.000\n"
    with pytest.raises(ValueError, match="Received: nan for the row 1"):
        glue.submission(read, [1.0, float("nan"), 1.0])


def test_real_cola(shared, tmp_path):
    """The corpus's own files, whose two dev sets make up GLUE's."""
    parts = [
        shared / "data/cola" / f"{part}_dev.tsv"
        for part in ("in_domain", "out_of_domain")
    ]
    content = "".join(part.read_text("utf-8") for part in parts)
    (tmp_path / "dev.tsv").write_text(content, "utf-8")
    read = glue.read_glue("cola", tmp_path, "dev")
    assert len(read.texts) == 1043
    assert not read.report.skipped and not read.report.notes
