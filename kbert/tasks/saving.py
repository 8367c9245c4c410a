"""Tasks from and to preset folders, and into served models."""

import dataclasses
import importlib.util
import inspect
import pathlib
import sys
import tempfile
import warnings

import keras

import kbert.checkpoints.folder as checkpoint
from kbert import presets
from kbert.backbone import BertBackbone, freeze
from kbert.checkpoints import names, sizes
from kbert.config import BertConfig
from kbert.export import saved_model
from kbert.export.child_process import export_in_child
from kbert.hubs import handles, publishing
from kbert.preprocessing.preprocessor import BertPreprocessor
from kbert.strict_json import errors_naming

# transformers' models whose head is called "classifier".
_CLASSIFIERS = {
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForMultipleChoice",
}


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
        if sequence_length is not None:  # in spite of what the preset was cut at
            asked["max_sequence_length"] = architecture.max_sequence_length
        preprocessor = BertPreprocessor.from_preset(
            preset, **{key: value for key, value in asked.items() if value is not None}
        )
        check_preprocessor(preprocessor, architecture)
    return PresetParts(preset, config, architecture, preprocessor)


def check_arguments(cls, own):
    """Refuses arguments of `from_preset` that a class does not have.

    Args:
        cls: the task's class.
        own: {name: value} of those that are not every task's.

    Raises:
        TypeError: naming them, and what the class takes.
    """
    unknown = sorted({*own} - {*cls.preset_arguments})
    if unknown:
        common = list(inspect.signature(cls.from_preset).parameters)[1:-1]
        raise TypeError(
            f"{cls.__name__}.from_preset takes {common}, as every task, and "
            f"{sorted(cls.preset_arguments)} of its own. Received: {unknown}."
        )


def task_of_preset(cls, parts, own, encoder, name, load_weights):
    """Builds a task of what a preset says and what was asked for.

    Args:
        cls: the task's class.
        parts: what the preset says.
        own: {name: value} of the class's own arguments that were passed.
        encoder: remat and dtype, as for `BertBackbone`.
        name: of the model.
        load_weights: False for random weights.
    """
    names_of_own = [key for key in cls.preset_arguments if key != "long_text"]
    arguments, differs = cls.arguments_of(parts, dict.fromkeys(names_of_own) | own)
    # With random weights only where none are about to come.
    backbone = BertBackbone.from_architecture(
        parts.architecture, random_weights=not load_weights, **encoder
    )
    task = cls(backbone, parts.preprocessor, **arguments, name=name)
    if load_weights:
        load_weights_of(task, parts, differs)
    return task


def saved_labels(config, architecture) -> list[str] | None:
    """Returns the labels of a head, None where the preset has no such head.

    Args:
        config: the content of `config.json`.
        architecture: transformers' class that has the head.
    """
    if architecture not in (config.get("architectures") or ()):
        return None
    by_index = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return [by_index[index] for index in sorted(by_index, key=int)]


def load_weights_of(task, parts, differs):
    """Loads a preset's weights, those of the head where it is the task's.

    Args:
        task: a `BertTask`, whose head stays random where the preset has another or
            none, which is told; as are the preset's heads that it does not use.
        parts: what the preset says.
        differs: how its head differs from the task's; "" where it does not.

    Raises:
        ValueError: as `checkpoints.folder.load_preset`.
    """
    (own,) = task.hugging_face_head()["architectures"]
    others = _CLASSIFIERS & {*(parts.config.get("architectures") or ())} - {own}
    if others and own in _CLASSIFIERS:
        differs = f"{sorted(others)}, not for {own}"
    variables = task_variables(task)
    heads = {head for path in variables if (head := names.head_of(path))}
    if differs:
        warnings.warn(
            f"The head of {parts.preset.name} is for {differs}: a new one is "
            "random. Train it before its answers mean anything.",
            stacklevel=4,
        )
        for path in task.head_weights():
            del variables[path]
    report = checkpoint.load_preset(parts.preset, variables, optional=heads)
    task.provenance = parts.preset.provenance()
    if report.unused:
        sys.stderr.write(
            f"{report.source} also holds {list(report.unused)}, which this "
            f"{type(task).__name__} does not use.\n"
        )


def task_variables(task) -> dict:
    """Returns {path of `checkpoints/names.py`: variable} of what a task computes with.

    Without LoRA's, which no checkpoint has.

    Args:
        task: a `BertTask`.
    """
    encoder = {
        weight.path: weight
        for weight in task.backbone.weights
        if "lora_kernel" not in weight.path
        and (task.uses_pooler or names.head_of(weight.path) != "pooler")
    }
    return {**encoder, **task.head_weights()}


def check_parts(cls, config, preprocessor):
    """Refuses an encoder that cannot answer a task, or a preprocessor not made for it.

    Args:
        cls: the task's class.
        config: the backbone's `BertConfig`.
        preprocessor: a `BertPreprocessor`, or None.

    Raises:
        ValueError: if the task reads [CLS] and the encoder from left to right, or as
            `check_preprocessor`.
    """
    if cls.uses_pooler:
        config.require_both_directions(cls.__name__)
    if preprocessor is not None:
        check_preprocessor(preprocessor, config)


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


def task_from_config(cls, config, custom_objects=None):
    """Builds the task that `BertTask.get_config` described.

    Args:
        cls: the task's class.
        config: what its `get_config` returned.
        custom_objects: as in Keras.

    Returns:
        The task, LoRA and frozen parts too.
    """
    config = dict(config)
    lora_rank, frozen = config.pop("lora_rank"), config.pop("frozen")
    for part in ("backbone", "preprocessor"):
        config[part] = keras.saving.deserialize_keras_object(
            config[part], custom_objects=custom_objects
        )
    task = cls(**config)
    if lora_rank is not None:
        task.enable_lora(lora_rank)
    freeze(task, frozen)
    return task


def save_task(task, folder):
    """Writes a preset folder, which is a Hugging Face checkpoint folder as well.

    LoRA is merged. An existing preset is replaced whole, or not at all.

    Args:
        task: the `BertTask`.
        folder: its path.

    Raises:
        ValueError: if the task has no preprocessor.
    """
    preprocessor = task.require_preprocessor()
    checkpoint.write_folder(
        folder,
        merged_weights(task),
        task.backbone.config,
        preprocessor.tokenizer,
        head=task.hugging_face_head(),
        longest=preprocessor.max_length,
        more=task.preset_files(),
        metadata={
            "task": type(task).__name__,
            **task.preset_metadata(),
            "preprocessing": {
                "sequence_length": preprocessor.sequence_length,
                "max_sequence_length": preprocessor.max_sequence_length,
                "long_text": preprocessor.long_text,
            },
            "provenance": dict(task.provenance),
        },
    )


def push_task(task, repository, *, private=None, licence=None):
    """Uploads the preset to the Hugging Face Hub, with a model card.

    Anyone who may read it loads it by `from_preset("hf://organisation/name")`.

    Args:
        task: the `BertTask`.
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
    weights = task_variables(task)
    for layer in task.backbone.encoder_layers:
        for name in ("query", "value"):
            path = f"{layer.name}/attention/{name}/kernel"
            weights[path] = getattr(layer.attention, name).kernel
    return {  # by way of tensors: numpy warns of TensorFlow's variables
        path: keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(weight))
        for path, weight in weights.items()
    }


def export_task(
    task, filepath, format="tf_saved_model", verbose=None, input_signature=None
):
    """Writes a SavedModel: text in, the person's answer out.

    Args:
        task: the `BertTask`.
        filepath: folder to write.
        format: "tf_saved_model".
        verbose: whether to say what was written.
        input_signature: None; `kbert.export.saved_model` documents what is fixed.

    Raises:
        ImportError: if TensorFlow is not installed.
        NotImplementedError: if the task has no served form.
        ValueError: if `format` or `input_signature` is another, or the task has no
            preprocessor.
    """
    task.require_preprocessor()
    if not task.is_served:
        raise NotImplementedError(
            f"There is no served form of a {type(task).__name__} yet. Keep it with "
            "`save_to_preset`, which writes a folder that transformers loads too, or "
            f"`export` its `backbone`. Received: filepath={str(filepath)!r}."
        )
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
    variables = task_variables(copy)
    for path, value in merged_weights(task).items():
        variables[path].assign(value)
    return copy
