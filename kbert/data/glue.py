"""Files of GLUE's nine tasks and its diagnostics, in the layout of its download.

A folder a task, as https://gluebenchmark.com hands them out: tab-separated, never
quoted, a header everywhere but in CoLA's labelled files. The labels of the test sets
are hidden: they are for predictions alone.
"""

import dataclasses
import math
import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from kbert.data.rows import read_text
from kbert.data.tables import TableReport

HIDDEN = ("test", "test_matched", "test_mismatched", "diagnostic")
"""The splits without labels."""


class GlueTask(NamedTuple):
    """How the files of a task read.

    Args:
        name: as GLUE writes it, also of its folder and of its submission.
        columns: names of the columns with the first and, of pairs, the second text.
        label: name of the column with the label.
        labels: the classes in the order of their numbers; () for a score.
        sizes: {split: its rows as published}, where all editions have as many.
        splits: that there are files of.
        files: {split: names of its file}, where that is not the split with ".tsv".
        unnamed: of files without a header: {split: places of the texts and the label}.
        index: name of the column that numbers the rows of a test set.
    """

    name: str
    columns: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    sizes: dict[str, int] = {}
    splits: tuple[str, ...] = ("train", "dev", "test")
    files: dict[str, tuple[str, ...]] = {}
    unnamed: dict[str, tuple[int, ...]] = {}
    index: str = "index"


_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ("sentence1", "sentence2")
# The order of Google's `run_classifier.py`.
_MNLI = ("contradiction", "entailment", "neutral")
_MATCHED = ("dev_matched", "test_matched")
_MISMATCHED = ("dev_mismatched", "test_mismatched")

TASKS = {
    "cola": GlueTask(
        "CoLA",
        ("sentence",),
        "label",
        _BINARY,
        {"train": 8551, "dev": 1043, "test": 1063},
        unnamed={"train": (3, 1), "dev": (3, 1)},
    ),
    "sst2": GlueTask(
        "SST-2",
        ("sentence",),
        "label",
        _BINARY,
        {"train": 67349, "dev": 872, "test": 1821},
    ),
    "mrpc": GlueTask(
        "MRPC",
        ("#1 String", "#2 String"),
        "Quality",
        _BINARY,
        {"train": 3668, "dev": 408, "test": 1725},
    ),
    "qqp": GlueTask(
        "QQP",
        ("question1", "question2"),
        "is_duplicate",
        _BINARY,
        {"dev": 40430, "test": 390965},
        index="id",
    ),
    "stsb": GlueTask(
        "STS-B",
        _SENTENCES,
        "score",
        (),
        {"train": 5749, "dev": 1500, "test": 1379},
    ),
    "mnli": GlueTask(
        "MNLI",
        _SENTENCES,
        "gold_label",
        _MNLI,
        {
            "train": 392702,
            **dict(zip(_MATCHED, (9815, 9796), strict=True)),
            **dict(zip(_MISMATCHED, (9832, 9847), strict=True)),
        },
        ("train", *_MATCHED, *_MISMATCHED),
    ),
    "qnli": GlueTask("QNLI", ("question", "sentence"), "label", _ENTAILMENT),
    "rte": GlueTask(
        "RTE",
        _SENTENCES,
        "label",
        _ENTAILMENT,
        {"train": 2490, "dev": 277, "test": 3000},
    ),
    "wnli": GlueTask(
        "WNLI",
        _SENTENCES,
        "label",
        _BINARY,
        {"train": 635, "dev": 71, "test": 146},
    ),
    "ax": GlueTask(
        "AX",
        _SENTENCES,
        "",
        _MNLI,
        {"diagnostic": 1104},
        ("diagnostic",),
        {"diagnostic": ("diagnostic.tsv", "AX.tsv")},
    ),
}
"""By kbert's names. "ax" are the diagnostics, answered by a model of "mnli"."""


@dataclasses.dataclass(frozen=True)
class Glue:
    """A split of a task.

    Args:
        task: its entry in `TASKS`.
        split: its name.
        texts: N texts.
        seconds: the N second texts of pairs, or None.
        labels: N names of classes, or N scores, floats; None where they are hidden.
        ids: N names of the rows, which a submission repeats.
        report: what was read and what was skipped.
    """

    task: GlueTask
    split: str
    texts: list[str]
    seconds: list[str] | None
    labels: list[str] | list[float] | None
    ids: list[str]
    report: TableReport

    @property
    def x(self):
        """What `fit`, `evaluate` and `predict` take: texts, or a pair of lists."""
        return self.texts if self.seconds is None else (self.texts, self.seconds)


def find_task(name: str) -> GlueTask:
    """Returns a task by its name, however it is spelled.

    >>> find_task("SST-2").name, find_task("sts_b").name
    ('SST-2', 'STS-B')

    Raises:
        ValueError: if GLUE has no such task.
    """
    key = name.lower().replace("-", "").replace("_", "")
    if key not in TASKS:
        raise ValueError(
            f"A task of GLUE must be one of {sorted(TASKS)}. Received: {name!r}."
        )
    return TASKS[key]


def read_glue(name: str, folder: str | os.PathLike, split: str) -> Glue:
    r"""Reads a split of a task of GLUE.

    Args:
        name: of the task, such as "sst2" or "MNLI".
        folder: of the task's files, or the one that holds it.
        split: "train", "dev" or "test"; of MNLI "dev_matched", "dev_mismatched",
            "test_matched" and "test_mismatched"; of AX "diagnostic".

    Raises:
        FileNotFoundError: if the file is not there.
        ValueError: if GLUE has no such task or the task no such split, the file is not
            UTF-8, lacks a column, or has no row that can be read.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "dev.tsv"
    >>> _ = path.write_text('sentence\tlabel\nit "works\t1\n')
    >>> dev = read_glue("sst2", folder.name, "dev")
    >>> dev.texts, dev.labels
    (['it "works'], ['1'])
    >>> folder.cleanup()
    """
    task = find_task(name)
    if split not in task.splits:
        raise ValueError(
            f"A split of {task.name} must be one of {list(task.splits)}. Received: "
            f"{split!r}."
        )
    path = _find_file(task, pathlib.Path(folder), split)
    content, encoding = read_text(path, may_choose=False)
    rows = [line.removesuffix("\r").split("\t") for line in content.split("\n")]
    header = None if split in task.unnamed else rows.pop(0)
    while rows and rows[-1] == [""]:
        rows.pop()
    places, label_place, index_place = _places(task, split, header, path)
    width = len(header) if header else max(task.unnamed[split]) + 1
    first = 1 if header is None else 2
    kept, skipped = _select(task, rows, width, label_place, first)
    if not kept or (skipped and split in HIDDEN):
        reasons = [f"{len(found):,} where {why}" for why, found in skipped.items()]
        needed = "be whole: each is to be answered" if kept else "be there"
        raise ValueError(
            f"The rows of the {split} set of {task.name} must {needed}. Received: "
            f"{path} with {len(rows):,}; {', '.join(reasons) or 'nothing more'}."
        )
    columns = [[rows[number][place] for number in kept] for place in places]
    labels = None
    if label_place is not None:
        cells = [rows[number][label_place] for number in kept]
        labels = cells if task.labels else [float(cell) for cell in cells]
    ids = [
        str(number) if index_place is None else rows[number][index_place]
        for number in kept
    ]
    notes = _notes(task, split, len(rows))
    report = TableReport(str(path), encoding, len(rows), len(kept), skipped, notes)
    seconds = columns[1] if len(columns) > 1 else None
    return Glue(task, split, columns[0], seconds, labels, ids, report)


def _find_file(task: GlueTask, folder: pathlib.Path, split: str) -> pathlib.Path:
    names = task.files.get(split, (f"{split}.tsv",))
    for path in [folder / name for name in names]:
        for place in (path, folder / task.name / path.name):
            if place.is_file():
                return place
    raise FileNotFoundError(
        f"The {split} set of {task.name} must be {' or '.join(names)} in {folder} or "
        f"in {folder / task.name}, and is in neither. GLUE's files come from "
        "https://gluebenchmark.com/tasks."
    )


def _places(task, split, header, path):
    """Returns the columns of the texts, of the label and of the rows' numbers."""
    if header is None:
        *places, label = task.unnamed[split]
        return places, label, None
    wanted = [*task.columns, *[task.label] * (split not in HIDDEN)]
    missing = [name for name in wanted if header.count(name) != 1]
    if missing:
        raise ValueError(
            f"The {split} set of {task.name} must have the columns {wanted}, once "
            f"each. Received: {path}, whose header is {str(header)[:300]}."
        )
    places = [header.index(name) for name in task.columns]
    label = None if split in HIDDEN else header.index(task.label)
    numbered = split in HIDDEN and task.index in header
    return places, label, header.index(task.index) if numbered else None


def _select(task, rows, width, label, first):
    """Returns which rows can be read, and reason -> numbers of the others."""
    kept: list[int] = []
    skipped: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        reason = None
        if len(row) != width:
            reason = f"the row has not {width} cells"
        elif label is not None:
            reason = _wrong_label(task, row[label])
        if reason is None:
            kept.append(number)
        else:
            skipped.setdefault(reason, []).append(number + first)
    return kept, skipped


def _wrong_label(task: GlueTask, cell: str) -> str | None:
    """Returns why a label cannot be used, None where it can."""
    if task.labels:
        return None if cell in task.labels else f"the label is {cell!r}"
    try:
        score = float(cell)
    except ValueError:
        return f"the score is {cell!r}"
    # Also refuses NaN. The scores run from 0, whatever descriptions say.
    return None if 0 <= score <= 5 else f"the score is {cell!r}, not from 0 to 5"


def _notes(task: GlueTask, split: str, count: int) -> list[str]:
    published = task.sizes.get(split, count)
    if count == published:
        return []
    return [
        f"The {split} set of {task.name} was published with {published:,} rows; this "
        f"file has {count:,}."
    ]


def submission(glue: Glue, predictions: Sequence[str] | Sequence[float]) -> str:
    r"""Returns the file that the leaderboard takes for a test set.

    Args:
        glue: the test set, or the diagnostics.
        predictions: N names of classes; of STS-B N scores, of which those outside of 0
            to 5 are moved there.

    Returns:
        The content of `submission_name(glue)`: a header and a row each, tab-separated.

    Raises:
        ValueError: if there are not N predictions, or one is no answer to the task.
    """
    task = glue.task
    if len(predictions) != len(glue.ids):
        raise ValueError(
            f"Every row of {task.name} needs a prediction. Received: "
            f"{len(predictions)} for {len(glue.ids)} rows."
        )
    lines = ["index\tprediction"]
    for id_, answer in zip(glue.ids, predictions, strict=True):
        known = answer in task.labels if task.labels else math.isfinite(float(answer))
        if not known:
            raise ValueError(
                f"A prediction for {task.name} must be one of "
                f"{list(task.labels) or 'the numbers'}. Received: {answer!r} for the "
                f"row {id_}."
            )
        if not task.labels:
            answer = f"{min(5.0, max(0.0, float(answer))):.3f}"
        lines.append(f"{id_}\t{answer}")
    return "\n".join(lines) + "\n"


def submission_name(glue: Glue) -> str:
    """Returns the name of the leaderboard's file, such as "MNLI-mm.tsv"."""
    ending = {"test_matched": "-m", "test_mismatched": "-mm"}.get(glue.split, "")
    return f"{glue.task.name}{ending}.tsv"
