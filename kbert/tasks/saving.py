"""Tasks from and to preset folders, and into served models."""

import dataclasses
import importlib.util
import pathlib
import sys
import tempfile

import keras

import kbert.checkpoints.folder as checkpoint
from kbert import presets
from kbert.checkpoints import sizes
from kbert.config import BertConfig
from kbert.export import saved_model
from kbert.export.child_process import export_in_child
from kbert.hubs import handles, publishing
from kbert.preprocessing.preprocessor import BertPreprocessor
from kbert.strict_json import errors_naming


@dataclasses.dataclass(frozen=True)
class PresetParts:
    """What a preset says, before a model is built.

    Args:
        preset: the preset's files.
        config: the content of `config.json`.
        architecture: the part of it that is the encoder's.
        preprocessor: from the tokenizer's files and `kbert.json`.
    """

    preset: presets.Preset
    config: dict
    architecture: BertConfig
    preprocessor: BertPreprocessor


def read_parts(
    spec, *, load_weights, sequence_length=None, long_text=None, allow_pickle=False
) -> PresetParts:
    """Reads all of a preset but its weights.

    Args:
        spec: as for `kbert.presets.find_preset`.
        load_weights: whether its weights are needed; then their sizes are compared.
        sequence_length: longest text in tokens; None for what the preset says.
        long_text: "truncate" or "head_tail"; None for what the preset says.
        allow_pickle: whether weights may be read from a pickle, by torch.
    """
    preset = presets.find_preset(spec, network=load_weights, allow_pickle=allow_pickle)
    asked = {"sequence_length": sequence_length, "long_text": long_text}
    with errors_naming(preset.folder):
        config = preset.read_json("config.json")
        architecture = BertConfig.from_hugging_face(config)
        if load_weights:
            sizes.check_preset(preset, architecture)
        preprocessor = BertPreprocessor.from_preset(
            preset, **{key: value for key, value in asked.items() if value is not None}
        )
        check_preprocessor(preprocessor, architecture)
    return PresetParts(preset, config, architecture, preprocessor)


def check_preprocessor(preprocessor, config):
    """Refuses a preprocessor that makes ids or lengths that the model has not.

    Args:
        preprocessor: a `BertPreprocessor`.
        config: the backbone's `BertConfig`.

    Raises:
        ValueError: naming both sizes.
    """
    checkpoint.check_vocabulary(preprocessor.tokenizer.vocabulary_size, config)
    longest = preprocessor.max_length
    if longest > config.max_sequence_length:
        raise ValueError(
            "The preprocessor may not make longer sequences than the model has "
            f"positions. Received: {longest} tokens for "
            f"{config.max_sequence_length} positions."
        )


def save_task(task, folder):
    """Writes a task as a preset folder.

    Args:
        task: a `BertTask`.
        folder: path of the folder.
    """
    preprocessor = task.preprocessor
    checkpoint.write_folder(
        folder,
        merged_weights(task),
        task.backbone.config,
        preprocessor.tokenizer,
        head=task.hugging_face_head(),
        longest=preprocessor.max_length,
        metadata={
            "task": type(task).__name__,
            "preprocessing": {
                "sequence_length": preprocessor.sequence_length,
                "max_sequence_length": preprocessor.max_sequence_length,
                "long_text": preprocessor.long_text,
            },
            "provenance": dict(task.provenance),
        },
    )


def push_task(task, repository, private, licence):
    """Uploads a task as a preset to the Hugging Face Hub, with a model card.

    Anyone who may read it loads it by `from_preset("hf://organisation/name")`.

    Args:
        task: a `BertTask`.
        repository: "organisation/name"; made where it does not exist.
        private: whether a new one is private; None for the organisation's rule.
        licence: for the model card, like "apache-2.0"; None for that of the preset
            from which the task was made, where that is known.

    Returns:
        The address of the commit.

    Raises:
        ConnectionError: if the Hub cannot be reached.
        PermissionError: if nobody is logged in, or may not write there.
        ValueError: if it is no name, or the task has no preprocessor.
    """
    handles.check_repository(repository)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "preset"
        task.save_to_preset(folder)
        return publishing.push(folder, repository, private, licence)


def merged_weights(task) -> dict:
    """Returns {path of `checkpoints/names.py`: array}, LoRA merged into kernels."""
    weights = {
        weight.path: weight
        for weight in task.backbone.weights
        if "lora_kernel" not in weight.path
    }
    for layer in task.backbone.encoder_layers:
        for name in ("query", "value"):
            path = f"{layer.name}/attention/{name}/kernel"
            weights[path] = getattr(layer.attention, name).kernel
    return {  # by way of tensors: numpy warns of TensorFlow's variables
        path: keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(weight))
        for path, weight in {**weights, **task.head_weights()}.items()
    }


def export_task(task, filepath, format, verbose, input_signature):
    """Writes a SavedModel; see `BertTask.export`."""
    if format != "tf_saved_model":
        raise ValueError(
            "`format` must be 'tf_saved_model', the one that takes text. "
            f"Received: {format!r}."
        )
    if input_signature is not None:
        raise ValueError(
            "`input_signature` must be None, since the signatures of an export are "
            "fixed: see kbert.export.saved_model. Received: "
            f"{input_signature!r}."
        )
    if importlib.util.find_spec("tensorflow") is None:
        raise ImportError(
            "A SavedModel is written by TensorFlow, on every backend. Received: an "
            f"environment with Keras on {keras.backend.backend()!r} and no TensorFlow. "
            "Run: pip install 'keras-kbert[tensorflow]'"
        )
    target = saved_model.check_target(filepath)
    if keras.backend.backend() == "tensorflow":
        served = task if task.lora_rank is None else _merged(task)
        saved_model.write_saved_model(target, served)
    else:
        export_in_child(
            task.save_to_preset,
            type(task).__name__,
            task.backbone.dtype_policy.name,
            target,
        )
    if verbose is None or verbose:
        sys.stderr.write(
            f"Wrote {target}: text in, answers out. The signatures are described in "
            "kbert.export.saved_model.\n"
        )


def _merged(task):
    """Returns a copy of a task without LoRA, its updates merged into the kernels."""
    config = {**task.get_config(), "lora_rank": None, "frozen": []}
    copy = type(task).from_config(config)
    variables = {weight.path: weight for weight in copy.backbone.weights}
    variables |= copy.head_weights()
    for path, value in merged_weights(task).items():
        variables[path].assign(value)
    return copy
