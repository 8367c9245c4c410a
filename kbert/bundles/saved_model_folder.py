"""What a BERT from TensorFlow Hub says, in the words of a transformers folder.

It is a SavedModel whose graph runs nowhere here: its variables are a checkpoint, whose
tensors have the sizes that no other file says, and its vocabulary is an asset. The
tf-models that exported them (official/nlp/bert/export_tfhub.py) compute the tanh form
of gelu, and keep `do_lower_case` as a variable.
"""

import dataclasses
from pathlib import Path
from typing import Any

from kbert.bundles import objects
from kbert.bundles.reading import Entry, read_index

MODEL = "saved_model.pb"
PREFIX = "variables/variables"
VOCABULARY = "assets/vocab.txt"
_TOKENIZER_CONFIG = "tokenizer_config.json"
_LOWERCASE = "do_lower_case"


def understood(preset: Any) -> Any:
    """Returns a preset; of a SavedModel, with the files of transformers' derived.

    Args:
        preset: a `kbert.presets.Preset`; one of another format comes back as it is.
    """
    other = preset.format != "hugging_face" or preset.has("config.json")
    if other or not preset.has(MODEL):
        return preset
    places = {} if preset.has("vocab.txt") else {"vocab.txt": VOCABULARY}
    found = dataclasses.replace(preset, format="tf_hub", places=places)
    derived = {
        "config.json": lambda: objects.config_of(_tensors(found), str(found.folder)),
        _TOKENIZER_CONFIG: lambda: {"do_lower_case": _lowercases(found)},
    }
    missing = {name: make for name, make in derived.items() if not found.has(name)}
    return dataclasses.replace(found, derived=missing)


def prefix_of(preset: Any) -> Path:
    """Returns the path that the files of a SavedModel's variables begin with.

    Raises:
        FileNotFoundError: if there are none.
        OSError: as `Preset.fetch_weights`.
        ValueError: if one is a link out of the folder.
    """
    preset.fetch_weights()  # its configuration is read from its variables
    index = preset.path(f"{PREFIX}.index")
    for path in index.parent.glob("variables.data-*"):
        preset.path(f"{index.parent.name}/{path.name}")
    return index.with_suffix("")


def _tensors(preset: Any) -> dict[str, Entry]:
    """Returns the tensors of the variables by Google's names."""
    entries = read_index(prefix_of(preset))
    if objects.GRAPH not in entries:
        raise ValueError(
            f"{preset.folder / MODEL} must be a SavedModel of TensorFlow 2. Received: "
            "one of TensorFlow 1, whose checkpoint google-research/bert has."
        )
    return objects.by_google_names(entries)


def _lowercases(preset: Any) -> bool:
    """Returns whether text is to be lowercased, which a variable says."""
    switch = _tensors(preset).get(_LOWERCASE)
    if switch is None or (switch.dtype, switch.shape) != ("bool", ()):
        raise ValueError(
            f"The SavedModel in {preset.folder} must have {_LOWERCASE!r}, a boolean, "
            "to say whether text is lowercased. Received: "
            f"{switch and (switch.dtype, switch.shape)}. Put a {_TOKENIZER_CONFIG} "
            f"with {_LOWERCASE!r} into the folder."
        )
    return bool(switch.read())
