"""What `kbert convert` does."""

import functools
import json
import pathlib

import keras
import rich.text

import kbert
from kbert import presets
from kbert.checkpoints import folder, google, keras_hub
from kbert.checkpoints.assigning import LoadReport
from kbert.tasks import saving
from kbert_cli.console import out
from kbert_cli.options import CheckpointFormat

# transformers' architectures, and the tasks of kbert that they are.
_TASKS = {
    "BertForSequenceClassification": kbert.BertClassifier,
    "BertForMaskedLM": kbert.BertMaskedLM,
    "BertForPreTraining": kbert.BertPretrainer,
    "BertForQuestionAnswering": kbert.BertQuestionAnswerer,
}


def convert(source: str, target: pathlib.Path, format: CheckpointFormat) -> None:
    """Write a preset in another format; tell what was mapped, and what was dropped.

    Args:
        source: a folder, a zip of Google's, or a built-in name.
        target: the folder to write.
        format: of the target.
    """
    preset = presets.find_preset(source)
    model = _model(preset, source)
    backbone = getattr(model, "backbone", model)
    report = _load(preset, model, backbone)
    dropped = _write(model, backbone, preset, target, format)
    _tell(f"{report.source}: {len(report.loaded)} tensors, each in its place.")
    for name in report.ignored:
        _tell(f"Dropped {name}: no weight of a {type(model).__name__}.")
    for line in dropped:
        _tell(f"{line}.")
    _tell(f"Wrote {target}: {', '.join(sorted(p.name for p in target.iterdir()))}.")


def _model(preset: presets.Preset, source: str):
    """Return the preset's model, with its head if kbert has that, without weights."""
    config = preset.read_json("config.json")
    for name in config.get("architectures") or ():
        if name in _TASKS:
            return _TASKS[name].from_preset(source, load_weights=False)
    heads = google.heads(preset) if preset.format == "google" else {}
    if {"mlm", "nsp"} <= set(heads):
        return kbert.BertPretrainer.from_preset(source, load_weights=False)
    if "mlm" in heads:
        return kbert.BertMaskedLM.from_preset(source, load_weights=False)
    if "spans" in heads:
        return kbert.BertQuestionAnswerer.from_preset(source, load_weights=False)
    classes = heads.get("classifier")
    if classes is None:
        return kbert.BertBackbone.from_preset(source, load_weights=False)
    if classes == 1:
        return kbert.BertClassifier.from_preset(
            source, load_weights=False, problem="regression"
        )
    return kbert.BertClassifier.from_preset(
        source, load_weights=False, num_classes=classes
    )


def _load(preset: presets.Preset, model, backbone) -> LoadReport:
    """Load the weights into the model."""
    variables = {weight.path: weight for weight in backbone.weights}
    if model is not backbone:
        variables = saving.task_variables(model)
    return folder.load_preset(preset, variables)


def _write(model, backbone, preset, target, format) -> list[str]:
    """Write the model; return what its new format cannot say."""
    is_task = model is not backbone
    if format == CheckpointFormat.huggingface and is_task:
        model.save_to_preset(target)
        return []
    tokenizer = kbert.BertTokenizer.from_files(preset)
    folder.check_vocabulary(tokenizer.vocabulary_size, backbone.config)
    if format == CheckpointFormat.huggingface:
        config = {
            **backbone.config.to_hugging_face(),
            "architectures": ["BertModel"],
        }
        files = {
            "config.json": json.dumps(config, indent=2).encode(),
            **tokenizer.to_files(backbone.config.max_sequence_length),
            "model.safetensors": functools.partial(
                folder.write_weights, _arrays(backbone)
            ),
        }
        presets.write_preset(target, files, {})
        return []
    weights = saving.merged_weights(model) if is_task else _arrays(backbone)
    writer = google.write_checkpoint
    if format == CheckpointFormat.keras_hub:
        writer = keras_hub.write_folder
    said = model.preset_metadata() if is_task else {}
    told = writer(target, weights, backbone.config, tokenizer, said.pop("head", None))
    told += [
        f"Dropped {name}={value!r}: its files have no place for it; pass it again "
        "when you load"
        for name, value in said.items()
    ]
    if isinstance(model, kbert.BertClassifier):
        told.append(
            f"Dropped problem={model.problem!r} and labels={list(model.labels)}: "
            "its files have no place for them; pass them again when you load"
        )
    return told


def _arrays(backbone) -> dict:
    """Return the weights by path."""
    return {
        weight.path: keras.ops.convert_to_numpy(weight) for weight in backbone.weights
    }


def _tell(line: str) -> None:
    """Print a line of the report, in which brackets are no markup."""
    out().print(rich.text.Text(line))
