"""Which of kbert's classes the files of a preset are for."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from kbert.backbone import BertBackbone
from kbert.checkpoints import names, sizes
from kbert.checkpoints.assigning import Weights
from kbert.config import BertConfig
from kbert.presets import Preset
from kbert.tasks.classifier import BertClassifier, saved_head


class Task(NamedTuple):
    """What the code here has to know of a task.

    Args:
        kind: the class.
        heads: the heads in `checkpoints/names.py` that it needs.
        width: C of its head, from the content of a `config.json`.
        arguments: those of `from_preset`, from the C of a file without a `config.json`.
        run: returns an array of the model's answers to a backbone's inputs.
    """

    kind: type
    heads: tuple[str, ...]
    width: Callable[[Mapping], int | None]
    arguments: Callable[[int], dict[str, Any]]
    run: Callable[[Any, Mapping], np.ndarray]


def _classes(config: Mapping) -> int | None:
    """Returns C of a classifier's head."""
    saved = saved_head(dict(config))
    if saved is None:
        return None
    return len(saved["labels"] or ("the number",))


def _for_classes(width: int) -> dict[str, Any]:
    """Returns the arguments of a classifier of which nothing but C is known."""
    return {"problem": "regression"} if width == 1 else {"num_classes": width}


def _logits(model, inputs: Mapping) -> np.ndarray:
    """Returns the logits of a task whose inputs are a backbone's."""
    return keras.ops.convert_to_numpy(model(inputs))


# transformers' architecture: the task with that head. One line adds a task.
TASKS = {
    "BertForSequenceClassification": Task(
        BertClassifier, ("classifier",), _classes, _for_classes, _logits
    ),
}
TASK_CLASSES = tuple({task.kind: None for task in TASKS.values()})


@dataclasses.dataclass(frozen=True)
class Claim:
    """The class that a preset's files are for.

    Args:
        kind: `BertBackbone`, or a task with the head that the files hold.
        architecture: transformers' name of that; None for a bare encoder.
        arguments: what `from_preset` needs to be told.
        shapes: of every variable of the model, by kbert's path.
    """

    kind: type
    architecture: str | None
    arguments: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]


def claimed(config: Mapping, architecture: BertConfig, weights: Weights) -> Claim:
    """Returns the class that a preset is for: of its `config.json`, or its tensors.

    Args:
        config: the content of `config.json`.
        architecture: the encoder's part of it.
        weights: what the files hold; asked where `config.json` names no class.
    """
    for name in config.get("architectures") or _of_tensors(weights):
        if task := TASKS.get(name):
            told = task.width(config)
            width = told or _width_in(weights, task.heads)
            shapes = sizes.expected_shapes(
                architecture, ("pooler", *task.heads), width or 1
            )
            return Claim(
                task.kind, name, {} if told else task.arguments(width or 1), shapes
            )
    return Claim(BertBackbone, None, {}, sizes.expected_shapes(architecture))


def heads_in(weights: Weights) -> dict[str, int]:
    """Returns {"encoder" or the head's name: its parameters in the files}.

    What is no weight of kbert's models counts as "other".
    """
    counts: dict[str, int] = {}
    for stored, array in weights.arrays.items():
        part = part_of(stored, weights)
        counts[part] = counts.get(part, 0) + int(np.prod(array.shape, dtype=np.int64))
    return counts


def part_of(stored: str, weights: Weights) -> str:
    """Returns the part of the model that a tensor belongs to, "other" for none."""
    name = weights.format.full_name(stored)
    translated = names.translate(name, weights.format.column, "kbert")
    if translated is None:
        return "other"
    return names.head_of(translated[0]) or "encoder"


def _of_tensors(weights: Weights) -> list[str]:
    """Returns the architectures whose heads are in the files, of Google's at most."""
    found = set(heads_in(weights))
    return [name for name, task in TASKS.items() if found.issuperset(task.heads)]


def _width_in(weights: Weights, heads: tuple[str, ...]) -> int | None:
    """Returns the length of a head's last bias in the files."""
    for head in heads:
        row = names.translate(f"{head}/bias", "kbert", weights.format.column)
        for stored, array in weights.arrays.items():
            if row and weights.format.full_name(stored) == row[0] and array.shape:
                return array.shape[0]
    return None


def heads_of(claim: Claim) -> tuple[str, ...]:
    """Returns the heads of the class that a preset is for."""
    return TASKS[claim.architecture].heads if claim.architecture else ()


def without_digests(preset: Preset) -> dict[str, Any]:
    """Returns what `kbert.json` says of a model beside the digests of its files."""
    metadata = preset.metadata()
    return {key: metadata[key] for key in metadata if key not in ("files", "sha256")}
