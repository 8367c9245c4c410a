"""The weights of KerasHub's presets: HDF5 files with the names of Keras's layers."""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kbert import keras_hub_folder
from kbert.checkpoints import assigning, names
from kbert.checkpoints.assigning import Format, LoadReport
from kbert.config import BertConfig
from kbert.files import replace_folder
from kbert.keras_hub_folder import serialised
from kbert.presets import Preset
from kbert.tokenization.vocabulary import SPECIAL_TOKENS, write_vocabulary
from kbert.tokenization.wordpiece import BertTokenizer

BACKBONE, TASK = "model.weights.h5", "task.weights.h5"

# Keras numbers layers of one class from the second on.
_FIRST_LAYER = re.compile("(?<=/)transformer_encoder(?=/)")
# Attention's weights lie there with an axis of heads: (H, N, D), (N, D), (N, D, H).
_HEADS = re.compile("_self_attention_layer/(query|key|value|output)_dense/vars/[01]$")
_DEEPEST = 8  # groups within groups
_VERSION = "0.32.0"  # whose layout is written
# Of the Adam that KerasHub compiles its tasks with: steps and learning rate.
_FRESH_OPTIMIZER = {
    "task/optimizer/vars/0": np.array(0, "int32"),
    "task/optimizer/vars/1": np.array(5e-5, "float32"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class StoredDataset:
    """A dataset of an HDF5 file, read when numpy asks for it.

    Args:
        path: of the file.
        name: of the dataset.
        shape: that of kbert's variable: axes of heads are one with their width.
    """

    path: Path
    name: str
    shape: tuple[int, ...]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """Returns the array as float32, or as `dtype`.

        Raises:
            ValueError: if it holds no floating-point numbers.
        """
        with _opened(self.path) as file:
            data = file[self.name][()]
        if data.dtype.kind != "f":
            raise ValueError(
                "A weight must be stored as floating-point numbers. Received: "
                f"{data.dtype} for {self.name!r} in {self.path}."
            )
        return data.reshape(self.shape).astype(dtype or np.float32)


def load(
    preset: Preset, variables: Mapping[str, Any], *, optional: Collection[str]
) -> LoadReport:
    """Loads the weights of a folder of KerasHub's.

    Args:
        preset: the folder.
        variables: as for `kbert.checkpoints.folder.load_into`.
        optional: as there.

    Returns:
        What was loaded, what stays random, what was ignored.

    Raises:
        FileNotFoundError: if there are no weights.
        ValueError: if a file is damaged, or holds links; and as `assigning.load_into`.
    """
    num_heads = preset.read_json(keras_hub_folder.CONFIG)["num_attention_heads"]
    datasets = read_weights(preset.path(BACKBONE), num_heads)
    if preset.has(TASK):
        head = read_weights(preset.path(TASK), num_heads)
        datasets |= {f"task/{name}": dataset for name, dataset in head.items()}
    return assigning.load_into(
        variables, datasets, KERAS_HUB, source=str(preset.folder), optional=optional
    )


def read_weights(path: Path, num_heads: int) -> dict[str, StoredDataset]:
    """Lists the datasets of an HDF5 file.

    Args:
        path: of the file.
        num_heads: N of the model.

    Raises:
        ValueError: if it is damaged, holds links, virtual or external data, or has
            another number of heads.
    """
    with _opened(path) as file:
        found = dict(_datasets(file, "", path))
        shapes = {name: dataset.shape for name, dataset in found.items()}
    return {
        name: StoredDataset(path, name, _shape(path, name, shape, num_heads))
        for name, shape in shapes.items()
    }


def _datasets(group, prefix, path) -> Iterator[tuple[str, Any]]:
    """Yields the datasets below a group; what could lead out of the file is refused."""
    if prefix.count("/") > _DEEPEST:
        raise ValueError(
            f"{path} must not nest its groups deeper than {_DEEPEST}. Received: "
            f"{prefix!r}."
        )
    for key in group:
        name, link = prefix + key, group.get(key, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise ValueError(
                f"{path} must hold its own weights. Received: {name!r}, a "
                f"{type(link).__name__}."
            )
        found = group[key]
        if isinstance(found, h5py.Group):
            yield from _datasets(found, f"{name}/", path)
        elif found.external or found.is_virtual:
            raise ValueError(
                f"{path} must hold its own weights. Received: {name!r}, whose data lie "
                "elsewhere."
            )
        else:
            yield name, found


def _shape(path, name, shape, num_heads) -> tuple[int, ...]:
    """Returns a dataset's shape, attention's heads and their width on one axis."""
    if not _HEADS.search(name) or len(shape) < 2:
        return shape
    at = 0 if "/output_dense/" in name else len(shape) - 2
    if shape[at] != num_heads:
        raise ValueError(
            f"{name!r} of {path} must have {num_heads} heads, as config.json says. "
            f"Received: the shape {shape}."
        )
    return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Opens an HDF5 file to read; turns the library's errors into one that names it."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, RuntimeError) as error:
        raise ValueError(
            f"{path} must be a whole HDF5 file; it is truncated or damaged. h5py says: "
            f"{error}."
        ) from error


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
) -> list[str]:
    """Writes a folder that KerasHub's `from_preset` loads, whole or not at all.

    A classifier's head, where `variables` has one, makes it a BertTextClassifier, one
    of masked tokens a BertMaskedLM.

    Args:
        folder: where to; parents are made.
        variables: the model's variables by kbert's path: numpy arrays.
        config: the model's.
        tokenizer: the model's.
        head: activation and layer_norm_epsilon of a head of masked tokens, where these
            are not the configuration's.

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
    if (Path(folder).expanduser() / keras_hub_folder.CONFIG).exists():
        raise ValueError(
            "A preset of KerasHub's is not written over another one. Received: "
            f"{os.fspath(folder)!r}, which has a config.json. Name another folder."
        )
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
    task_files = _task_files(files, config, variables)
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
        if task_files:
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
            f"{sorted(set(nameless.values()))}. Write the encoder alone."
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


def _task_files(files: dict, config: BertConfig, variables: Mapping) -> dict[str, dict]:
    """Returns the files that make a folder a task's: {} without a head."""
    if "classifier/bias" in variables:
        name, module = "BertTextClassifier", "bert_text_classifier"
        own = {
            "num_classes": len(variables["classifier/bias"]),
            "activation": "linear",
            "dropout": config.head_dropout,
        }
        options: dict = {}
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
            "sequence_length": config.max_sequence_length,
            "truncate": "round_robin",
            **options,
        },
    )
    parts = {"backbone": files[keras_hub_folder.CONFIG], "preprocessor": preprocessor}
    task = serialised(name, module, {**parts, "name": module, **own})
    return {"preprocessor.json": preprocessor, keras_hub_folder.TASK: task}


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
