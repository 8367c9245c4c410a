"""The sizes in a configuration against those in a file, before a model is built."""

import dataclasses
import warnings
from collections.abc import Collection

import numpy as np

from kbert.checkpoints import folder, names
from kbert.config import BertConfig
from kbert.presets import Preset
from kbert.strict_json import errors_naming


@dataclasses.dataclass(frozen=True, eq=False)
class _Blank:
    """Stands for a variable, or for an array in a file: a shape without numbers.

    Args:
        shape: of both.
        stored: the array in a file; its dtype is checked, its numbers stay unread.
    """

    shape: tuple[int, ...]
    stored: folder.StoredArray | None = None

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """Returns zeros of the shape, all in the same place of memory."""
        if self.stored is not None:
            self.stored.check_dtype()
        return np.broadcast_to(np.float32(0), self.shape)

    def assign(self, value) -> None:
        """Takes what a variable would take."""


def expected_shapes(
    config: BertConfig, heads: Collection[str] = ("pooler",)
) -> dict[str, tuple[int, ...]]:
    """Returns {kbert's path: shape} of a backbone that is not built.

    Example:
    >>> shapes = expected_shapes(BertConfig(num_layers=1))
    >>> shapes["encoder_layer_0/intermediate/kernel"]
    (768, 3072)
    """
    hidden, inner = config.hidden_dim, config.intermediate_dim
    special = {
        "token_embedding/embeddings": (config.vocabulary_size, hidden),
        "position_embedding/embeddings": (config.max_sequence_length, hidden),
        "segment_embedding/embeddings": (config.num_segments, hidden),
        "intermediate/kernel": (hidden, inner),
        "intermediate/bias": (inner,),
        "{i}/output/kernel": (inner, hidden),
    }
    shapes = {}
    for row in names.TABLE:
        if names.head_of(row.kbert) not in (None, *heads):
            continue
        usual = (hidden, hidden) if row.kbert.endswith("/kernel") else (hidden,)
        shape = next((special[k] for k in special if row.kbert.endswith(k)), usual)
        for index in range(config.num_layers if "{i}" in row.kbert else 1):
            shapes[row.kbert.replace("{i}", str(index))] = shape
    return shapes


def read_architecture(preset: Preset, *, load_weights: bool) -> BertConfig:
    """Returns what a preset's `config.json` asks for.

    Args:
        preset: the preset.
        load_weights: whether its weights are needed, and so compared.

    Raises:
        FileNotFoundError, ValueError: as `BertConfig` and `check_preset`.
    """
    with errors_naming(preset.folder):
        config = BertConfig.from_hugging_face(preset.read_json("config.json"))
    if load_weights:
        check_preset(preset, config)
    return config


def check_preset(preset: Preset, config: BertConfig) -> None:
    """Compares a preset's weights with its configuration, reading no weight.

    A configuration is a few bytes that may ask for any amount of memory; a model is
    built only where the file has the numbers for it. (Folders of Google's and of
    KerasHub's, and built-in presets, are compared when they are loaded.)

    Args:
        preset: the preset.
        config: its architecture.

    Raises:
        FileNotFoundError: if a folder has no weights.
        ValueError: as `Preset.verify`, `read_weights` and `load_into`.
    """
    if preset.is_builtin:
        return  # what kbert ships is no stranger's
    preset.verify()
    if preset.format != "hugging_face":
        return  # TensorFlow's and Keras's files are compared when they are loaded
    path = preset.weights_path()
    with errors_naming(preset.folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading tells what stays random
        arrays = folder.read_weights(path)
        folder.load_into(
            {key: _Blank(shape) for key, shape in expected_shapes(config).items()},
            {name: _Blank(array.shape, array) for name, array in arrays.items()},
            source=str(path),
            optional=("pooler",),
        )
