"""Files that say the same as a preset's, in another format.

What is not written anew would contradict the new file, and other libraries may prefer
it.
"""

import fnmatch
import os
from collections.abc import Collection
from pathlib import Path

_SAME_CONTENT = {
    "model.safetensors": (
        "*pytorch_model*.bin",
        "pytorch_model*.bin.index.json",
        "model-*-of-*.safetensors",
        "model.safetensors.index.json",
        "adapter_config.json",
        "adapter_model.*",
        "tf_model*.h5",
        "model.weights.h5",
        "flax_model*.msgpack",
        "*model.ckpt*",
        "rust_model.ot",
        "*.onnx",
        "openvino_model*.*",
        # How sentence-transformers goes on from the weights.
        "modules.json",
        "[0-9]_*/config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    ),
    "vocab.txt": (
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
    ),
}


def is_stale(filename: str, written: Collection[str]) -> bool:
    """Returns whether an old file contradicts one of those that are written anew.

    Example:
    >>> is_stale("tf_model.h5", {"model.safetensors"})
    True
    """
    return any(
        fnmatch.fnmatchcase(filename, pattern)
        for new in written
        for pattern in _SAME_CONTENT.get(new, ())
    )


def check_no_other_model(folder: str | os.PathLike, written: str) -> None:
    """Refuses a folder in which another library would find an old model.

    Args:
        folder: where a model is to be written in a format that keeps what else is
            there.
        written: what is to be written, for the message.

    Raises:
        ValueError: if the folder has a `config.json`.
    """
    if (Path(folder).expanduser() / "config.json").exists():
        raise ValueError(
            f"{written} is not written over another model. Received: "
            f"{os.fspath(folder)!r}, which has a config.json. Name another folder."
        )
