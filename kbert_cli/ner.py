"""What `kbert finetune ner` does: tagging words, as the paper fine-tunes it."""

import functools
import pathlib

import kbert
from kbert.data.conll import Conll, read_conll
from kbert.metrics.tagging import entity_scores
from kbert_cli import paper
from kbert_cli.console import out
from kbert_cli.grid import Setting
from kbert_cli.recipes import Measured, Recipe, find_file, follow, hashes, told
from kbert_cli.trials import BEST

# Of CoNLL-2003, of its copies, and of WNUT-17.
TRAIN = ("eng.train", "train.txt", "train.conll", "wnut17train.conll")
DEV = ("eng.testa", "valid.txt", "dev.txt", "dev.conll", "emerging.dev.conll")
TEST = ("eng.testb", "test.txt", "test.conll", "emerging.test.annotated")


def finetune(
    data: pathlib.Path,
    preset: str,
    output: pathlib.Path,
    settings: list[Setting],
    sequence_length: int,
) -> None:
    """Trains every setting, chooses on the development set, scores the test set.

    Args:
        data: the folder of the official files.
        preset: to start from.
        output: a folder; see `recipes.follow`.
        settings: to try.
        sequence_length: most tokens of a window.
    """
    train, dev, test = (
        told(read_conll(find_file(data, names, f"The {kind} set")))
        for names, kind in ((TRAIN, "training"), (DEV, "development"), (TEST, "test"))
    )
    labels = _labels(train, dev, test)
    build = functools.partial(
        kbert.BertTokenClassifier.from_preset,
        preset,
        labels=labels,
        sequence_length=sequence_length,
    )
    described = {
        "task": "NER",
        "preset": preset,
        "sequence_length": sequence_length,
        "labels": labels,
        "files": hashes(train.report, dev.report),
    }
    recipe = Recipe(
        "Entities, development set",
        described,
        build,
        train.words,
        train.tags,
        functools.partial(_measure, dev),
        paper.NER,
    )
    follow(recipe, settings, output)
    tagger = kbert.BertTokenClassifier.from_preset(output / BEST)
    scores = _measure(test, tagger).scores
    told_scores = ", ".join(f"{key} {100 * value:.1f}" for key, value in scores.items())
    out().print(f"The best model on the test set: {told_scores}.")


def _labels(*parts: Conll) -> list[str]:
    """Returns all tags, "O" first, those of one type together."""
    tags = {tag for part in parts for sentence in part.tags for tag in sentence}
    return sorted(tags, key=lambda tag: (tag != "O", tag[2:], tag))


def _measure(part: Conll, tagger) -> Measured:
    found = tagger.tag_words(part.words)
    scores = entity_scores(part.tags, found).overall
    named = {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall}
    return Measured(
        scores.f1, named, alike=not any(set(tags) - {"O"} for tags in found)
    )
