"""The tokenizer's files in a preset, in the format of transformers.

`vocab.txt` holds the pieces, `tokenizer_config.json` the options, and `tokenizer.json`
all of it once more for transformers' fast tokenizer. Newer transformers save only the
last two.
"""

import json
import warnings
from collections.abc import Sequence

from kbert import google_release
from kbert.presets import Preset
from kbert.strict_json import Required, check_schema
from kbert.tokenization.vocabulary import (
    SPECIAL_TOKENS,
    check_lengths,
    read_vocabulary,
    write_vocabulary,
)

VOCABULARY = "vocab.txt"
CONFIG = "tokenizer_config.json"
FAST = "tokenizer.json"
ADDED = "added_tokens.json"

# Our argument: the key in tokenizer_config.json, and in the normalizer of
# tokenizer.json.
_OPTIONS = {
    "lowercase": ("do_lower_case", "lowercase"),
    "strip_accents": ("strip_accents", "strip_accents"),
    "split_on_cjk": ("tokenize_chinese_chars", "handle_chinese_chars"),
}
_EXTRA_KEYS = ("additional_special_tokens", "extra_special_tokens")

# What the files must look like before any of it is used.
_ID = range(1 << 24)
_SWITCH = (bool, None)
_ADDED_TOKEN = {Required("content"): str, "special": bool}
_SPELLING = (str, {Required("content"): str})
_CONFIG_SCHEMA = {
    **dict.fromkeys((key for key, _ in _OPTIONS.values()), _SWITCH),
    **{f"{role}_token": (*_SPELLING, None) for role in SPECIAL_TOKENS},
    **dict.fromkeys(_EXTRA_KEYS, ([_SPELLING], {...: _SPELLING}, None)),
    "split_special_tokens": _SWITCH,
    "added_tokens_decoder": {...: _ADDED_TOKEN},
}
_SECTIONS_SCHEMA = dict.fromkeys(("model", "normalizer", "pre_tokenizer"), ({}, None))
_FAST_SCHEMA = {
    "added_tokens": [{Required("id"): _ID, **_ADDED_TOKEN}],
    "normalizer": dict.fromkeys((key for _, key in _OPTIONS.values()), _SWITCH),
    "model": {"unk_token": str, "max_input_chars_per_word": range(1, 1 << 20)},
    "post_processor": (
        {
            "cls": [(str, int)],
            "sep": [(str, int)],
            "single": [{"SpecialToken": {Required("id"): str}}],
        },
        None,
    ),
}
# Ids that no piece has; checkpoints have a few where tokens were taken out.
_MAX_FREE_IDS = 10_000
_MAX_SPECIAL_TOKENS = 10_000
# Of pieces with an upper-case letter Google's cased vocabularies have more, the
# multilingual one 0.16; the uncased ones have none.
_SHARE_OF_CASED = 0.1


def write_tokenizer(config: dict, model_max_length: int | None) -> dict[str, bytes]:
    """Makes the files of a tokenizer.

    transformers cuts special tokens out of a text unless it is told
    `split_special_tokens`, so this is written, and ids are equal there too.

    Args:
        config: what `BertTokenizer.get_config` returned.
        model_max_length: the positions of the model, or None where unknown.

    Returns:
        The contents of the files by name.
    """
    options = {
        **{key: config[name] for name, (key, _) in _OPTIONS.items()},
        **{f"{role}_token": token for role, token in config["special_tokens"].items()},
        "split_special_tokens": not config["special_tokens_in_text"],
        # Not "BertTokenizer": transformers 5 builds that from the vocabulary alone,
        # with words of at most 100 characters where Google's code has 200.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    }
    if config["extra_special_tokens"]:
        options["additional_special_tokens"] = config["extra_special_tokens"]
    if model_max_length is not None:
        options["model_max_length"] = model_max_length
    return {
        VOCABULARY: write_vocabulary(config["vocabulary"]),
        CONFIG: _json_bytes(options),
        FAST: _json_bytes(_fast_tokenizer(config)),
    }


def read_tokenizer(preset: Preset) -> dict:
    """Reads the arguments of `BertTokenizer` from a preset.

    Pieces come from `vocab.txt`, else from `tokenizer.json`; options from
    `tokenizer_config.json`, else from `tokenizer.json`, else they are the defaults of
    transformers, which are those of the uncased models. Special tokens spelled out in
    a text stay text unless the files say `"split_special_tokens": false`.

    Args:
        preset: the preset; it has `vocab.txt` or `tokenizer.json`.

    Returns:
        The keyword arguments.

    Raises:
        ValueError: if the files contradict each other, or ask for what WordPiece as
            Google's code does it cannot do.
    """
    options = preset.read_json(CONFIG) if preset.has(CONFIG) else {}
    check_schema(options, _CONFIG_SCHEMA, f"{CONFIG} of {preset.folder}")
    fast = preset.read_json(FAST) if preset.has(FAST) else {}
    if fast:
        _check_fast(fast, preset)
    if preset.has(VOCABULARY) or not fast:
        vocabulary = read_vocabulary(preset.path(VOCABULARY))
        preset.is_resaved(VOCABULARY)  # or it is damaged
    else:
        vocabulary = _by_id(fast["model"]["vocab"], f"{FAST} of {preset.folder}")
    vocabulary, added = _add_tokens(vocabulary, options, fast, preset)
    normalizer = fast.get("normalizer") or {}
    arguments = {
        name: options.get(key, normalizer.get(fast_key))
        for name, (key, fast_key) in _OPTIONS.items()
    }
    if arguments["lowercase"] is None:
        _tell_of_case(vocabulary, preset)
    for name in ("lowercase", "split_on_cjk"):
        arguments[name] = True if arguments[name] is None else arguments[name]
    extra = [_content(t) for key in _EXTRA_KEYS for t in _listed(options, key)]
    special_tokens = _special_tokens(options, fast)
    known = {*special_tokens.values(), *SPECIAL_TOKENS.values()}
    extra = [token for token in dict.fromkeys(extra + added) if token not in known]
    if len(extra) > _MAX_SPECIAL_TOKENS:
        raise ValueError(
            f"A tokenizer must have at most {_MAX_SPECIAL_TOKENS} special tokens. "
            f"Received: {len(extra)} in {preset.folder}."
        )
    model = fast.get("model", {})
    return {
        **arguments,
        "vocabulary": vocabulary,
        "special_tokens_in_text": options.get("split_special_tokens") is False,
        "special_tokens": special_tokens,
        "max_word_length": model.get("max_input_chars_per_word", 200),
        "extra_special_tokens": extra,
    }


def _tell_of_case(vocabulary: Sequence[str], preset: Preset) -> None:
    """Warns where no file says the case and the vocabulary says another than taken."""
    upper = list(filter(google_release.has_upper, vocabulary))
    if len(upper) > _SHARE_OF_CASED * len(vocabulary):
        warnings.warn(
            f"No file in {preset.folder} says whether text is lowercased. kbert "
            f"lowercases, as transformers does then, although {len(upper)} pieces have "
            f'an upper-case letter, like {upper[-1]!r}. Put {{"do_lower_case": false}} '
            f"into a {CONFIG} if the model is cased.",
            stacklevel=2,
        )


def _fast_tokenizer(config: dict) -> dict:
    """Returns the content of tokenizer.json."""
    ids = {piece: index for index, piece in enumerate(config["vocabulary"])}
    tokens = config["special_tokens"]
    specials = [*tokens.values(), *config["extra_special_tokens"]]
    cls, sep = tokens["cls"], tokens["sep"]
    first = [_special(cls, 0), {"Sequence": {"id": "A", "type_id": 0}}]
    single = [*first, _special(sep, 0)]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, _special(sep, 1)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": ids[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in sorted(set(specials), key=ids.__getitem__)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            **{key: config[name] for name, (_, key) in _OPTIONS.items()},
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": single + second,
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]}
                for token in (cls, sep)
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": tokens["unk"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": config["max_word_length"],
            "vocab": ids,
        },
    }


def _special(token: str, segment: int) -> dict:
    """Returns a special token in a template of tokenizer.json."""
    return {"SpecialToken": {"id": token, "type_id": segment}}


def _check_fast(fast: dict, preset: Preset) -> None:
    """Refuses a tokenizer.json that does not describe a BERT tokenizer."""
    where = f"{FAST} of {preset.folder}"
    check_schema(fast, _SECTIONS_SCHEMA, where)
    expected = {
        ("model", "type"): "WordPiece",
        ("model", "continuing_subword_prefix"): "##",
        ("normalizer", "type"): "BertNormalizer",
        ("normalizer", "clean_text"): True,
        ("pre_tokenizer", "type"): "BertPreTokenizer",
    }
    for (section, key), value in expected.items():
        received = (fast.get(section) or {}).get(key)
        if received != value:
            raise ValueError(
                f"{FAST} must have {section}.{key}={value!r} to be a BERT tokenizer. "
                f"Received: {received!r} in {preset.folder}."
            )
    vocabulary = fast["model"].get("vocab")
    if not isinstance(vocabulary, dict) or not vocabulary:
        raise ValueError(
            f"{FAST} must have the pieces in model.vocab. Received: "
            f"{type(vocabulary).__name__} in {preset.folder}."
        )
    check_schema(fast, _FAST_SCHEMA, where)
    _check_ids(vocabulary, where)
    if preset.has(VOCABULARY):
        pieces = dict.fromkeys(read_vocabulary(preset.path(VOCABULARY)))
        different = sorted(set(pieces) ^ set(vocabulary))
        if different:
            raise ValueError(
                f"{VOCABULARY} and {FAST} must hold the same pieces. Received: "
                f"{len(different)} that only one of them holds, such as "
                f"{different[:5]}, in {preset.folder}. Remove the outdated file."
            )


def _check_ids(ids: dict[str, int], where: str) -> None:
    """Refuses ids that are no numbers from 0 on, with few left out."""
    check_lengths(ids, where)
    limit = len(ids) + _MAX_FREE_IDS
    for piece, index in ids.items():
        if type(index) is not int or not 0 <= index < limit:
            raise ValueError(
                f"The id of a piece must be an integer from 0 to {limit - 1}, where "
                f"there are {len(ids)} pieces. Received: {str(index)[:80]} for "
                f"{piece!r} in {where}."
            )


def _by_id(ids: dict[str, int], where: str) -> list[str]:
    """Turns ids by piece into a list; ids that no piece has become blank pieces."""
    vocabulary = [""] * (max(ids.values()) + 1)
    for piece, index in ids.items():
        if vocabulary[index]:
            raise ValueError(
                "Every id must belong to one piece. Received: "
                f"{vocabulary[index]!r} and {piece!r} with id {index} in {where}."
            )
        vocabulary[index] = piece
    return vocabulary


def _add_tokens(
    vocabulary: list[str], options: dict, fast: dict, preset: Preset
) -> tuple[list[str], list[str]]:
    """Appends the tokens that were added to the vocabulary after its training.

    Returns:
        The whole vocabulary, and the special tokens among the added ones.
    """
    tokens = {token["id"]: token for token in fast.get("added_tokens", ())}
    for index, token in options.get("added_tokens_decoder", {}).items():
        if not (index.isascii() and index.isdecimal() and len(index) < 9):
            raise ValueError(
                f"{CONFIG} must have ids as keys of added_tokens_decoder. Received: "
                f"{index[:80]!r} in {preset.folder}."
            )
        tokens[int(index)] = token
    if preset.has(ADDED):
        added = preset.read_json(ADDED)
        check_schema(added, {...: _ID}, f"{ADDED} of {preset.folder}")
        for content, index in added.items():
            tokens.setdefault(index, {"content": content, "special": True})
    vocabulary = list(vocabulary)
    for index, token in sorted(tokens.items()):
        content = token["content"]
        if not token.get("special", False):
            raise ValueError(
                "Tokens added to a vocabulary must be special ones: kbert cuts no "
                f"other out of a text. Received: {content!r} with id {index} in "
                f"{preset.folder}."
            )
        if index == len(vocabulary):
            vocabulary.append(content)
        elif index > len(vocabulary) or vocabulary[index] != content:
            received = vocabulary[index] if index < len(vocabulary) else None
            raise ValueError(
                f"The token {content!r} must have the id {index} that the files give "
                f"it. Received: a vocabulary of {len(vocabulary)} pieces with "
                f"{received!r} there, in {preset.folder}."
            )
    return vocabulary, [token["content"] for _, token in sorted(tokens.items())]


def _special_tokens(options: dict, fast: dict) -> dict[str, str]:
    """Finds the spellings of the special tokens that differ from Google's."""
    spellings = {}
    if fast:
        spellings["unk"] = fast["model"].get("unk_token", SPECIAL_TOKENS["unk"])
        processor = fast.get("post_processor") or {}
        for role in ("cls", "sep"):
            if processor.get(role):  # BertProcessing: [token, id]
                spellings[role] = processor[role][0]
        template = [
            part["SpecialToken"]["id"]
            for part in processor.get("single", ())
            if "SpecialToken" in part
        ]
        if len(template) == 2:  # [CLS] A [SEP]
            spellings["cls"], spellings["sep"] = template
    for role in SPECIAL_TOKENS:
        token = options.get(f"{role}_token")
        if token is not None:
            spellings[role] = _content(token)
    return {k: v for k, v in spellings.items() if v != SPECIAL_TOKENS[k]}


def _content(token: str | dict) -> str:
    """Returns the spelling of a token that is a string or a dict with options."""
    return token["content"] if isinstance(token, dict) else token


def _listed(options: dict, key: str) -> Sequence:
    """Returns a list of tokens; newer files may name them in an object."""
    tokens = options.get(key) or ()
    return list(tokens.values()) if isinstance(tokens, dict) else tokens


def _json_bytes(content: dict) -> bytes:
    """Writes JSON as transformers does: readable, UTF-8, keys in order of meaning."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
