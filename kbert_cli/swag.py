"""What `kbert finetune swag` does: multiple choice, as the paper fine-tunes it."""

import functools
import pathlib

import kbert
from kbert.data.swag import Swag, read_swag
from kbert_cli import paper
from kbert_cli.grid import Setting
from kbert_cli.recipes import Measured, Recipe, find_file, follow, hashes, told

TRAIN = ("train.csv", "train_full.csv")
DEV = ("val.csv", "val_full.csv")


def finetune(
    data: pathlib.Path,
    preset: str,
    output: pathlib.Path,
    settings: list[Setting],
    sequence_length: int,
) -> None:
    """Trains every setting and chooses on the validation set.

    Args:
        data: the folder of the official files.
        preset: to start from.
        output: a folder; see `recipes.follow`.
        settings: to try.
        sequence_length: most tokens of a prompt with a choice.
    """
    train, dev = (
        told(read_swag(find_file(data, names, f"SWAG's {kind} set")))
        for names, kind in ((TRAIN, "training"), (DEV, "validation"))
    )
    for part in (train, dev):
        if part.labels is None:
            raise ValueError(
                "The sets to learn from and to judge by must have the right endings: a "
                f"column label, or gold-ending. Received: {part.report.path}, without."
            )
    build = functools.partial(
        kbert.BertMultipleChoice.from_preset, preset, sequence_length=sequence_length
    )
    described = {
        "task": "SWAG",
        "preset": preset,
        "sequence_length": sequence_length,
        "files": hashes(train.report, dev.report),
    }
    recipe = Recipe(
        "SWAG, validation set",
        described,
        build,
        (train.prompts, train.choices),
        train.labels,
        functools.partial(_measure, dev),
        paper.SWAG,
    )
    follow(recipe, settings, output)


def _measure(dev: Swag, model) -> Measured:
    logits = model.predict((dev.prompts, dev.choices), verbose=0)
    accuracy = float((logits.argmax(axis=1) == dev.labels).mean())
    return Measured(accuracy, {"accuracy": accuracy})
