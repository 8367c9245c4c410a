"""Checkpoints of Google's: of google-research/bert, and of tf-models by its names."""

import fnmatch
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert import google_release
from kbert.bundles import objects, saved_model_folder
from kbert.bundles.reading import read_index
from kbert.checkpoints import assigning, names
from kbert.checkpoints.assigning import Format, Weights
from kbert.checkpoints.stored import StoredArray
from kbert.config import BertConfig
from kbert.files import replace_folder
from kbert.presets import Preset
from kbert.stale_files import check_no_other_model
from kbert.tokenization.vocabulary import SPECIAL_TOKENS
from kbert.tokenization.wordpiece import BertTokenizer

PREFIX = "bert_model.ckpt"

_STEP = "global_step"
_SLOTS = ("/adam_m", "/adam_v")  # of AdamWeightDecayOptimizer in optimization.py
# What tf-models keeps beside an encoder: counters, optimizers, flags, other heads.
_OF_OBJECTS = re.compile(
    r"save_counter$|global_step$|optimizer/|do_lower_case$|keras_api/|masked_lm/"
    r"|next_sentence|predictions/transform/logits/|.*/\.OPTIMIZER_SLOT/"
)
# What Google's tokenization.py does, which has no options but `do_lower_case`.
_TOKENIZER = {
    "split_on_cjk": True,
    "special_tokens_in_text": False,
    "special_tokens": SPECIAL_TOKENS,
    "extra_special_tokens": [],
    "max_word_length": 200,
}
_DROPOUT = 0.1  # in front of the logits in run_classifier.py


def open_weights(preset: Preset) -> Weights:
    """Opens the checkpoint in a folder of Google's, or in a SavedModel.

    Args:
        preset: the folder.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if there are several, or one is damaged, or has another number of
            heads than the configuration says.
    """
    prefix = checkpoint_prefix(preset)
    entries = read_index(prefix)
    num_heads = None
    if objects.GRAPH in entries:
        entries = objects.by_google_names(entries)
        num_heads = preset.read_json("config.json").get("num_attention_heads")
    arrays = {}
    for name, entry in entries.items():
        shape = entry.shape
        if num_heads is not None:
            shape = objects.flat_shape(name, shape, num_heads, entry.where)
        stored = StoredArray(entry.where, entry.dtype, entry.shape, entry.read)
        arrays[name] = stored.reshaped(shape)
    return Weights(str(prefix), GOOGLE, arrays)


def checkpoint_prefix(preset: Preset) -> Path:
    """Returns the path that the files of the one checkpoint in a folder begin with.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if there are several, or a file is a link out of the folder.
    """
    if preset.format == "tf_hub":
        return saved_model_folder.prefix_of(preset)
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
    check_no_other_model(folder, "A checkpoint of Google's")
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
    if name == _STEP or _OF_OBJECTS.match(name):
        return True
    for slot in _SLOTS:
        if name.endswith(slot):
            of = name.removesuffix(slot)
            return names.translate(of, "google", "kbert") is not None
    return False


GOOGLE = Format("google", google_release.CONFIG, _is_extra)


def _tensorflow():
    """Returns TensorFlow, which writes the files on every backend."""
    try:
        import tensorflow as tf
    except ImportError as error:
        raise ImportError(
            "Checkpoints of Google's are written by TensorFlow, on every backend. "
            "Received: an environment without it. Run: "
            "pip install 'keras-kbert[tensorflow]'"
        ) from error
    return tf
