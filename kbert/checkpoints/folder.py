"""The weights of a preset folder: safetensors files with transformers' names.

A folder of another format is read by the module of that format.
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from kbert.checkpoints import assigning, google, keras_hub, names
from kbert.checkpoints.assigning import Format, LoadReport
from kbert.config import BertConfig
from kbert.files import path_inside
from kbert.presets import Preset
from kbert.strict_json import check_schema, parse_json, read_json, shorten

# BERT-large's header takes 50,000 bytes. Pickles and other files begin with 8 bytes
# that stand for far more.
MAX_HEADER_BYTES = 1 << 22
_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}

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
# Tensors that are the same as another one: the decoder is the embedding, its bias once
# the layer's and once the head's.
_TWINS = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# The names that layer normalisation had before torch had one.
_LEGACY = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclasses.dataclass(frozen=True, eq=False)
class StoredArray:
    """An array in a file, read when numpy asks for it.

    Args:
        where: the file and the tensor's name, for messages.
        dtype: as safetensors spells it.
        shape: of the array.
        data: the array's bytes, mapped into memory.
    """

    where: str
    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """Returns the array as float32, or as `dtype`; raises as `check_dtype`."""
        self.check_dtype()
        array = self.data.view(_FLOATS[self.dtype])
        if self.dtype == "BF16":  # the upper half of a float32
            array = (array.astype("<u4") << 16).view("<f4")
        return array.reshape(self.shape).astype(dtype or np.float32)

    def check_dtype(self) -> None:
        """Raises ValueError if the file holds no floating-point numbers there."""
        if self.dtype not in _FLOATS:
            raise ValueError(
                f"A weight must be stored as one of {sorted(_FLOATS)}. "
                f"Received: {self.dtype} for {self.where}."
            )


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
    listed: Any = read_json(path).get("weight_map")
    check_schema({"weight_map": listed}, {"weight_map": {...: str}}, str(path))
    arrays = {}
    for filename in sorted(set(listed.values())):
        for name, array in _read_file(path_inside(path.parent, filename)).items():
            if listed.get(name) != filename:
                raise ValueError(
                    f"{path} must list every tensor of its files. Received: {name!r} "
                    f"in {filename}, which it places in {listed.get(name)!r}."
                )
            arrays[name] = array
    missing = sorted(set(listed) - set(arrays))
    if missing:
        raise ValueError(f"{path} lists tensors that its files lack: {missing}.")
    return arrays


def load_preset(
    preset: Preset,
    variables: Mapping[str, Any],
    *,
    optional: Collection[str] = ("pooler",),
) -> LoadReport:
    """Loads the weights of a preset, after its hashes are verified.

    Args:
        preset: the preset.
        variables: as for `load_into`.
        optional: as for `load_into`.

    Returns:
        What was loaded, what stays random, what was ignored.

    Raises:
        FileNotFoundError: if the preset has no weights.
        ValueError: as `Preset.verify`, `read_weights` and `load_into`.
    """
    preset.verify()
    if preset.format == "google":
        return google.load(preset, variables, optional=optional)
    if preset.format == "keras_hub":
        return keras_hub.load(preset, variables, optional=optional)
    path = preset.weights_path()
    return load_into(variables, read_weights(path), source=str(path), optional=optional)


def load_into(
    variables: Mapping[str, Any],
    arrays: Mapping[str, Any],
    *,
    source: str,
    optional: Collection[str] = (),
) -> LoadReport:
    """Assigns tensors with transformers' names to variables, all or none.

    Args:
        variables: the model's variables by kbert's path: objects with `shape` and
            `assign`.
        arrays: the tensors by name, with or without the prefix "bert."; numpy arrays
            or `StoredArray`s.
        source: where they come from, for messages.
        optional: the heads that may be absent from `arrays`, as a whole, like
            "pooler"; they keep their values, which is told in a warning.

    Returns:
        What was loaded, what stays random, what was ignored.

    Raises:
        ValueError: before anything is assigned, if a tensor is missing, is nobody's,
            is there twice, or has the wrong shape.
    """
    return assigning.load_into(
        variables, arrays, HUGGING_FACE, source=source, optional=optional
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
            data = np.asarray(np.memmap(path, np.uint8, mode="r"))
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} must be a whole safetensors file; it is truncated or damaged. "
            f"Received: {path.stat().st_size} bytes, of which safetensors says: "
            f"{shorten(str(error), 500)}."
        ) from error
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        arrays[name] = StoredArray(
            f"{name!r} in {path}",
            entry["dtype"],
            tuple(entry["shape"]),
            data[start + begin : start + end],
        )
    return arrays


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
