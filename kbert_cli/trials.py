"""Runs of fine-tuning with several settings, each kept when it ends."""

import dataclasses
import functools
import json
import os
import pathlib
import statistics
from collections.abc import Callable
from typing import Any

from kbert.files import replace_file
from kbert_cli.console import tell
from kbert_cli.grid import Setting

RESULTS = "results.json"
BEST = "best"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run reached on the development set.

    Args:
        setting: of the run.
        score: the one that runs are chosen by.
        scores: all official ones, by name.
        history: of each epoch, the same scores.
        degenerate: why the run counts as failed; "" where it learned something.
        seconds: that it took.
    """

    setting: Setting
    score: float
    scores: dict[str, float]
    history: list[dict[str, float]]
    degenerate: str
    seconds: float


def run_all(
    settings: list[Setting],
    run: Callable[[Setting], tuple[Any, Outcome]],
    folder: pathlib.Path,
    described: dict,
) -> list[Outcome]:
    """Runs every setting that is not done yet; the best model so far lies in `BEST`.

    Args:
        settings: what to try.
        run: trains with one setting; returns the task and what it reached.
        folder: for results and the best model; runs that it holds are not repeated.
        described: what else the results depend on, for JSON.

    Returns:
        The outcomes, in the order of `settings`.

    Raises:
        ValueError: if the folder holds results of something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = _finished(folder / RESULTS, described)
    for number, setting in enumerate(settings, start=1):
        if setting in done:
            tell(f"Run {number} of {len(settings)} is done: {setting}.")
            continue
        tell(f"Run {number} of {len(settings)}: {setting}.")
        task, outcome = run(setting)
        if outcome.degenerate:
            tell(f"This run has failed: {outcome.degenerate}", style="yellow")
        if best(done.values(), outcome) is outcome:
            # Before the results: a stop between the two repeats this run.
            task.save_to_preset(folder / BEST)
        done[setting] = outcome
        _write(folder / RESULTS, described, list(done.values()))
    return [done[setting] for setting in settings]


def best(outcomes, *more: Outcome) -> Outcome:
    """Returns the outcome with the highest score; a failed one only among such."""
    return max([*outcomes, *more], key=lambda each: (not each.degenerate, each.score))


def summary(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Returns a line for each setting but for the seed: mean, spread, best.

    Runs that failed are counted, and left out of mean and spread.
    """
    lines = []
    groups: dict[tuple, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.setting[:-1], []).append(outcome)
    for (rate, epochs, batch), members in groups.items():
        scores = [each.score for each in members if not each.degenerate]
        spread = statistics.stdev(scores) if len(scores) > 1 else None
        lines.append(
            {
                "learning_rate": rate,
                "epochs": epochs,
                "batch_size": batch,
                "runs": len(members),
                "failed": len(members) - len(scores),
                "mean": statistics.mean(scores) if scores else None,
                "stdev": spread,
                "best": max(scores, default=None),
            }
        )
    return lines


def _finished(path: pathlib.Path, described: dict) -> dict[Setting, Outcome]:
    """Returns the outcomes that a file holds, by setting."""
    if not path.exists():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["described"] != json.loads(json.dumps(described)):
        raise ValueError(
            "The output folder must be new, or hold runs of the same data and preset "
            f"to go on with. Received: {path}, whose runs are of "
            f"{content['described']}."
        )
    outcomes = [
        Outcome(**{**run, "setting": Setting(**run["setting"])})
        for run in content["runs"]
    ]
    return {outcome.setting: outcome for outcome in outcomes}


def _write(path: pathlib.Path, described: dict, outcomes: list[Outcome]) -> None:
    runs = [
        {**dataclasses.asdict(outcome), "setting": outcome.setting._asdict()}
        for outcome in outcomes
    ]
    content = {
        "described": described,
        "best": best(outcomes).setting._asdict(),
        "settings": summary(outcomes),
        "runs": runs,
    }
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    replace_file(path, functools.partial(_write_text, text=text))


def _write_text(path: str | os.PathLike, text: str) -> None:
    pathlib.Path(path).write_text(text, encoding="utf-8")
