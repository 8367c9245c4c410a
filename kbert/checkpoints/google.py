"""Checkpoints of google-research/bert: TensorFlow 1 variables by name, no graph."""

import contextlib
import dataclasses
import fnmatch
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kbert import google_release
from kbert.checkpoints import assigning, names
from kbert.checkpoints.assigning import Format, LoadReport
from kbert.config import BertConfig
from kbert.files import replace_folder
from kbert.presets import Preset
from kbert.tokenization.vocabulary import SPECIAL_TOKENS
from kbert.tokenization.wordpiece import BertTokenizer

PREFIX = "bert_model.ckpt"

_STEP = "global_step"
_SLOTS = ("/adam_m", "/adam_v")  # of AdamWeightDecayOptimizer in optimization.py
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # in what tf.train.Checkpoint writes
_FLOATS = ("bfloat16", "float16", "float32", "float64")
# What Google's tokenization.py does, which has no options but `do_lower_case`.
_TOKENIZER = {
    "split_on_cjk": True,
    "special_tokens_in_text": False,
    "special_tokens": SPECIAL_TOKENS,
    "extra_special_tokens": [],
    "max_word_length": 200,
}
_DROPOUT = 0.1  # in front of the logits in run_classifier.py


@dataclasses.dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor in a checkpoint, read when numpy asks for it.

    Args:
        where: the file and the tensor's name, for messages.
        dtype: as TensorFlow spells it.
        shape: of the tensor.
        read: returns it.
    """

    where: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """Returns the tensor as float32, or as `dtype`.

        Raises:
            ValueError: if it is damaged, or holds no floating-point numbers.
        """
        if self.dtype not in _FLOATS:
            raise ValueError(
                f"A weight must be stored as one of {list(_FLOATS)}. "
                f"Received: {self.dtype} for {self.where}."
            )
        return np.asarray(self.read()).astype(dtype or np.float32)


def load(
    preset: Preset, variables: Mapping[str, Any], *, optional: Collection[str]
) -> LoadReport:
    """Loads the weights of a folder of Google's.

    Args:
        preset: the folder.
        variables: as for `kbert.checkpoints.folder.load_into`.
        optional: as there.

    Returns:
        What was loaded, what stays random, what was ignored: the optimizer's slots,
        the step, other heads.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ImportError: if TensorFlow is not installed.
        ValueError: if there are several, or one is damaged; and as
            `assigning.load_into`.
    """
    prefix = checkpoint_prefix(preset)
    tensors = read_checkpoint(prefix)
    return assigning.load_into(
        variables, tensors, GOOGLE, source=str(prefix), optional=optional
    )


def checkpoint_prefix(preset: Preset) -> Path:
    """Returns the path that the files of the one checkpoint in a folder begin with.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if there are several, or a file is a link out of the folder.
    """
    present = sorted(os.listdir(preset.folder))
    found = [file for file in present if fnmatch.fnmatchcase(file, "*.ckpt*.index")]
    if not found:
        raise FileNotFoundError(
            f"The folder {preset.name!r} must have a checkpoint of TensorFlow, like "
            f"{PREFIX}.index and {PREFIX}.data-00000-of-00001. In {preset.folder} "
            f"there are: {present}. `load_weights=False` gives random weights."
        )
    if len(found) > 1:
        raise ValueError(
            f"The folder {preset.name!r} must have one checkpoint. Received: {found}. "
            "Put the files of the one that is meant into a folder of their own."
        )
    prefix = found[0].removesuffix(".index")
    for filename in present:
        if filename == found[0] or filename.startswith(f"{prefix}.data-"):
            preset.path(filename)  # a link out of the folder is refused here
    return preset.folder / prefix


def read_checkpoint(prefix: Path) -> dict[str, StoredTensor]:
    """Opens a checkpoint by the beginning of its files' names.

    Args:
        prefix: like "folder/bert_model.ckpt".

    Returns:
        The tensors by name. Each is read when numpy asks for it.

    Raises:
        ImportError: if TensorFlow is not installed.
        ValueError: if the files are damaged, or TensorFlow 2's `tf.train.Checkpoint`
            wrote them.
    """
    tf = _tensorflow()
    with _damage_told(tf, prefix):
        reader = tf.train.load_checkpoint(str(prefix))
        shapes = reader.get_variable_to_shape_map()
        dtypes = reader.get_variable_to_dtype_map()
    if _OBJECT_GRAPH in shapes:
        raise ValueError(
            f"{prefix} must hold variables by the names of google-research/bert. "
            f"Received: a checkpoint of objects, as tf.train.Checkpoint writes it."
        )

    def reading(name: str) -> Callable[[], np.ndarray]:
        def read() -> np.ndarray:
            with _damage_told(tf, prefix):
                return reader.get_tensor(name)

        return read

    return {
        name: StoredTensor(
            f"{name!r} in {prefix}",
            dtypes[name].name,
            tuple(shapes[name]),
            reading(name),
        )
        for name in sorted(shapes)
    }


def heads(preset: Preset) -> dict[str, int]:
    """Returns {head, as `names.head_of` calls it: length of its bias} of a checkpoint.

    Args:
        preset: a folder of Google's.

    Raises:
        ImportError, FileNotFoundError, ValueError: as `load`.
    """
    tensors = read_checkpoint(checkpoint_prefix(preset))
    found = {}
    for row in names.HEADS:
        bias = tensors.get(row.google)
        if row.kbert.endswith("/bias") and bias is not None and bias.shape:
            found[row.kbert.split("/")[0]] = bias.shape[0]
    return found


def write_checkpoint(
    folder: str | os.PathLike,
    variables: Mapping[str, Any],
    config: BertConfig,
    tokenizer: BertTokenizer,
    head: Mapping[str, Any] | None = None,
) -> list[str]:
    """Writes a folder that google-research/bert restores, whole or not at all.

    The files are `bert_model.ckpt.*`, `bert_config.json` and `vocab.txt`; beside them
    lie the tokenizer's options for kbert and transformers, which Google's code takes
    as flags.

    Args:
        folder: where to; parents are made.
        variables: the model's variables by kbert's path: numpy arrays.
        config: the model's.
        tokenizer: the model's.
        head: activation and layer_norm_epsilon of a head of masked tokens, where these
            are not the configuration's.

    Returns:
        What Google's code does otherwise, a sentence each.

    Raises:
        ImportError: if TensorFlow is not installed.
        ValueError: if Google's code would compute something else, a variable has no
            row in the table, or the folder holds a model in transformers' format.
    """
    tf = _tensorflow()
    content = google_release.from_transformers(config.to_hugging_face())
    if head:
        raise ValueError(
            "Google's code computes the head of masked tokens as the encoder: with "
            f"activation={config.activation!r} and an epsilon of "
            f"{config.layer_norm_epsilon}. Received: a head with {dict(head)}."
        )
    arrays = assigning.dump(variables, GOOGLE)
    if (Path(folder).expanduser() / "config.json").exists():
        raise ValueError(
            "A checkpoint of Google's is not written over a model in transformers' "
            f"format. Received: {os.fspath(folder)!r}, which has a config.json. Name "
            "another folder."
        )
    files = {
        google_release.CONFIG: (json.dumps(content, indent=2) + "\n").encode(),
        **tokenizer.to_files(config.max_sequence_length),
    }

    def keep(filename: str) -> bool:
        """Returns whether a file of the old folder is none of a checkpoint's."""
        old = any(fnmatch.fnmatchcase(filename, p) for p in ("*.ckpt*", "checkpoint"))
        return not old and filename not in files

    def write(new: Path) -> None:
        for filename, data in files.items():
            (new / filename).write_bytes(data)
        # tf.train.Checkpoint would write names of its own.
        with tf.device("CPU:0"):
            tf.raw_ops.SaveV2(
                prefix=str(new / PREFIX),
                tensor_names=list(arrays),
                shape_and_slices=[""] * len(arrays),
                tensors=[tf.constant(array) for array in arrays.values()],
            )

    replace_folder(folder, write, keep)
    return _differences(config, tokenizer, "classifier/bias" in variables)


def _differences(
    config: BertConfig, tokenizer: BertTokenizer, with_classifier: bool
) -> list[str]:
    """Returns what Google's code does otherwise than kbert with the same files."""
    options = tokenizer.get_config()
    usual = {**_TOKENIZER, "strip_accents": options["lowercase"]}
    told = [
        f"Google's tokenizer has {name}={value!r}, where this one has {options[name]!r}"
        for name, value in usual.items()
        if options[name] not in (value, None)
    ]
    told.append(
        "Google's programs take the casing as a flag: --do_lower_case="
        f"{str(options['lowercase']).lower()}"
    )
    if with_classifier and config.head_dropout != _DROPOUT:
        told.append(
            f"run_classifier.py trains with a dropout of {_DROPOUT} in front of the "
            f"logits, where this model has {config.head_dropout}"
        )
    return told


def _is_extra(name: str) -> bool:
    """Returns whether a variable is known, and no weight of the models of kbert."""
    if name == _STEP:
        return True
    for slot in _SLOTS:
        if name.endswith(slot):
            of = name.removesuffix(slot)
            return names.translate(of, "google", "kbert") is not None
    return False


GOOGLE = Format("google", google_release.CONFIG, _is_extra)


def _tensorflow():
    """Returns TensorFlow, which reads and writes the files on every backend."""
    try:
        import tensorflow as tf
    except ImportError as error:
        raise ImportError(
            "Checkpoints of Google's are read and written by TensorFlow, on every "
            "backend. Received: an environment without it. Run: "
            "pip install 'keras-kbert[tensorflow]'"
        ) from error
    return tf


@contextlib.contextmanager
def _damage_told(tf: Any, prefix: Path) -> Iterator[None]:
    """Turns TensorFlow's errors about a file into one that names it."""
    try:
        yield
    except (tf.errors.OpError, IndexError) as error:  # the second: data that ends early
        raise ValueError(
            f"{prefix} must be a whole checkpoint, with its index and all its data; it "
            f"is truncated or damaged. TensorFlow says: {error}"
        ) from error
