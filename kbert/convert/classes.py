"""Which of kbert's classes the files of a preset are for."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from kbert.backbone import BertBackbone
from kbert.checkpoints import names, sizes
from kbert.checkpoints.assigning import Weights
from kbert.checkpoints.embedders import saved_settings
from kbert.config import BertConfig
from kbert.presets import Preset
from kbert.tasks import saving
from kbert.tasks.classifier import BertClassifier, saved_head
from kbert.tasks.embedder import BertEmbedder
from kbert.tasks.masked_lm import BertMaskedLM
from kbert.tasks.multiple_choice import BertMultipleChoice
from kbert.tasks.pretrainer import BertPretrainer
from kbert.tasks.question_answerer import BertQuestionAnswerer
from kbert.tasks.token_classifier import BertTokenClassifier


class Task(NamedTuple):
    """What the code here has to know of a task.

    Args:
        kind: the class.
        heads: the heads in `checkpoints/names.py` that it needs.
        width: C of its head, from the content of a `config.json`; None if it is not
            said there.
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


def _tags(config: Mapping) -> int | None:
    """Returns C of a token classifier's head."""
    labels = saving.saved_labels(config, "BertForTokenClassification")
    return None if labels is None else len(labels)


def _one(config: Mapping) -> int:
    """Returns the width of a head that scores, or whose shapes the encoder says."""
    return 1


def _for_classes(width: int) -> dict[str, Any]:
    """Returns the arguments of a classifier of which nothing but C is known."""
    return {"problem": "regression"} if width == 1 else {"num_classes": width}


def _nothing(width: int) -> dict[str, Any]:
    """Returns the arguments of a task that needs none."""
    return {}


def _logits(model, inputs: Mapping) -> np.ndarray:
    """Returns the logits for the inputs of a backbone; several outputs end to end."""
    outputs = keras.tree.flatten(model(inputs))
    arrays = [keras.ops.convert_to_numpy(output) for output in outputs]
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate([array.reshape(-1) for array in arrays])


def _of_tags(model, inputs: Mapping) -> np.ndarray:
    """Returns the logits of the tokens; what stands at padding, nobody reads."""
    return _logits(model, inputs)[inputs["padding_mask"] > 0]


def _of_masked(model, inputs: Mapping) -> np.ndarray:
    """Returns the logits where the first tokens of all rows count as masked."""
    rows, width = inputs["token_ids"].shape
    return _logits(
        model, {**inputs, "mask_positions": np.arange(rows, dtype="int32") * width}
    )


def _of_choices(model, inputs: Mapping) -> np.ndarray:
    """Returns the logits where every row is the one choice of its prompt."""
    choice_mask = np.ones((len(inputs["token_ids"]), 1), "int32")
    return _logits(model, {**inputs, "choice_mask": choice_mask})


# No class of transformers': a bare encoder, of which files say how it embeds texts.
_EMBEDDER = "SentenceTransformer"
# transformers' architecture: the task with that head. One line adds a task. Where only
# the tensors tell, the first whose heads are all there.
TASKS = {
    "BertForPreTraining": Task(
        BertPretrainer, ("mlm", "nsp"), _one, _nothing, _of_masked
    ),
    "BertForMaskedLM": Task(BertMaskedLM, ("mlm",), _one, _nothing, _of_masked),
    "BertForQuestionAnswering": Task(
        BertQuestionAnswerer, ("spans",), _one, _nothing, _logits
    ),
    "BertForSequenceClassification": Task(
        BertClassifier, ("classifier",), _classes, _for_classes, _logits
    ),
    "BertForTokenClassification": Task(
        BertTokenClassifier, ("classifier",), _tags, _nothing, _of_tags
    ),
    "BertForMultipleChoice": Task(
        BertMultipleChoice, ("classifier",), _one, _nothing, _of_choices
    ),
    _EMBEDDER: Task(BertEmbedder, (), _one, _nothing, _logits),
}
# Those of which a preset may lack the head.
TASK_CLASSES = tuple({task.kind: None for task in TASKS.values() if task.heads})


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


def claimed(
    preset: Preset, config: Mapping, architecture: BertConfig, weights: Weights
) -> Claim:
    """Returns the class that a preset is for: of its `config.json`, or its tensors.

    Args:
        preset: the preset, which may say how it embeds texts.
        config: the content of `config.json`.
        architecture: the encoder's part of it.
        weights: what the files hold; asked where `config.json` names no class.
    """
    told_names = config.get("architectures") or _of_tensors(weights)
    if told_names in ([], ["BertModel"]) and saved_settings(preset):
        told_names = [_EMBEDDER]
    for name in told_names:
        if task := TASKS.get(name):
            told = task.width(config)
            width = told or _width_in(weights, task.heads)
            pooler = ("pooler",) if task.kind.uses_pooler else ()
            shapes = sizes.expected_shapes(
                architecture, (*pooler, *task.heads), width or 1
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
    return [
        name
        for name, task in TASKS.items()
        if task.heads and found.issuperset(task.heads)
    ]


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
