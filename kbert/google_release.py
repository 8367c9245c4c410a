"""What Google's release says, in the words of a transformers folder, and back.

A checkpoint of google-research/bert comes with `bert_config.json` and `vocab.txt`. Its
code has one gelu, the tanh form, and one epsilon; whether text is lowercased is a flag
of its programs, told in the name of the folder alone.
"""

import dataclasses
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

CONFIG = "bert_config.json"
FILES = (CONFIG, "vocab.txt", "*.ckpt*.index", "*.ckpt*.data-*")

_TOKENIZER_CONFIG = "tokenizer_config.json"
# Google's `hidden_act`: transformers' name for the same function.
_ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu", "tanh": "tanh"}
# The defaults of `modeling.BertConfig` that differ from transformers'.
_DEFAULTS = {"type_vocab_size": 16}
_KEYS = (
    "attention_probs_dropout_prob",
    "hidden_act",
    "hidden_dropout_prob",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "type_vocab_size",
    "vocab_size",
)
# What Google's code computes with, whatever its file says: layer_norm of tf.contrib.
_EPSILON = 1e-12
# Keys that Google's code passes over, and that kbert reads again: their defaults.
_SPARE_KEYS = {"classifier_dropout": None, "pad_token_id": 0}
# Names in `tokenization.validate_case_matches_checkpoint` that say it in no word.
_LOWERCASE_NAMES = re.compile("multilingual_L-12|chinese_L-12")
_CASE_IN_NAME = re.compile("(?<![a-z])(un)?cased(?![a-z])", re.IGNORECASE)


def understood(preset: Any) -> Any:
    """Returns a preset; of Google's folders, with the files of transformers' derived.

    Args:
        preset: a `kbert.presets.Preset`, without derived files.
    """
    if preset.has("config.json") or not preset.has(CONFIG):
        return preset

    def tokenizer_config() -> dict:
        text = preset.path("vocab.txt").read_text("utf-8", errors="replace")
        # A snapshot of a hub is called by its commit.
        name = preset.name if preset.repository else preset.folder.name
        return {"do_lower_case": lowercases(name, text.split("\n"))}

    derived = {
        "config.json": lambda: to_transformers(preset.read_json(CONFIG)),
        _TOKENIZER_CONFIG: tokenizer_config,
    }
    missing = {file: make for file, make in derived.items() if not preset.has(file)}
    return dataclasses.replace(preset, format="google", derived=missing)


def to_transformers(config: dict) -> dict:
    """Returns the content of a `bert_config.json` as that of a `config.json`.

    Raises:
        ValueError: if a key that has no default is absent.

    Example:
    >>> to_transformers({"vocab_size": 30522, "hidden_act": "gelu"})["hidden_act"]
    'gelu_new'
    """
    if not isinstance(config.get("vocab_size"), int):
        raise ValueError(
            f"{CONFIG} must say the number of pieces in vocab_size. Received: "
            f"{config.get('vocab_size')!r}."
        )
    activation = config.get("hidden_act", "gelu")
    if isinstance(activation, str):  # what is none is refused by its reader
        activation = _ACTIVATIONS.get(activation.lower(), activation)
    return {**_DEFAULTS, **config, "hidden_act": activation}


def from_transformers(config: Mapping) -> dict:
    """Returns the architecture in a `config.json` as a `bert_config.json`.

    Args:
        config: with every key of the architecture, as
            `BertConfig.to_hugging_face` returns it.

    Returns:
        Google's keys, and those of kbert's that Google's code passes over.

    Raises:
        ValueError: if Google's code would compute something else.
    """
    if config.get("is_decoder"):
        raise ValueError(
            "Google's code reads every text in both directions, and its file cannot say"
            " otherwise. Received: left_to_right=True. Write transformers' format, "
            "whose config.json says it as is_decoder."
        )
    google = {theirs: ours for ours, theirs in _ACTIVATIONS.items()}
    activation, epsilon = config["hidden_act"], config["layer_norm_eps"]
    if activation == "gelu":
        raise ValueError(
            "Google's code computes the tanh form of gelu, so that a model with the "
            "erf form would answer differently there, in the fourth digit. Received: "
            "activation='gelu'. Where that is good enough, build the model with "
            'activation=\'gelu_tanh\', or set "hidden_act": "gelu_new" in its '
            "config.json, and write it again."
        )
    if activation not in google:
        raise ValueError(
            f"Google's code knows the activations {sorted(_ACTIVATIONS)}. Received: "
            f"{activation!r}."
        )
    if epsilon != _EPSILON:
        raise ValueError(
            f"Google's code computes with an epsilon of {_EPSILON} in every layer "
            f"normalisation. Received: layer_norm_epsilon={epsilon}."
        )
    spare = {
        key: config[key] for key, usual in _SPARE_KEYS.items() if config[key] != usual
    }
    return {
        **{key: config[key] for key in _KEYS},
        "hidden_act": google[activation],
        **spare,
    }


def lowercases(name: str, vocabulary: Iterable[str]) -> bool:
    """Returns whether text is to be lowercased, which no file of Google's says.

    Args:
        name: what the folder is called: "uncased" or "cased" in it decides.
        vocabulary: the pieces, which decide otherwise: a model that lowercases has
            none with an upper-case letter. This is told in a warning.

    Example:
    >>> lowercases("multi_cased_L-12_H-768_A-12", ["The"])
    False
    """
    upper = next((piece for piece in vocabulary if has_upper(piece)), None)
    case = _CASE_IN_NAME.search(name)
    if case or _LOWERCASE_NAMES.search(name):
        lowercase = not case or bool(case.group(1))
        if lowercase and upper:
            warnings.warn(
                f"The name {name!r} says that text is lowercased, although vocab.txt "
                f"has the piece {upper!r}. kbert lowercases.",
                stacklevel=2,
            )
        return lowercase
    reason = f"the piece {upper!r}" if upper else "no piece with an upper-case letter"
    warnings.warn(
        f"Neither a file nor the name {name!r} says whether text is lowercased. "
        f"vocab.txt has {reason}, so kbert takes the model as "
        f"{'cased' if upper else 'uncased'}. Put 'cased' or 'uncased' into the name of "
        f'the folder, or a {_TOKENIZER_CONFIG} with "do_lower_case" into it.',
        stacklevel=2,
    )
    return upper is None


def has_upper(piece: str) -> bool:
    """Whether lowercasing changes a piece that is no special token."""
    return not piece.startswith(("[", "<")) and piece.lower() != piece
