"""What `kbert finetune glue` does: a task of GLUE, as the paper fine-tunes it."""

import functools
import pathlib

import numpy as np

import kbert
from kbert.data import glue
from kbert.data.glue import Glue
from kbert.metrics.glue import glue_scores
from kbert_cli import paper, trials
from kbert_cli.console import tell
from kbert_cli.grid import Setting
from kbert_cli.recipes import Measured, Recipe, follow, hashes, told

SUBMISSION = "submission"


def finetune(
    name: str,
    data: pathlib.Path,
    preset: str,
    output: pathlib.Path,
    settings: list[Setting],
    sequence_length: int,
) -> None:
    """Trains every setting, chooses on the development set, answers the test sets.

    Args:
        name: of the task.
        data: the folder of its files.
        preset: to start from.
        output: a folder; see `recipes.follow`, and `SUBMISSION`.
        settings: to try.
        sequence_length: most tokens of a text or pair.
    """
    task = glue.find_task(name)
    if not task.label:
        raise ValueError(
            f"{task.name} has no training set: its rows are answered by the model of "
            f"MNLI, when that is fine-tuned. Received: {name!r}."
        )
    splits = [split for split in task.splits if split not in glue.HIDDEN]
    train, *devs = (told(glue.read_glue(name, data, split)) for split in splits)
    tests = _read_hidden(task, data)
    if (output / SUBMISSION).is_file():
        raise ValueError(
            f"Answers are written into a folder. Received: {output / SUBMISSION}, a "
            "file."
        )
    build = functools.partial(
        kbert.BertClassifier.from_preset,
        preset,
        labels=list(task.labels) or None,
        problem="single_label" if task.labels else "regression",
        sequence_length=sequence_length,
    )
    described = {
        "task": task.name,
        "preset": preset,
        "sequence_length": sequence_length,
        "files": hashes(train.report, *(dev.report for dev in devs)),
    }
    recipe = Recipe(
        f"{task.name}, development set",
        described,
        build,
        train.x,
        train.labels,
        functools.partial(_measure, devs),
        paper.GLUE.get(task.name, []),
    )
    follow(recipe, settings, output)
    _answer(tests, output)


def _measure(devs: list[Glue], classifier) -> Measured:
    """Scores a classifier on the development set, of MNLI on both."""
    scores, alike = {}, False
    for number, dev in enumerate(devs):
        logits = classifier.predict(dev.x, verbose=0)
        found = _scores(dev, logits)
        if number == 0:
            score, alike = float(np.mean(list(found.values()))), _all_alike(logits)
        ending = dev.split.removeprefix("dev")
        scores |= {f"{key}{ending}": value for key, value in found.items()}
    return Measured(score, scores, alike)


def _scores(dev: Glue, logits: np.ndarray) -> dict[str, float]:
    """Returns the official scores of logits (N, C)."""
    labels = dev.labels or []
    if not dev.task.labels:
        return glue_scores(dev.task.name, np.asarray(labels), logits[:, 0])
    truth = np.array([dev.task.labels.index(str(label)) for label in labels])
    return glue_scores(dev.task.name, truth, logits.argmax(axis=1))


def _all_alike(logits: np.ndarray) -> bool:
    """Returns whether logits (N, C) answer every text with one class, or number."""
    if logits.shape[1] > 1:
        return len(np.unique(logits.argmax(axis=1))) == 1 < len(logits)
    return float(np.ptp(logits)) < 1e-3


def _read_hidden(task: glue.GlueTask, data: pathlib.Path) -> list[Glue]:
    """Returns the test sets that are there, before any training."""
    hidden = [(task.name, split) for split in task.splits if split in glue.HIDDEN]
    if task.name == "MNLI":
        hidden.append(("AX", "diagnostic"))
    found = []
    for name, split in hidden:
        try:
            found.append(told(glue.read_glue(name, data, split)))
        except FileNotFoundError as error:
            tell(f"Nothing will be answered for the leaderboard. {error}")
    return found


def _answer(tests: list[Glue], output: pathlib.Path) -> None:
    """Writes what the leaderboard takes."""
    classifier = kbert.BertClassifier.from_preset(output / trials.BEST)
    for test in tests:
        logits = classifier.predict(test.x, verbose=0)
        answers = logits[:, 0].tolist()
        if test.task.labels:
            answers = [test.task.labels[index] for index in logits.argmax(axis=1)]
        path = output / SUBMISSION / glue.submission_name(test)
        path.parent.mkdir(exist_ok=True)
        path.write_text(glue.submission(test, answers), encoding="utf-8")
        tell(f"Wrote {path}.")
