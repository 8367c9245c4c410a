"""What the files of a model hold, and whether it would load: without a model."""

import dataclasses
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kbert import presets
from kbert.backbone import BertBackbone
from kbert.checkpoints import folder, sizes
from kbert.checkpoints.assigning import Weights
from kbert.config import BertConfig
from kbert.convert import classes
from kbert.files import sha256
from kbert.tasks import saving
from kbert.tasks.classifier import saved_head
from kbert.tokenization.wordpiece import BertTokenizer

# What loading raises about files, each with a sentence for the user.
ERRORS = (ValueError, OSError, ImportError)


@dataclasses.dataclass(frozen=True)
class FileFacts:
    """A file of a preset.

    Args:
        name: in the folder.
        size: in bytes.
        sha256: in hexadecimal; None where it cannot be read, or is a link that is not
            followed.
        told: "as saved" or "changed" where `kbert.json` has its hash; or what is odd.
    """

    name: str
    size: int
    sha256: str | None
    told: str


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What a preset's files hold. What could not be read is None or empty.

    Args:
        spec: what was looked at.
        folder: where the files lie: of a zip, where it was unpacked.
        format: "hugging_face", "google", "tf_hub" or "keras_hub".
        weights: where they lie: a file, or what several begin with or lie in.
        built_for: transformers' name of the model that the files say they are.
        architecture: the encoder's hyper-parameters.
        parameters: {"encoder", or the head's name: numbers in the files}; what is no
            weight of a model of kbert's stands under "other".
        others: the tensors under "other".
        dtypes: those of the weights, as numpy calls them.
        tokenizer: the arguments of `BertTokenizer`, for its vocabulary the size.
        labels: of a classifier, of texts or of tokens, in the order of the logits.
        problem: of a classifier.
        files: everything that lies in the folder.
        metadata: the content of `kbert.json`, without digests.
        loads: {kbert's class: None, or the sentence with which loading fails}.
        new_heads: the tasks that would load with a new head, which is random.
        notes: what loading would tell in warnings.
    """

    spec: str
    folder: Path | None = None
    format: str | None = None
    weights: str | None = None
    built_for: str | None = None
    architecture: BertConfig | None = None
    parameters: Mapping[str, int] = dataclasses.field(default_factory=dict)
    others: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    tokenizer: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    labels: tuple[str, ...] = ()
    problem: str | None = None
    files: tuple[FileFacts, ...] = ()
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    loads: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    new_heads: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether every class that the files are for would load."""
        return not any(self.loads.values())


def inspect_preset(
    spec: str | os.PathLike, *, allow_pickle: bool = False
) -> Inspection:
    """Looks at a preset of any format that kbert reads.

    No model is built, of weights no more is read than names, shapes and, for the
    digests, bytes, and nothing in the files is run. What is wrong with them is no
    error here, but part of the answer.

    Args:
        spec: as for `kbert.presets.find_preset`; what a hub has of it is fetched.
        allow_pickle: whether `pytorch_model.bin` may be read, see `BertBackbone`.

    Raises:
        TypeError: if `spec` is neither a string nor a path.

    Example:
    >>> found = kbert.inspect_preset("all_minilm_l6_en_uncased")
    >>> found.architecture.num_layers, found.tokenizer["lowercase"]
    (6, True)
    >>> found.loads["BertTokenizer"] is None
    True
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        facts = _facts(spec, allow_pickle)
    notes = dict.fromkeys(str(warning.message) for warning in told)
    return Inspection(os.fspath(spec), **facts, notes=tuple(notes))


def _facts(spec, allow_pickle: bool) -> dict[str, Any]:
    """Returns the fields of an `Inspection` but for `spec` and `notes`."""
    try:
        preset = presets.find_preset(spec, allow_pickle=allow_pickle)
    except ERRORS as error:
        kinds = (BertTokenizer, BertBackbone)
        return {"loads": {kind.__name__: str(error) for kind in kinds}}
    metadata = _or_none(preset.metadata) or {}
    config = _or_none(lambda: preset.read_json("config.json")) or {}
    architecture = _or_none(lambda: BertConfig.from_hugging_face(config))
    weights = _or_none(lambda: folder.open_weights(preset))
    claim = None
    if architecture and weights:
        claim = _or_none(lambda: classes.claimed(preset, config, architecture, weights))
    head = (architecture and saved_head(config)) or {}
    tags = architecture and saving.saved_labels(config, "BertForTokenClassification")
    loads = {
        "BertTokenizer": _refusal(lambda: BertTokenizer.from_files(preset)),
        "BertBackbone": _refusal(lambda: _load_backbone(preset)),
    }
    kind = claim.kind if claim else BertBackbone
    if claim and kind is not BertBackbone:
        loads[kind.__name__] = _refusal(lambda: _load_task(preset, claim))
    others = [task.__name__ for task in classes.TASK_CLASSES if task is not kind]
    return {
        "folder": preset.folder,
        "format": preset.format,
        "built_for": _built_for(config, claim) if claim else None,
        "architecture": architecture,
        **_weights_facts(weights),
        "tokenizer": _or_none(lambda: _tokenizer_facts(preset)) or {},
        "labels": tuple(head.get("labels") or tags or ()),
        "problem": head.get("problem"),
        "files": tuple(_files(preset, metadata.get("files", {}))),
        "metadata": _or_none(lambda: classes.without_digests(preset)) or {},
        "loads": loads,
        "new_heads": () if any(loads.values()) else tuple(others),
    }


def _built_for(config: Mapping, claim: classes.Claim) -> str | None:
    """Returns what `config.json` says, else what the tensors do."""
    return ", ".join(config.get("architectures") or ()) or claim.architecture


def _or_none(read):
    """Returns what a function returns, None where the files do not let it."""
    try:
        return read()
    except ERRORS:
        return None  # the classes that would load tell why they would not


def _refusal(load) -> str | None:
    """Returns the sentence with which loading fails, None where it does not."""
    try:
        load()
    except ERRORS as error:
        return str(error)
    return None


def _load_backbone(preset: presets.Preset) -> None:
    """Does what `BertBackbone.from_preset` does, but for building and assigning."""
    config = sizes.read_architecture(preset, load_weights=True)
    _compare(preset, sizes.expected_shapes(config), ("pooler",))


def _load_task(preset: presets.Preset, claim: classes.Claim) -> None:
    """Does what a task's `from_preset` does, but for building and assigning."""
    saving.read_parts(preset, load_weights=True)
    _compare(preset, claim.shapes, ("pooler", *classes.heads_of(claim)))


def _compare(preset, shapes, optional) -> None:
    """Does what `folder.load_preset` does, but for assigning."""
    preset.verify()
    sizes.compare(folder.open_weights(preset), shapes, optional)


def _weights_facts(weights: Weights | None) -> dict[str, Any]:
    """Returns what the weights are."""
    if weights is None:
        return {}
    parts = {name: classes.part_of(name, weights) for name in weights.arrays}
    return {
        "weights": weights.source,
        "parameters": classes.heads_in(weights),
        "others": tuple(name for name, part in parts.items() if part == "other"),
        "dtypes": tuple(
            sorted({weights.arrays[n].number for n, p in parts.items() if p != "other"})
        ),
    }


def _tokenizer_facts(preset: presets.Preset) -> dict[str, Any]:
    """Returns the tokenizer's settings, of its vocabulary the size."""
    settings = BertTokenizer.from_files(preset).get_config()
    return {**settings, "vocabulary": len(settings["vocabulary"])}


def _files(preset: presets.Preset, hashes: Mapping[str, str]) -> Iterator[FileFacts]:
    """Yields what lies in a folder; links out of it are told, not followed."""
    for name in sorted({*preset.filenames(), *hashes}):
        try:
            path = preset.path(name)
            digest = sha256(path)
        except ERRORS as error:
            yield FileFacts(name, 0, None, str(error))
            continue
        expected = hashes.get(name)
        told = "" if expected is None else "changed"
        yield FileFacts(
            name,
            path.stat().st_size,
            digest,
            "as saved" if digest == expected else told,
        )
