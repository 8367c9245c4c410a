"""What `kbert finetune squad` does: question answering, as the paper fine-tunes it."""

import functools
import pathlib

import kbert
from kbert.data.squad import Squad, read_squad
from kbert_cli import paper
from kbert_cli.console import tell
from kbert_cli.grid import Setting
from kbert_cli.recipes import Measured, Recipe, find_file, follow, hashes, told

_METRICS = ("exact_match", "f1")


def finetune(
    version: str,
    data: pathlib.Path,
    preset: str,
    output: pathlib.Path,
    settings: list[Setting],
    sequence_length: int,
) -> None:
    """Trains every setting and chooses by F1 on the development set.

    Args:
        version: "1.1" or "2.0".
        data: the folder of the official files.
        preset: to start from.
        output: a folder; see `recipes.follow`.
        settings: to try.
        sequence_length: tokens of a window.
    """
    train, dev = (
        told(
            read_squad(find_file(data, (f"{kind}-v{version}.json",), f"The {kind} set"))
        )
        for kind in ("train", "dev")
    )
    for part in (train, dev):
        report = part.report
        some = 0 < report.num_impossible < report.num_kept
        if report.num_impossible if version == "1.1" else not some:
            some = "none" if version == "1.1" else "some, not all,"
            raise ValueError(
                f"Of the questions of SQuAD {version} {some} must be without an "
                f"answer. Received: {report.num_impossible:,} of {report.num_kept:,} "
                f"in {report.path}. Name the other --version, and the file as it does."
            )
    build = functools.partial(
        kbert.BertQuestionAnswerer.from_preset, preset, sequence_length=sequence_length
    )
    described = {
        "task": f"SQuAD {version}",
        "preset": preset,
        "sequence_length": sequence_length,
        "files": hashes(train.report, dev.report),
    }
    recipe = Recipe(
        f"SQuAD {version}, development set",
        described,
        build,
        (train.questions, train.contexts),
        train.answers,
        functools.partial(_measure, dev),
        paper.SQUAD[version],
        functools.partial(_tune, dev) if version == "2.0" else None,
    )
    follow(recipe, settings, output)


def _measure(dev: Squad, answerer) -> Measured:
    x = (dev.questions, dev.contexts)
    found = answerer.evaluate(x, dev.answers, verbose=0, return_dict=True)
    scores = {key: found[key] / 100 for key in found if key.endswith(_METRICS)}
    return Measured(scores["f1"], scores, alike=scores["f1"] == 0)


def _tune(dev: Squad, answerer) -> None:
    """Finds the threshold below which no answer is given (section 4.3)."""
    found = answerer.tune_null_threshold((dev.questions, dev.contexts), dev.answers)
    tell(f"No answer is given beyond a threshold of {found.threshold:.3f}: {found}.")
