"""JSON from a stranger: bounded, strict, compared with a schema, or signed."""

import collections
import contextlib
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

# A preset is data from a stranger: these bound what reading its JSON may cost. The
# largest BERT tokenizer.json, LaBSE's of 501,153 pieces, stays below half of each.
MAX_JSON_BYTES = 1 << 24
MAX_JSON_ITEMS = 1 << 20
_MAX_JSON_CONTAINERS = 1 << 16
_MAX_JSON_DEPTH = 32
_MAX_ENTRIES = 1 << 16
_MAX_TEXT = 1000
_MAX_MESSAGE = 2000

# Matches at every quotation mark and never steps back, so the time is linear.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONE_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path) -> dict:
    """Returns the JSON object that a file holds.

    Raises:
        ValueError: if the file is larger than a preset's may be, not UTF-8, not JSON,
            or not an object.
    """
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(
            f"{path} must hold JSON of at most {MAX_JSON_BYTES} bytes. Received: "
            f"{path.stat().st_size} bytes."
        )
    return parse_json(path.read_bytes(), str(path))


def parse_json(data: bytes, where: str) -> dict:
    """Returns the JSON object in bytes from a stranger.

    Stricter than `json.loads`: size and nesting are bounded before anything is
    parsed; a key that comes twice, NaN, infinite numbers and lone surrogates, which
    readers take differently, are refused.

    Args:
        data: the bytes, UTF-8, with or without a byte-order mark.
        where: what they are called in messages.

    Raises:
        ValueError: naming `where`.
    """
    try:
        _check_structure(data)
        text = data.decode("utf-8-sig")
        content = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_finite,
        )
        if _LONE_SURROGATES.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except ValueError as error:  # of UnicodeDecodeError and JSONDecodeError too
        raise ValueError(
            f"{where} must hold JSON and may be truncated or damaged. Received: "
            f"{shorten(str(error))}."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{where} must hold a JSON object. Received: {type(content).__name__}."
        )
    return content


def _check_structure(data: bytes) -> None:
    """Refuses JSON that would take much memory or a deep stack, before it is parsed."""
    if data.count(b'"') > 4 * MAX_JSON_ITEMS:  # two strings an item
        raise ValueError("more quotation marks than in a preset's file")
    bare = _JSON_STRING.sub(b"", data)
    brackets = bare.translate(None, delete=_NO_BRACKETS)
    items, containers = bare.count(b","), len(brackets) // 2
    if len(data) > MAX_JSON_BYTES or items > MAX_JSON_ITEMS:
        raise ValueError(f"{len(data)} bytes, {items} items: more than a preset's file")
    if containers > _MAX_JSON_CONTAINERS:
        raise ValueError(f"{containers} lists and objects: more than a preset's file")
    steps = (1 if bracket in b"[{" else -1 for bracket in brackets)
    depth = max(itertools.accumulate(steps), default=0)
    if depth > _MAX_JSON_DEPTH:
        raise ValueError(f"nesting of {depth}, more than {_MAX_JSON_DEPTH}")


def _object(pairs: list[tuple]) -> dict:
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        raise ValueError(f"the key {counts.most_common(1)[0][0]!r} more than once")
    return content


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(f"{shorten(number)}, no finite number")
    return float(number)


class Required(str):
    """A key of a schema that an object must have."""


def check_schema(value, schema, where: str, name: str = "") -> None:
    """Compares decoded JSON with what it must look like.

    Args:
        value: the decoded JSON.
        schema: a type (`int` without booleans; a `str` may have 1,000 characters); a
            `range`, for its integers; a tuple of alternatives, among them None or
            strings to be met exactly; `[schema]` for a list; or a dictionary of
            schemas by key. There a `Required` key must be present, and `...` stands
            for all other keys, which may hold anything where it is absent.
        where: what the JSON is called in messages.
        name: of the value in it.

    Raises:
        ValueError: naming `where`, the value's place, and the value.
    """
    if isinstance(value, (dict, list)) and len(value) > _MAX_ENTRIES:
        raise ValueError(
            f"{where} must have at most {_MAX_ENTRIES} entries in {name or 'it'}. "
            f"Received: {len(value)}."
        )
    if isinstance(schema, dict) and isinstance(value, dict):
        required = {key for key in schema if isinstance(key, Required)}
        if not required <= set(value):
            raise ValueError(
                f"{where} must have in {name or 'it'} the keys {sorted(required)}. "
                f"Received: {shorten(str(sorted(map(str, value))), 200)}."
            )
        for key, item in value.items():
            if key in schema or ... in schema:
                inside = f"{name}.{shorten(str(key), 80)}".removeprefix(".")
                check_schema(item, schema.get(key, schema.get(...)), where, inside)
        return
    if isinstance(schema, list) and isinstance(value, list):
        for index, item in enumerate(value):
            check_schema(item, schema[0], where, f"{name}[{index}]")
        return
    if not any(_meets(value, each, where, name) for each in _alternatives(schema)):
        raise ValueError(
            f"{where} must have as {name or 'content'} {_told(schema)}. Received: "
            f"{shorten(repr(value), 200)}."
        )


def _alternatives(schema) -> tuple:
    return schema if isinstance(schema, tuple) else (schema,)


def _meets(value, schema, where: str, name: str) -> bool:
    """Returns whether a value is what one alternative asks for."""
    if isinstance(schema, (dict, list)):
        if type(value) is not type(schema):
            return False
        check_schema(value, schema, where, name)
        return True
    if isinstance(schema, range):
        return type(value) is int and value in schema
    if isinstance(schema, type):
        return type(value) is schema and not (schema is str and len(value) > _MAX_TEXT)
    return value == schema and type(value) is type(schema)


def _told(schema) -> str:
    """Describes a schema for a message."""
    names = {
        str: f"a string of at most {_MAX_TEXT} characters",
        bool: "true or false",
        int: "an integer",
        float: "a number with a point",
        dict: "an object",
    }
    told = []
    for each in _alternatives(schema):
        if isinstance(each, range):
            told.append(f"an integer from {each.start} to {each.stop - 1}")
        elif isinstance(each, (dict, list)):
            told.append("an object" if isinstance(each, dict) else "a list")
        else:
            told.append(names.get(each) or json.dumps(each))
    return " or ".join(told) or "nothing, since kbert knows no such key"


def shorten(text: str, limit: int = _MAX_MESSAGE) -> str:
    """Returns a text whole, or, of a longer one, its beginning and end."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … ({len(text) - limit} characters) … {text[-half:]}"


def read_signed_json(path: Path, schema: dict) -> dict:
    """Returns the JSON object in a file that `signed_json` made.

    Raises:
        ValueError: if a byte is not as written, or a value not as `schema` wants it.
    """
    content = read_json(path)
    expected, actual = content.get("sha256"), own_digest(content)
    if actual != expected:
        raise ValueError(
            f"{path} has been changed since kbert wrote it. Its sha256 must be "
            f"{shorten(repr(expected), 80)}. Received: {actual!r}. Save the preset "
            "again, or delete the file to use the folder without it."
        )
    data, written = path.read_bytes(), signed_json(content)
    if data != written:
        raise ValueError(
            f"{path} has been changed since kbert wrote it: it says the same, but not "
            f"in the {len(written)} bytes that kbert writes. Received: {len(data)} "
            "bytes. Save the preset again, or delete the file."
        )
    check_schema(content, schema, str(path))
    return content


def signed_json(content: dict) -> bytes:
    """Returns JSON with its own digest added under "sha256"."""
    signed = {**content, "sha256": own_digest(content)}
    return (json.dumps(signed, indent=2, ensure_ascii=False) + "\n").encode()


def own_digest(content: dict) -> str:
    """Returns the sha256 of the canonical JSON of everything but "sha256" itself."""
    content = {key: value for key, value in content.items() if key != "sha256"}
    canonical = json.dumps(
        content,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


@contextlib.contextmanager
def errors_naming(folder: Path) -> Iterator[None]:
    """Adds a folder to a ValueError that lacks it, and keeps its text short."""
    try:
        yield
    except ValueError as error:
        told = shorten(str(error))
        if str(folder) not in told:
            told = f"The preset in {folder} cannot be used. {told}"
        raise ValueError(told) from error
