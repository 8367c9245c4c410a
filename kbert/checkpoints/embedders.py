"""How the folders of other libraries say that texts are embedded, and one anew.

In one of sentence-transformers `modules.json` lists modules that work one after the
other: a transformer, whose files are those of a transformers folder, a pooling, and,
for vectors of length 1, a normalisation. KerasHub has it in the `task.json` of a
BertTextEmbedder. kbert reads names and settings, and imports no class that is named.
"""

import json
from typing import Any

from kbert import keras_hub_folder
from kbert.presets import Preset
from kbert.strict_json import MAX_JSON_BYTES, check_schema, parse_json

MODULES = "modules.json"
LENGTH = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"

_POOLING, _NORMALIZE = "1_Pooling", "2_Normalize"
# Ours, and the key of `1_Pooling/config.json`.
_MODES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
_PREFIX = "sentence_transformers.models."
_SCHEMA = {"modules": [{"type": str, "path": str}]}
_LENGTH = range(3, 1 << 20)
_OF_KERAS_HUB = {"pooling": tuple(_MODES), "normalize": bool, "longest": _LENGTH}


def saved_settings(preset: Preset) -> dict | None:
    """Returns how a preset embeds texts, None where it does not say.

    Args:
        preset: the preset.

    Returns:
        Arguments of `BertEmbedder`, and `longest`, most tokens of a text, where the
        preset says it for embeddings alone.

    Raises:
        FileNotFoundError: if the pooling has no file.
        ValueError: if it computes what `BertEmbedder` cannot.
    """
    if preset.format == "keras_hub":
        return _of_keras_hub(preset)
    said = preset.metadata().get("embedding")
    if preset.format == "hugging_face" and preset.has(MODULES):
        return {**(said or {}), **_of_sentence_transformers(preset)}
    return said


def _of_keras_hub(preset: Preset) -> dict | None:
    """Returns the settings of a BertTextEmbedder, None for another folder."""
    task = keras_hub_folder.TASK
    content = preset.read_json(task) if preset.has(task) else {}
    if content.get("class_name") != "BertTextEmbedder":
        return None
    config = keras_hub_folder.arguments_in(content, task)
    found = {
        "pooling": config.get("pooling_mode", "mean"),
        "normalize": config.get("normalize", True),
    }
    preprocessor = keras_hub_folder.PREPROCESSOR
    if preset.has(preprocessor):
        options = preset.read_json(preprocessor)
        options = keras_hub_folder.arguments_in(options, preprocessor)
        found["longest"] = options.get("sequence_length", 256)
    check_schema(found, _OF_KERAS_HUB, str(preset.folder / task))
    return found


def _of_sentence_transformers(preset: Preset) -> dict:
    """Returns the settings of a folder of sentence-transformers."""
    path = preset.path(MODULES)
    modules = _modules(path)
    kinds = [module.get("type", "").rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise ValueError(
            f"{path} must list Transformer, Pooling and perhaps Normalize, which is "
            f"what kbert.BertEmbedder computes. Received: {kinds}. Load the encoder "
            "alone, as kbert.BertBackbone, or take that file out."
        )
    config = preset.read_json(f"{modules[1].get('path', _POOLING)}/config.json")
    found = {"pooling": _mode(config, path), "normalize": len(kinds) == 3}
    prompt = _read(preset, PROMPTS).get("default_prompt_name")
    options = _read(preset, LENGTH)
    if prompt is not None or options.get("do_lower_case"):
        raise ValueError(
            f"The folder {path.parent} changes texts before they are read: "
            f"default_prompt_name={prompt!r}, do_lower_case="
            f"{options.get('do_lower_case')!r}. kbert.BertEmbedder would answer "
            "otherwise. Change them yourself, and take these settings out."
        )
    length = options.get("max_seq_length")
    if length is not None:
        check_schema(length, _LENGTH, LENGTH, "max_seq_length")
    else:  # newer versions leave it to the tokenizer, which may have no limit
        length = _read(preset, "tokenizer_config.json").get("model_max_length")
    if type(length) is int and length in _LENGTH:
        found["longest"] = length
    return found


def _modules(path) -> list[dict]:
    """Returns the list that `modules.json` holds."""
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(
            f"{path} must hold JSON of at most {MAX_JSON_BYTES} bytes. Received: "
            f"{path.stat().st_size} bytes."
        )
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    content = parse_json(b'{"modules":' + data + b"}", str(path))
    check_schema(content, _SCHEMA, str(path))
    return content["modules"]


def _mode(config: dict, path) -> str:
    """Returns the one mode of pooling that a configuration asks for."""
    asked = [key for key, value in config.items() if value is True]
    asked = [key for key in asked if key.startswith("pooling_mode")]
    if "pooling_mode" in config:  # of newer versions: a name instead of switches
        asked = [_MODES.get(str(config["pooling_mode"]), config["pooling_mode"])]
    modes = [mode for mode, key in _MODES.items() if [key] == asked]
    if not modes:
        raise ValueError(
            f"The pooling of {path.parent} must be one of {list(_MODES)}, which are "
            f"what kbert.BertEmbedder computes. Received: {asked}."
        )
    return modes[0]


def _read(preset, filename) -> dict:
    """Returns the content of a file, {} where there is none."""
    return preset.read_json(filename) if preset.has(filename) else {}


def files(
    pooling: str, normalize: bool, width: int, max_length: int
) -> dict[str, bytes]:
    """Returns the files that make a transformers folder one of sentence-transformers.

    Args:
        pooling: "mean", "cls" or "max".
        normalize: whether vectors have the length 1.
        width: H.
        max_length: most tokens of a text.

    Example:
    >>> list(files("mean", False, 8, 32))
    ['modules.json', '1_Pooling/config.json', 'sentence_bert_config.json']
    """
    modules = [("Transformer", ""), ("Pooling", _POOLING)]
    contents: dict[str, Any] = {
        f"{_POOLING}/config.json": {
            "word_embedding_dimension": width,
            **{key: mode == pooling for mode, key in _MODES.items()},
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
        LENGTH: {"max_seq_length": max_length, "do_lower_case": False},
    }
    if normalize:
        modules.append(("Normalize", _NORMALIZE))
        # Which has no settings; but the folder must be there.
        contents[f"{_NORMALIZE}/config.json"] = {}
    listed = [
        {"idx": index, "name": str(index), "path": path, "type": f"{_PREFIX}{kind}"}
        for index, (kind, path) in enumerate(modules)
    ]
    return {
        name: (json.dumps(content, indent=2) + "\n").encode()
        for name, content in {MODULES: listed, **contents}.items()
    }
