"""Runs of fine-tuning with several settings, each kept when it ends."""

import dataclasses
import json
import pathlib
import statistics
from collections.abc import Callable
from typing import Any

from kbert.files import replace_file
from kbert.strict_json import Required, read_signed_json, signed_json
from kbert_cli.console import tell
from kbert_cli.grid import Setting

RESULTS = "results.json"
BEST = "best"

_SCORES = {...: float}
_SCHEMA = {
    Required("described"): dict,
    Required("runs"): [
        {
            Required("setting"): {
                Required("learning_rate"): float,
                Required("epochs"): int,
                Required("batch_size"): int,
                Required("seed"): int,
            },
            Required("score"): float,
            Required("scores"): _SCORES,
            Required("history"): [_SCORES],
            Required("degenerate"): str,
            Required("seconds"): float,
        }
    ],
}


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
        The outcomes of all runs that the folder holds, first those of `settings`.

    Raises:
        ValueError: if the folder holds results of something else, or damaged ones, or
            the best model is gone; or if every run has failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = _finished(folder, described)
    for number, setting in enumerate(settings, start=1):
        if setting in done:
            ended = "failed before" if done[setting].degenerate else "is done"
            tell(f"Run {number} of {len(settings)} {ended}: {setting}.")
            continue
        tell(f"Run {number} of {len(settings)}: {setting}.")
        task, outcome = run(setting)
        if outcome.degenerate:
            tell(f"This run has failed: {outcome.degenerate}", style="yellow")
        elif best([*done.values(), outcome]) is outcome:
            # Before the results: a stop between the two repeats this run.
            task.save_to_preset(folder / BEST)
        done[setting] = outcome
        _write(folder / RESULTS, described, list(done.values()))
    if all(outcome.degenerate for outcome in done.values()):
        raise ValueError(
            "One run at least must learn something. Received: "
            f"{len(done)} that failed, in {folder / RESULTS}. Try --restarts, other "
            "seeds or another --learning-rate."
        )
    others = [setting for setting in done if setting not in settings]
    return [done[setting] for setting in [*settings, *others]]


def best(outcomes: list[Outcome]) -> Outcome:
    """Returns the outcome with the highest score; a failed one only among such."""
    return max(outcomes, key=lambda each: (not each.degenerate, each.score))


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


def _finished(folder: pathlib.Path, described: dict) -> dict[Setting, Outcome]:
    """Returns the outcomes that a folder holds, by setting."""
    path = folder / RESULTS
    if not path.exists():
        return {}
    try:
        content = read_signed_json(path, _SCHEMA)
    except ValueError as error:
        raise ValueError(
            f"{error} To begin anew, delete it or name another output."
        ) from None
    if content["described"] != json.loads(json.dumps(described)):
        raise ValueError(
            "The output folder must be new, or hold runs of the same data and preset "
            f"to go on with. Received: {path}, whose runs are of "
            f"{content['described']}, not of {described}."
        )
    outcomes = [
        Outcome(**{**run, "setting": Setting(**run["setting"])})
        for run in content["runs"]
    ]
    learnt = [outcome for outcome in outcomes if not outcome.degenerate]
    if learnt and not (folder / BEST).is_dir():
        raise ValueError(
            f"The best model of the runs in {path} must be in {folder / BEST}, and is "
            "gone. To train it again, delete that file."
        )
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
    text = signed_json(content)
    replace_file(path, lambda temporary: _write_bytes(temporary, text))


def _write_bytes(path: pathlib.Path, content: bytes) -> None:
    path.write_bytes(content)
