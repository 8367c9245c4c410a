"""The weights of KerasHub's presets: HDF5 files with the names of Keras's layers."""

import importlib.metadata
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kbert import keras_hub_folder
from kbert.bundles.objects import joined_heads
from kbert.checkpoints import assigning, hdf5, names
from kbert.checkpoints.assigning import Format, Weights
from kbert.checkpoints.stored import StoredArray
from kbert.config import BertConfig
from kbert.files import replace_folder
from kbert.keras_hub_folder import serialised
from kbert.presets import Preset
from kbert.stale_files import check_no_other_model
from kbert.tokenization.vocabulary import SPECIAL_TOKENS, write_vocabulary
from kbert.tokenization.wordpiece import BertTokenizer

BACKBONE, TASK = "model.weights.h5", "task.weights.h5"

# Keras numbers layers of one class from the second on.
_FIRST_LAYER = re.compile("(?<=/)transformer_encoder(?=/)")
# Attention's weights lie there with an axis of heads: (H, N, D), (N, D), (N, D, H).
_HEADS = re.compile("_self_attention_layer/(query|key|value|output)_dense/vars/[01]$")
_VERSION = "0.32.0"  # whose layout is written
# Of the Adam that KerasHub compiles its tasks with: steps and learning rate.
_FRESH_OPTIMIZER = {
    "task/optimizer/vars/0": np.array(0, "int32"),
    "task/optimizer/vars/1": np.array(5e-5, "float32"),
}


def open_weights(preset: Preset) -> Weights:
    """Opens the files of weights in a folder of KerasHub's.

    Args:
        preset: the folder.

    Raises:
        FileNotFoundError: if there are no weights.
        ValueError: if a file is damaged, or holds links.
    """
    num_heads = preset.read_json(keras_hub_folder.CONFIG)["num_attention_heads"]
    datasets = read_weights(preset.path(BACKBONE), num_heads)
    if preset.has(TASK):
        head = read_weights(preset.path(TASK), num_heads)
        datasets |= {f"task/{name}": dataset for name, dataset in head.items()}
    return Weights(str(preset.folder), KERAS_HUB, datasets)


def read_weights(path: Path, num_heads: int) -> dict[str, StoredArray]:
    """Lists the datasets of an HDF5 file.

    Args:
        path: of the file.
        num_heads: N of the model.

    Raises:
        ValueError: if it is damaged, holds links, virtual or external data, or has
            another number of heads.
    """
    arrays = {}
    for name, stored in hdf5.read_datasets(path).items():
        shape = _shape(path, name, stored.shape, num_heads)
        arrays[name] = stored.reshaped(shape)
    return arrays


def _shape(path, name, shape, num_heads) -> tuple[int, ...]:
    """Returns a dataset's shape, attention's heads and their width on one axis."""
    if not _HEADS.search(name) or len(shape) < 2:
        return shape
    at = 0 if "/output_dense/" in name else len(shape) - 2
    return joined_heads(shape, at, num_heads, f"{name!r} of {path}")


def _full_name(stored: str) -> str:
    """Returns the name in the table, where every layer has a number."""
    return _FIRST_LAYER.sub("transformer_encoder_0", stored)


def _is_extra(name: str) -> bool:
    """Returns whether a dataset is known, and no weight of a model of kbert."""
    return name.startswith("task/optimizer/")


def write_folder(
    folder: str | os.PathLike,
    variables: Mapping[str, Any],
    config: BertConfig,
    tokenizer: BertTokenizer,
    head: Mapping[str, Any] | None = None,
    embedding: Mapping[str, Any] | None = None,
) -> list[str]:
    """Writes a folder that KerasHub's `from_preset` loads, whole or not at all.

    A classifier's head, where `variables` has one, makes it a BertTextClassifier, one
    of masked tokens a BertMaskedLM, and `embedding` a BertTextEmbedder.

    Args:
        folder: where to; parents are made.
        variables: the model's variables by kbert's path: numpy arrays.
        config: the model's.
        tokenizer: the model's.
        head: activation and layer_norm_epsilon of a head of masked tokens, where these
            are not the configuration's.
        embedding: pooling, normalize and special_tokens of an embedder, and longest,
            the most tokens of a text.

    Returns:
        What KerasHub does otherwise, a sentence each.

    Raises:
        ValueError: if KerasHub would compute something else, a variable has no row in
            the table, KerasHub has no task with the head, or the folder holds another
            preset.
    """
    variables, told = _fitted(variables, config)
    arguments = keras_hub_folder.from_transformers(config.to_hugging_face())
    if "mlm/bias" in variables:
        _check_masked_head(head, config)
    if embedding and not embedding["special_tokens"]:
        raise ValueError(
            "KerasHub's BertTextEmbedder counts [CLS] and [SEP]. Received: "
            "special_tokens=False, with which it would answer otherwise."
        )
    check_no_other_model(folder, "A preset of KerasHub's")
    arrays = {
        name.replace("transformer_encoder_0/", "transformer_encoder/"): (
            _with_heads(name, array, config.num_heads)
        )
        for name, array in assigning.dump(variables, KERAS_HUB).items()
    }
    files = _tokenizer_files(tokenizer)
    files[keras_hub_folder.CONFIG] = serialised(
        "BertBackbone", "bert_backbone", arguments
    )
    task_files = _task_files(files, config, variables, embedding)
    files |= task_files
    files["metadata.json"] = {
        "keras_version": importlib.metadata.version("keras"),
        "keras_hub_version": _VERSION,
        "parameter_count": int(sum(array.size for array in arrays.values())),
        "tasks": ["MaskedLM", "TextClassifier", "TextEmbedder"],
    }

    def write(new: Path) -> None:
        for filename, content in files.items():
            text = json.dumps(content, indent=4, ensure_ascii=False)
            (new / filename).write_text(text, encoding="utf-8")
        vocabulary = new / keras_hub_folder.VOCABULARY
        vocabulary.parent.mkdir(parents=True)
        vocabulary.write_bytes(write_vocabulary(tokenizer.get_config()["vocabulary"]))
        _write_h5(new / BACKBONE, arrays, "layers/")
        if task_files and not embedding:  # whose head has no weights
            _write_h5(new / TASK, {**arrays, **_FRESH_OPTIMIZER}, "task/")

    replace_folder(folder, write, lambda filename: True)
    return [*told, *_differences(config, tokenizer)]


def _check_masked_head(head: Mapping[str, Any] | None, config: BertConfig) -> None:
    """Refuses a head of masked tokens that KerasHub would compute otherwise."""
    theirs = keras_hub_folder.MASKED_LM_HEAD
    ours = head or {
        "activation": config.activation,
        "layer_norm_epsilon": config.layer_norm_epsilon,
    }
    if ours != theirs:
        raise ValueError(
            f"KerasHub's head of masked tokens computes with {theirs}, whatever its "
            f"encoder does. Received: {ours}, with which it would answer otherwise. "
            "Build the model with head_activation='gelu', head_epsilon=1e-5 and train "
            "it a little, or write the encoder alone."
        )


def _fitted(variables: Mapping[str, Any], config: BertConfig) -> tuple[dict, list[str]]:
    """Returns what KerasHub has a place for, with the pooler that it wants, and why."""
    told, fitted = [], dict(variables)
    nameless = {path: names.head_of(path) for path in fitted if _has_no_name(path)}
    if nameless and "mlm/bias" not in fitted:
        raise ValueError(
            "KerasHub has no task with this head. Received: weights of "
            f"{sorted(map(str, {*nameless.values()}))}. Write the encoder alone."
        )
    for path in nameless:
        del fitted[path]
    if nameless:
        told.append(f"KerasHub has no head of next sentences: dropped {list(nameless)}")
    if "pooler/dense/kernel" not in fitted:
        width = config.hidden_dim
        fitted["pooler/dense/kernel"] = np.zeros((width, width), np.float32)
        fitted["pooler/dense/bias"] = np.zeros(width, np.float32)
        told.append("KerasHub wants a pooler, which this model lacks: zeros are there")
    return fitted, told


def _has_no_name(path: str) -> bool:
    """Returns whether a variable is of a head that KerasHub has not."""
    translated = names.translate(path, "kbert", "keras_hub")
    return translated is None and names.head_of(path) is not None


def _write_h5(path: Path, arrays: Mapping[str, np.ndarray], prefix: str) -> None:
    """Writes the arrays whose names begin so."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            if name.startswith(prefix):
                file[name.removeprefix("task/")] = array


def _with_heads(name: str, array: np.ndarray, num_heads: int) -> np.ndarray:
    """Splits attention's axis of heads and their width."""
    if not _HEADS.search(name) or name.endswith("output_dense/vars/1"):
        return array
    at = 0 if "/output_dense/" in name else array.ndim - 1
    return array.reshape(*array.shape[:at], num_heads, -1, *array.shape[at + 1 :])


def _tokenizer_files(tokenizer: BertTokenizer) -> dict[str, dict]:
    """Returns `tokenizer.json` of a tokenizer, and its options for other files."""
    options = tokenizer.get_config()
    accents = options["strip_accents"]
    config = {
        "name": "bert_tokenizer",
        "dtype": "int32",
        "config_file": keras_hub_folder.TOKENIZER,
        "vocabulary": None,
        "lowercase": options["lowercase"],
        "strip_accents": options["lowercase"] if accents is None else accents,
        "special_tokens_in_strings": options["special_tokens_in_text"],
    }
    described = serialised("BertTokenizer", "bert_tokenizer", config)
    return {keras_hub_folder.TOKENIZER: described}


def _task_files(
    files: dict, config: BertConfig, variables: Mapping, embedding: Mapping | None
) -> dict[str, dict]:
    """Returns the files that make a folder a task's: {} without a head."""
    options: dict = {}
    longest = config.max_sequence_length
    if embedding:
        longest = embedding.get("longest", longest)
        name, module = "BertTextEmbedder", "bert_text_embedder"
        own = {
            "pooling_mode": embedding["pooling"],
            "normalize": embedding["normalize"],
        }
    elif "classifier/bias" in variables:
        name, module = "BertTextClassifier", "bert_text_classifier"
        own = {
            "num_classes": len(variables["classifier/bias"]),
            "activation": "linear",
            "dropout": config.head_dropout,
        }
    elif "mlm/bias" in variables:
        name, module, own = "BertMaskedLM", "bert_masked_lm", {}
        # Google's 20 of 128.
        most = max(1, round(config.max_sequence_length * 20 / 128))
        options = {
            "mask_selection_rate": 0.15,
            "mask_selection_length": most,
            "mask_token_rate": 0.8,
            "random_token_rate": 0.1,
        }
    else:
        return {}
    preprocessor = serialised(
        f"{name}Preprocessor",
        f"{module}_preprocessor",
        {
            "name": f"{module}_preprocessor",
            "tokenizer": files[keras_hub_folder.TOKENIZER],
            "config_file": "preprocessor.json",
            "sequence_length": longest,
            "truncate": "round_robin",
            **options,
        },
    )
    parts = {"backbone": files[keras_hub_folder.CONFIG], "preprocessor": preprocessor}
    task = serialised(name, module, {**parts, "name": module, **own})
    return {keras_hub_folder.PREPROCESSOR: preprocessor, keras_hub_folder.TASK: task}


def _differences(config: BertConfig, tokenizer: BertTokenizer) -> list[str]:
    """Returns what KerasHub does otherwise with the same files."""
    options = tokenizer.get_config()
    told = ["KerasHub cuts text otherwise than Google's code in rare cases"]
    if options["special_tokens"] != SPECIAL_TOKENS or options["extra_special_tokens"]:
        told.append("KerasHub knows the special tokens of Google's alone")
    if config.initializer_range != 0.02:
        told.append("KerasHub makes new weights with a standard deviation of 0.02")
    return told


KERAS_HUB = Format("keras_hub", keras_hub_folder.CONFIG, _is_extra, _full_name)
