"""The weights of a preset folder: safetensors files with transformers' names.

A folder or a file of another format is read by the module of that format.
"""

import functools
import json
import mmap
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from kbert import presets
from kbert.bundles.reading import float32_of_bfloat16
from kbert.checkpoints import (
    assigning,
    flax,
    google,
    keras_hub,
    names,
    pickled,
    transformers_h5,
)
from kbert.checkpoints.assigning import Format, LoadReport, Weights
from kbert.checkpoints.shards import read_shards
from kbert.checkpoints.stored import StoredArray
from kbert.config import BertConfig
from kbert.presets import Preset
from kbert.strict_json import parse_json, shorten
from kbert.tokenization.wordpiece import BertTokenizer

# BERT-large's header takes 50,000 bytes. Pickles and other files begin with 8 bytes
# that stand for far more.
MAX_HEADER_BYTES = 1 << 22
_FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}

# Tensors of transformers' BERTs without a row in the table: buffers of old versions,
# and heads that kbert's models do not share.
_EXTRAS = frozenset(
    {
        "bert.embeddings.position_ids",
        "bert.embeddings.token_type_ids",
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    }
)
# Of what is no safetensors file.
_READERS = {
    "tf_model.h5": transformers_h5.read_weights,
    "flax_model.msgpack": flax.read_weights,
    "pytorch_model.bin": pickled.read_weights,
}
# What `config.json` says of a model without a head.
BARE_ENCODER: Mapping[str, Any] = {"architectures": ["BertModel"]}
# Tensors that are the same as another one: the decoder is the embedding, its bias once
# the layer's and once the head's.
_TWINS = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# The names that layer normalisation had before torch had one.
_LEGACY = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def read_weights(path: Path) -> dict[str, StoredArray]:
    """Opens a safetensors file, or the several that an index names.

    Args:
        path: of the file, or of a `*.safetensors.index.json`.

    Returns:
        The tensors by name. Each is read when numpy asks for it, from the file that
        was there when it was opened.

    Raises:
        FileNotFoundError: if an index names a file that is not there.
        ValueError: if a file is truncated or no safetensors file, or an index names a
            file outside the folder or does not list what the files hold.
    """
    if path.suffix != ".json":
        return _read_file(path)
    return read_shards(path, _read_file)


def open_weights(preset: Preset) -> Weights:
    """Opens the weights of a preset of any format; no number is read.

    Args:
        preset: the preset; of a hub, its weights are fetched.

    Raises:
        FileNotFoundError: if the preset has no weights.
        ImportError: if a library that reads the format is not installed.
        OSError: as `Preset.fetch_weights`.
        ValueError: as the format's `read_weights`.
    """
    preset.fetch_weights()
    if preset.format in ("google", "tf_hub"):
        return google.open_weights(preset)
    if preset.format == "keras_hub":
        return keras_hub.open_weights(preset)
    path = preset.weights_path()
    read = _READERS.get(path.name.removesuffix(".index.json"), read_weights)
    return Weights(str(path), HUGGING_FACE, read(path))


def load_preset(
    preset: Preset,
    variables: Mapping[str, Any],
    *,
    optional: Collection[str] = ("pooler",),
) -> LoadReport:
    """Loads the weights of a preset, after its hashes are verified.

    Args:
        preset: the preset.
        variables: as for `assigning.load_into`.
        optional: as there.

    Returns:
        What was loaded, what stays random, what was ignored.

    Raises:
        OSError, ImportError: as `open_weights`.
        ValueError: as `Preset.verify`, `open_weights` and `assigning.load_into`.
    """
    preset.verify()
    weights = open_weights(preset)
    return assigning.load_into(
        variables,
        weights.arrays,
        weights.format,
        source=weights.source,
        optional=optional,
    )


def dump(variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the variables as transformers names and shapes them, float32.

    Args:
        variables: the model's variables by kbert's path.

    Returns:
        The arrays by name: with the prefix "bert." where there is a head, as in
        transformers' models with one, and without it for a bare encoder.

    Raises:
        ValueError: if a variable has no row in the table.
    """
    arrays = assigning.dump(variables, HUGGING_FACE)
    if all(name.startswith("bert.") for name in arrays):
        return {name.removeprefix("bert."): array for name, array in arrays.items()}
    return arrays


def write_weights(variables: Mapping[str, Any], path: Path) -> None:
    """Writes the variables as a safetensors file that transformers loads.

    Args:
        variables: the model's variables by kbert's path.
        path: the file to write.
    """
    # transformers refuses a file that does not say who its tensors are laid out for.
    safetensors.numpy.save_file(dump(variables), path, metadata={"format": "pt"})


def write_folder(
    target: str | os.PathLike,
    variables: Mapping[str, Any],
    config: BertConfig,
    tokenizer: BertTokenizer,
    *,
    head: Mapping[str, Any] = BARE_ENCODER,
    longest: int | None = None,
    metadata: Mapping[str, Any] = {},
    more: Mapping[str, bytes] = {},
) -> list[str]:
    """Writes a preset, a folder that transformers loads, whole or not at all.

    Args:
        target: where to; parents are made.
        variables: the model's variables by kbert's path: numpy arrays.
        config: the model's.
        tokenizer: the model's.
        head: the keys of `config.json` that say which head there is.
        longest: most tokens of a text; None for the model's positions.
        metadata: what `kbert.json` is to hold.
        more: the content of further files, by name.

    Returns:
        What the format cannot say, a sentence each: nothing, since it is kbert's own.

    Raises:
        ValueError: if the tokenizer has more pieces than the model, a variable has no
            row in the table, or as `presets.write_preset`.
    """
    check_vocabulary(tokenizer.vocabulary_size, config)
    content = {**config.to_hugging_face(), **head}
    files = {
        "config.json": json.dumps(content, indent=2).encode(),
        **tokenizer.to_files(longest or config.max_sequence_length),
        presets.WEIGHTS: functools.partial(write_weights, variables),
        **more,
    }
    presets.write_preset(target, files, dict(metadata))
    return []


def check_vocabulary(vocabulary_size: int, config: BertConfig) -> None:
    """Checks that every id of a tokenizer has a row in the embedding.

    An embedding with more rows is fine: tables are padded for speed.

    Raises:
        ValueError: if the tokenizer has more pieces than the embedding has rows.
    """
    if vocabulary_size > config.vocabulary_size:
        raise ValueError(
            "The tokenizer's vocabulary must not be larger than the model's token "
            f"embedding. Received: {vocabulary_size} pieces and "
            f"vocabulary_size={config.vocabulary_size}. Use the vocabulary file that "
            "the model was trained with."
        )


def _read_file(path: Path) -> dict[str, StoredArray]:
    """Opens one safetensors file; its layout is checked by the format's own library."""
    if not path.is_file():
        raise FileNotFoundError(
            f"The weights must lie in {path}, and no file is there."
        )
    header = _read_header(path)
    try:
        with safetensors.safe_open(path, framework="numpy"):
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} must be a whole safetensors file; it is truncated or damaged. "
            f"Received: {path.stat().st_size} bytes, of which safetensors says: "
            f"{shorten(str(error), 500)}."
        ) from error
    start = 8 + int.from_bytes(data[:8], "little")
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        arrays[name] = StoredArray(
            f"{name!r} in {path}",
            entry["dtype"],
            shape,
            functools.partial(
                _numbers, data, start + begin, end - begin, entry["dtype"], shape
            ),
            _FLOATS,
        )
    return arrays


def _numbers(file, begin, length, dtype, shape) -> np.ndarray:
    """Returns bytes of a file as numbers; where they are floats, the file's memory.

    Args:
        file: mapped into memory.
        begin: of the bytes.
        length: of the bytes.
        dtype: as safetensors spells it.
        shape: of the array.
    """
    if sys.platform == "linux":
        file.madvise(mmap.MADV_DONTNEED)  # what was read before leaves the memory
    data = np.frombuffer(file, np.uint8, length, begin)
    if dtype == "BF16":
        array = float32_of_bfloat16(data.view("<u2"))
    else:
        array = data.view(np.dtype(_FLOATS[dtype]).newbyteorder("<"))
    return array.reshape(shape)


def _read_header(path: Path) -> dict:
    """Returns a file's header: JSON, behind its own length in 8 bytes.

    It is read before the format's library reads it, which takes what is no strict
    JSON, and headers of 100 MB.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
            raise ValueError(
                f"{path} must be a whole safetensors file, with a header of at most "
                f"{MAX_HEADER_BYTES} bytes. Received: {size} bytes, whose first 8 say "
                f"that the header has {length}: it is truncated, or in another format."
            )
        return parse_json(file.read(length), f"The header of {path}")


def _full_name(stored: str) -> str:
    """Returns the name in the table: with "bert." and without legacy spellings."""
    name = stored
    for old, new in _LEGACY.items():
        if name.endswith(old):
            name = name.removesuffix(old) + new
    full = f"bert.{name}"
    known = full in _EXTRAS or names.translate(full, "hugging_face", "kbert")
    return full if known else name


HUGGING_FACE = Format(
    "hugging_face", "config.json", _EXTRAS.__contains__, _full_name, _TWINS
)

# Tensors with transformers' names, with or without the prefix "bert.".
load_into = functools.partial(assigning.load_into, format=HUGGING_FACE)
