"""A model written anew as another program's files, with a report of what that changes.

Both sides are loaded and compute on the same ids, so that a conversion which changes
the answers is noticed.
"""

import collections
import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import keras
import numpy as np

from kbert import presets, stale_files
from kbert.backbone import BertBackbone
from kbert.bundles import saved_model_folder
from kbert.checkpoints import folder, google, keras_hub, sizes
from kbert.checkpoints.assigning import LoadReport, Weights
from kbert.config import BertConfig
from kbert.convert import classes
from kbert.preprocessing.preprocessor import BertPreprocessor
from kbert.strict_json import errors_naming
from kbert.tasks import saving
from kbert.tokenization.wordpiece import BertTokenizer

TOLERANCE = 1e-5
WRITERS = {
    "huggingface": folder.write_folder,
    "google": google.write_checkpoint,
    "keras_hub": keras_hub.write_folder,
}
TEXTS = (
    "The film was good, and we saw it twice!",
    "Une pensée naïve : l'été 2018, où ?",
    "BERT 读 两边 的 字。 [MASK] [SEP]",
    "",
)
_WIDTH, _RANDOM_ROWS = 24, 4
_OF_MODELS = (".json", ".safetensors", ".h5", ".pb", "vocab.txt", "vocabulary.txt")
_LAYER = re.compile(r"(?<=encoder_layer_)\d+")


@dataclasses.dataclass(frozen=True)
class Mapped:
    """Tensors with the same place in every layer, or one.

    Args:
        path: the variable of kbert's, `{i}` for the number of the layer.
        source: the tensor's name there, in the first layer.
        target: the same.
        shape: of the variable.
        count: how many there are.
    """

    path: str
    source: str
    target: str
    shape: tuple[int, ...]
    count: int


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What `convert_preset` did.

    Args:
        kind: the name of kbert's class that reads both sides.
        source: where the weights came from.
        target: the folder that was written.
        mapped: every tensor that was carried over.
        dropped: (what, why), a pair for each thing that the target lacks.
        new: (what, why), a pair for each thing that the source lacked.
        differences: what the target's own program does otherwise, a sentence each.
        outputs: {name: largest difference between both sides' outputs}.
        other_ids: the texts that the target's tokenizer turns into other ids.
        files: what was written.
    """

    kind: str
    source: str
    target: Path
    mapped: tuple[Mapped, ...]
    dropped: tuple[tuple[str, str], ...]
    new: tuple[tuple[str, str], ...]
    differences: tuple[str, ...]
    outputs: Mapping[str, float]
    other_ids: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def faithful(self) -> bool:
        """Whether both sides answer the same: equal ids, outputs within 1e-5."""
        near = all(value <= TOLERANCE for value in self.outputs.values())
        return near and not self.other_ids


def convert_preset(
    source: str | os.PathLike,
    target: str | os.PathLike,
    format: str,
    *,
    allow_pickle: bool = False,
) -> Conversion:
    """Writes a preset as the files of another program, and compares both.

    Args:
        source: as for `kbert.presets.find_preset`.
        target: the folder to write.
        format: "huggingface", "google" or "keras_hub".
        allow_pickle: whether `pytorch_model.bin` may be read, see `BertBackbone`.

    Raises:
        ValueError: if the format is unknown, or would make the model compute something
            else; and as `from_preset`.
        OSError, ImportError: as `from_preset`, and if TensorFlow is not there to write
            Google's files.
    """
    if format not in WRITERS:
        raise ValueError(
            f"`format` must be one of {list(WRITERS)}. Received: format={format!r}."
        )
    side = open_preset(source, allow_pickle=allow_pickle)
    report = sizes.compare(side.weights, side.claim.shapes, ("pooler",))
    model = load_model(side)
    tokenizer = BertTokenizer.from_files(side.preset)
    inputs = _inputs(side)
    expected = outputs_of(side, model, inputs, report)
    differences, left_out = _write(target, side, model, tokenizer, report, format)
    written = open_preset(target)
    again = sizes.compare(written.weights, written.claim.shapes, ("pooler",))
    found = outputs_of(written, load_model(written), inputs, report)
    return Conversion(
        side.claim.kind.__name__,
        report.source,
        Path(target),
        tuple(_mapped(report, again, side.claim.shapes)),
        tuple(_dropped(side, written, report, left_out)),
        tuple(_new(side, written, report, again)),
        tuple(differences),
        {
            name: largest_difference(expected[name], found[name])
            for name in expected
            if name in found
        },
        _other_ids(tokenizer, BertTokenizer.from_files(written.preset)),
        tuple(written.preset.filenames()),
    )


@dataclasses.dataclass(frozen=True)
class Side:
    """A preset, and what its files are for."""

    preset: presets.Preset
    config: dict
    architecture: BertConfig
    weights: Weights
    claim: classes.Claim


def open_preset(spec, *, allow_pickle: bool = False) -> Side:
    """Returns all of a preset but the numbers; raises as `from_preset`."""
    preset = presets.find_preset(spec, allow_pickle=allow_pickle)
    with errors_naming(preset.folder):
        config = preset.read_json("config.json")
        architecture = BertConfig.from_hugging_face(config)
    preset.verify()
    weights = folder.open_weights(preset)
    claim = classes.claimed(preset, config, architecture, weights)
    return Side(preset, config, architecture, weights, claim)


def load_model(side: Side):
    """Returns the model of a preset."""
    return side.claim.kind.from_preset(side.preset, **side.claim.arguments)


def _inputs(side: Side) -> dict[str, np.ndarray]:
    """Returns fixed texts as ids, and fixed random ids of the whole vocabulary."""
    config = side.architecture
    width = min(_WIDTH, config.max_sequence_length)
    preprocessor = BertPreprocessor.from_preset(
        side.preset,
        sequence_length=width,
        max_sequence_length=config.max_sequence_length,
    )
    inputs = preprocessor(list(TEXTS))
    random = np.random.RandomState(0)
    shape = (_RANDOM_ROWS, width)
    rows = {
        "token_ids": random.randint(0, config.vocabulary_size, shape),
        "segment_ids": random.randint(0, config.num_segments, shape),
        "padding_mask": np.ones(shape),
    }
    return {
        key: np.concatenate([inputs[key], rows[key].astype("int32")]) for key in rows
    }


def outputs_of(side, model, inputs, report: LoadReport) -> dict[str, np.ndarray]:
    """Returns what a model computes from weights that it has, random ones left out."""
    task = side.claim.kind is not BertBackbone
    outputs = (model.backbone if task else model)(inputs)
    found = {
        key: keras.ops.convert_to_numpy(keras.ops.cast(outputs[key], "float32"))
        for key in ("sequence_output", "pooled_output")
    }
    # What stands at padding, nobody reads.
    found["sequence_output"] = found["sequence_output"][inputs["padding_mask"] > 0]
    if report.random or (task and not model.uses_pooler):
        del found["pooled_output"]
    if task and not report.random:
        run = classes.TASKS[side.claim.architecture].run
        found["answers"] = run(model, inputs)
    return found


def _write(
    target, side, model, tokenizer, report, format
) -> tuple[list[str], list[str]]:
    """Writes the model; returns what the format does otherwise, and what it lacks."""
    if isinstance(model, BertBackbone):
        weights = {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}
        more = {}
        if format != "keras_hub":  # which has no encoder without a pooler
            weights = {path: weights[path] for path in report.loaded}
        if format == "huggingface":
            more["metadata"] = {
                **classes.without_digests(side.preset),
                "provenance": side.preset.provenance(),
            }
        return WRITERS[format](target, weights, model.config, tokenizer, **more), []
    if format == "huggingface":
        saving.save_task(model, target)
        return [], []
    weights, config = saving.merged_weights(model), model.backbone.config
    settings = dict(model.preset_metadata())
    more = {"head": settings.pop("head", None)}
    if format == "keras_hub" and "embedding" in settings:
        longest = model.preprocessor.max_length
        more["embedding"] = {
            **settings.pop("embedding"),
            "longest": longest,
        }
    told = WRITERS[format](target, weights, config, tokenizer, **more)
    head = model.hugging_face_head()
    lost = {key: head[key] for key in ("problem_type", "id2label") if key in head}
    return told, [f"{key}={value!r}" for key, value in {**lost, **settings}.items()]


def _mapped(report, again, shapes) -> Iterator[Mapped]:
    """Yields what was carried over, alike tensors of all layers together."""
    kept = [path for path in report.loaded if path in again.tensors]
    groups = collections.defaultdict(list)
    for path in kept:
        groups[_LAYER.sub("{i}", path)].append(path)
    for pattern, (first, *rest) in groups.items():
        yield Mapped(
            pattern,
            report.tensors[first],
            again.tensors[first],
            tuple(shapes[first]),
            1 + len(rest),
        )


def _dropped(side, written, report, left_out) -> Iterator[tuple[str, str]]:
    """Yields what of the source the target lacks, and why."""
    for name in report.ignored:
        yield name, _reason(name, side)
    for fact in left_out:
        yield fact, "the files have no place for it; pass it again when you load"
    has_metadata = side.preset.has(presets.METADATA)
    for name in side.preset.filenames():
        if not _is_read(name):
            yield name, "no file of a model's"
    if has_metadata and not written.preset.has(presets.METADATA):
        yield presets.METADATA, "the format has no place for it"


def _reason(name: str, side) -> str:
    """Returns why a tensor was not carried over."""
    if name.endswith("_ids"):
        return "a buffer, no weight"
    part = classes.part_of(name, side.weights)
    if part == "other" and re.search("adam|optimizer|global_step", name, re.IGNORECASE):
        return "of the optimizer, no weight"
    return f"of another head: no weight of a {side.claim.kind.__name__}"


def _new(side, written, report, again) -> Iterator[tuple[str, str]]:
    """Yields what the target has and the source lacked."""
    for path in report.random:
        if path in again.tensors:
            name = again.tensors[path]
            yield name, "random: the source has no weights for it. Train it before use"
        else:
            yield path, "the source has none, and none was written"
    before = _dtypes(side, report)
    after = _dtypes(written, again)
    if before != after:
        yield f"dtype {after}", f"the source has {before}"
    if written.preset.has(presets.METADATA) and not side.preset.has(presets.METADATA):
        yield presets.METADATA, "the hashes of all files"


def _dtypes(side: Side, report: LoadReport) -> str:
    """Returns what the numbers of the model's weights are in the files."""
    arrays = side.weights.arrays
    return ", ".join(sorted({arrays[name].number for name in report.tensors.values()}))


def _other_ids(source: BertTokenizer, target: BertTokenizer) -> tuple[str, ...]:
    """Returns the fixed texts whose ids differ."""
    pairs = zip(TEXTS, source(list(TEXTS)), target(list(TEXTS)), strict=True)
    return tuple(text for text, one, other in pairs if list(one) != list(other))


def largest_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Returns the largest difference of two arrays, infinite for two shapes or NaN."""
    if one.shape != other.shape:
        return float("inf")
    largest = float(np.abs(one - other).max(initial=0.0))
    return float("inf") if np.isnan(largest) else largest


def _is_read(name: str) -> bool:
    """Returns whether a file is of a kind that a model's files are of."""
    known = (presets.WEIGHTS, presets.VOCABULARY)
    of_saved_model = name.startswith(f"{saved_model_folder.PREFIX}.")
    named = name.endswith(_OF_MODELS) or of_saved_model
    return named or stale_files.is_stale(name, known)
