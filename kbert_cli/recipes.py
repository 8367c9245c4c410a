"""What the recipes of `kbert finetune` share: train, score, choose, tell."""

import dataclasses
import functools
import math
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import rich.table
import rich.text

from kbert.files import sha256
from kbert_cli import trials
from kbert_cli.console import out, tell
from kbert_cli.grid import Setting
from kbert_cli.paper import Row
from kbert_cli.trials import Outcome


class Measured(NamedTuple):
    """What a model reaches on held-out data.

    Args:
        score: the one that runs are chosen by, at most 1.
        scores: the official ones, at most 1, by name.
        alike: whether it answers everything alike, as a model that learned nothing.
    """

    score: float
    scores: dict[str, float]
    alike: bool = False


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A task of the paper, with its data.

    Args:
        title: names task and data.
        described: what the results depend on beside the setting, for JSON.
        build: returns the task with a new head.
        x: what `fit` takes.
        y: the same.
        measure: scores the task on the development set.
        paper: what the paper reports.
        finish: called with the task at the end of a run, which is scored anew then.
    """

    title: str
    described: dict[str, Any]
    build: Callable[[], Any]
    x: Any
    y: Any
    measure: Callable[[Any], Measured]
    paper: list[Row]
    finish: Callable[[Any], None] | None = None


class DevScores(keras.callbacks.Callback):
    """Scores the development set after every epoch.

    Fine-tuning sometimes stays where it began, on small data with a large model above
    all (section 4.1 restarts it): everything is answered alike. A run that does so
    for all epochs but one in a row, and at least two, or after its last, has failed,
    and is stopped.

    Args:
        measure: function of the model to `Measured`.

    Attributes:
        history: what was measured after each epoch.
        failed: why the run has failed; "" where it has not.
    """

    def __init__(self, measure: Callable[[Any], Measured]):
        super().__init__()
        self.measure = measure
        self.history: list[Measured] = []
        self.failed = ""
        self._alike = 0  # epochs in a row

    def on_epoch_end(self, epoch, logs=None):
        """Scores, and stops a run that has failed."""
        loss = (logs or {}).get("loss", 0.0)
        if not math.isfinite(loss):
            self.failed = f"the loss of epoch {epoch + 1} is {loss}."
        else:
            self.history.append(self.measure(self.model))
            self._alike = self._alike + 1 if self.history[-1].alike else 0
            epochs = self.params["epochs"]
            patience = max(2, epochs - 1)
            if self._alike == patience or (self._alike and epoch + 1 == epochs):
                self.failed = f"after epoch {epoch + 1} all answers are alike."
        self.model.stop_training |= bool(self.failed)


def follow(recipe: Recipe, settings: list[Setting], output: pathlib.Path) -> Outcome:
    """Trains with every setting, and prints what was reached beside the paper's.

    Args:
        recipe: the task and its data.
        settings: to try.
        output: a folder for the results and the best model, see `trials.run_all`.

    Returns:
        The best outcome.

    Raises:
        ValueError: if the output is a file, or as `trials.run_all`.
    """
    if output.exists() and not output.is_dir():
        raise ValueError(f"The output must be a folder. Received: {output}, a file.")
    run = functools.partial(_run, recipe)
    outcomes = trials.run_all(settings, run, output, recipe.described)
    chosen = trials.best(outcomes)
    _print(recipe, outcomes, chosen)
    tell(
        f"The best model, of {chosen.setting}, is {output / trials.BEST}; every run is "
        f"in {output / trials.RESULTS}."
    )
    return chosen


def find_file(folder: pathlib.Path, names: tuple[str, ...], what: str) -> pathlib.Path:
    """Returns the first of several files that is there.

    Raises:
        FileNotFoundError: none is.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(
        f"{what} must be {' or '.join(names)} in the folder of --data, and is not. "
        f"Received: {folder}."
    )


def hashes(*reports) -> dict[str, str]:
    """Returns the sha256 of the files that readers report on, by their names."""
    paths = [pathlib.Path(report.path) for report in reports]
    return {path.name: sha256(path) for path in paths}


def told(read):
    """Returns what a reader returned, after its report is told."""
    for line in read.report.lines():
        tell(line)
    return read


def _run(recipe: Recipe, setting: Setting) -> tuple[Any, Outcome]:
    keras.utils.set_random_seed(setting.seed)
    task = recipe.build()
    task.compile(learning_rate=setting.learning_rate)
    watch = DevScores(recipe.measure)
    start = time.perf_counter()
    task.fit(
        recipe.x,
        recipe.y,
        batch_size=setting.batch_size,
        epochs=setting.epochs,
        callbacks=[watch],
    )
    seconds = round(time.perf_counter() - start, 1)
    if recipe.finish is not None and not watch.failed:
        recipe.finish(task)
        watch.history[-1] = recipe.measure(task)
    score, scores, _ = watch.history[-1] if watch.history else Measured(0.0, {})
    history = [each.scores for each in watch.history]
    return task, Outcome(setting, score, scores, history, watch.failed, seconds)


def _print(recipe: Recipe, outcomes: list[Outcome], chosen: Outcome) -> None:
    """Prints a line a setting, the scores of the best run, and the paper's."""
    title = f"{recipe.title}, in percent"
    table = rich.table.Table(title=rich.text.Text(title), title_justify="left")
    lines = trials.summary(outcomes)
    for column in lines[0]:
        table.add_column(column.replace("_", " "), justify="right")
    for line in lines:
        rate, epochs, batch, runs, failed, *numbers = line.values()
        shown = ["" if value is None else f"{100 * value:.1f}" for value in numbers]
        table.add_row(f"{rate:g}", *map(str, (epochs, batch, runs, failed)), *shown)
    out().print(table)
    reached = ", ".join(
        f"{key.replace('_', ' ')} {100 * value:.1f}"
        for key, value in chosen.scores.items()
    )
    out().print(f"Best run, {chosen.setting}: {chosen.degenerate or reached}")
    for row in recipe.paper:
        base = "" if row.base is None else f"BERT-base {row.base}, "
        out().print(
            f"The paper ({row.where}), {row.metric}: {base}BERT-large {row.large}."
        )
