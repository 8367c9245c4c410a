"""What a preset of KerasHub says, in the words of a transformers folder, and back.

Its JSON files are serialised Keras objects. Of them kbert reads names and numbers, and
never makes an object that they name.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

CONFIG = "config.json"
TASK = "task.json"
TOKENIZER = "tokenizer.json"
PREPROCESSOR = "preprocessor.json"
VOCABULARY = "assets/tokenizer/vocabulary.txt"

# KerasHub's name of a key, and transformers'.
_SIZES = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
# What KerasHub's BertBackbone computes with, whatever its configuration.
_FIXED = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-12, "initializer_range": 0.02}
# And its head of masked tokens, in two points otherwise than its encoder: in the names
# of kbert's configuration.
MASKED_LM_HEAD = {"activation": "gelu", "layer_norm_epsilon": 1e-5}
_MOST_CLASSES = 10_000
_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


def understood(preset: Any) -> Any:
    """Returns a preset; of KerasHub's folders, with the files of transformers' derived.

    Args:
        preset: a `kbert.presets.Preset`, without derived files.

    Raises:
        ValueError: if the folder holds another model of KerasHub's than a BERT.
    """
    if preset.format != "hugging_face" or not preset.has(CONFIG):
        return preset
    config = preset.read_json(CONFIG)
    library, _, model = str(config.get("registered_name", "")).partition(">")
    if library not in ("keras_hub", "keras_nlp"):
        return preset
    if model != "BertBackbone":
        raise ValueError(
            f"{preset.folder / CONFIG} must describe a BertBackbone of KerasHub. "
            f"Received: {model!r}."
        )
    task = preset.read_json(TASK) if preset.has(TASK) else {}
    derived = {CONFIG: lambda: to_transformers(config, task)}
    if preset.has(TOKENIZER):
        options = preset.read_json(TOKENIZER)
        derived["tokenizer_config.json"] = lambda: tokenizer_options(options)
    return dataclasses.replace(
        preset,
        format="keras_hub",
        derived=derived,
        places={"vocab.txt": VOCABULARY, TOKENIZER: None},
    )


def to_transformers(backbone: Mapping, task: Mapping) -> dict:
    """Returns KerasHub's `config.json` and `task.json` as one `config.json`.

    Args:
        backbone: the content of `config.json`.
        task: that of `task.json`, {} where there is none.

    Raises:
        ValueError: if a size is absent.
    """
    config = arguments_in(backbone, CONFIG)
    absent = [key for key in _SIZES if key not in config]
    if absent:
        raise ValueError(
            f"{CONFIG} of a BertBackbone must hold {list(_SIZES)}. Missing: {absent}."
        )
    found = {theirs: config[ours] for ours, theirs in _SIZES.items()}
    found |= {**_FIXED, **dict.fromkeys(_DROPOUTS, config.get("dropout", 0.1))}
    if task.get("class_name") == "BertMaskedLM":
        return {**found, "architectures": ["BertForMaskedLM"]}
    if task.get("class_name") != "BertTextClassifier":
        return {**found, "architectures": ["BertModel"]}
    head = arguments_in(task, TASK)
    classes = head.get("num_classes")
    if type(classes) is not int or not 1 <= classes <= _MOST_CLASSES:
        raise ValueError(
            f"{TASK} of a BertTextClassifier must hold a num_classes from 1 to "
            f"{_MOST_CLASSES}. Received: {classes!r}."
        )
    dropout = head.get("dropout", 0.1)
    return {
        **found,
        "architectures": ["BertForSequenceClassification"],
        "num_labels": classes,
        "id2label": {str(index): f"LABEL_{index}" for index in range(classes)},
        "classifier_dropout": None if dropout == found[_DROPOUTS[0]] else dropout,
    }


def tokenizer_options(tokenizer: Mapping) -> dict:
    """Returns KerasHub's `tokenizer.json` as a `tokenizer_config.json`."""
    config = arguments_in(tokenizer, TOKENIZER)
    return {
        "do_lower_case": config.get("lowercase", False),
        "strip_accents": config.get("strip_accents", False),
        "split_special_tokens": not config.get("special_tokens_in_strings", False),
    }


def arguments_in(serialised: Mapping, filename: str) -> Mapping:
    """Returns the arguments of a serialised object."""
    config = serialised.get("config")
    if not isinstance(config, dict):
        raise ValueError(
            f'{filename} must hold an object under "config". Received: {config!r}.'
        )
    return config


def from_transformers(config: Mapping) -> dict:
    """Returns the architecture in a `config.json` as the arguments of a BertBackbone.

    Args:
        config: with every key of the architecture, as `BertConfig.to_hugging_face`
            returns it.

    Raises:
        ValueError: if KerasHub would compute something else.
    """
    if config.get("is_decoder"):
        raise ValueError(
            "KerasHub's BertBackbone reads every text in both directions. Received: "
            "left_to_right=True. Write transformers' format, whose config.json says it "
            "as is_decoder."
        )
    for key in ("hidden_act", "layer_norm_eps"):
        if config[key] != _FIXED[key]:
            raise ValueError(
                f"KerasHub's BertBackbone computes with {key}={_FIXED[key]!r}. "
                f"Received: {config[key]!r}, with which it would answer otherwise."
            )
    dropout, attention_dropout = (config[key] for key in _DROPOUTS)
    if dropout != attention_dropout:
        raise ValueError(
            "KerasHub's BertBackbone has one dropout. Received: "
            f"dropout={dropout}, attention_dropout={attention_dropout}."
        )
    return {
        **{ours: config[theirs] for ours, theirs in _SIZES.items()},
        "dropout": dropout,
    }


def serialised(name: str, module: str, config: Mapping) -> dict:
    """Returns a serialised object of KerasHub's.

    Args:
        name: of its class.
        module: where that lies, below `keras_hub.src.models.bert`.
        config: its arguments.
    """
    return {
        "module": f"keras_hub.src.models.bert.{module}",
        "class_name": name,
        "config": dict(config),
        "registered_name": f"keras_hub>{name}",
    }
