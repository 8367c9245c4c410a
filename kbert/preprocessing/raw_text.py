"""What counts as raw text, and how each kind of it becomes lists of strings."""

import sys
from collections.abc import Iterable, Mapping, Set, Sized
from typing import Any, NamedTuple

import keras
import numpy as np

PAIR_HINT = (
    "Pass a pair as (firsts, seconds), two lists of equal length, or as "
    '{"first": firsts, "second": seconds}.'
)


class RawTexts(NamedTuple):
    """N texts or pairs of texts as strings.

    Attributes:
        first: N strings.
        second: N strings, or None for single texts.
        scalar: whether one text (or one pair) came instead of a batch.
    """

    first: list[str]
    second: list[str] | None
    scalar: bool


def is_raw(x) -> bool:
    """Says whether `x` holds raw text, as opposed to ready arrays.

    Args:
        x: anything a user may pass as `x`.

    Returns:
        True for text, for lists of missing values and for empty lists (so that they
        are refused as text), and for a dictionary with "first"; else False.

    Example:
    >>> is_raw(["a text"]), is_raw({"token_ids": [[2, 3]]})
    (True, False)
    """
    if isinstance(x, str | bytes):
        return True
    if isinstance(x, Mapping):
        return "first" in x
    if isinstance(x, tuple):
        return any(is_raw(part) for part in x)
    dtype = getattr(x, "dtype", None)  # of numpy, pandas, TensorFlow, Keras
    if dtype is not None:
        return dtype == "string" or getattr(dtype, "kind", None) in set("OSTU")
    if not isinstance(x, Iterable) or not isinstance(x, Sized):
        return False
    return all(_is_missing(item) for item in x) or any(is_raw(item) for item in x)


def is_tensorflow(x) -> bool:
    """Says whether `x` is a TensorFlow tensor, without importing TensorFlow."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and bool(tf.is_tensor(x))


def split_pair(x) -> tuple[Any, Any]:
    """Returns the first and the second part of `x`; the second is None for singles.

    A tuple is a pair, always; a list never is, but for two tensors: Keras reads the
    tuple that a functional model was made with from a file as a list.

    Args:
        x: raw text, a tuple of two, or a dictionary with "first" and "second".

    Raises:
        ValueError: if a tuple has not two parts or could also mean two texts, or a
            dictionary has other keys.
    """
    if isinstance(x, Mapping):
        if not {"first"} <= set(x) <= {"first", "second"}:
            raise ValueError(
                'A dictionary of texts must have the keys "first" and, for pairs, '
                f'"second". Received: {sorted(map(str, x))}.'
            )
        return x["first"], x.get("second")
    if isinstance(x, list) and len(x) == 2 and all(map(_is_tensor, x)):
        return x[0], x[1]
    if not isinstance(x, tuple):
        return x, None
    if all(isinstance(part, str | bytes) for part in x) and x:
        raise ValueError(
            "A tuple of strings could mean several texts or one pair. Pass several "
            f"texts as a list. {PAIR_HINT} Received: {_short(x)}."
        )
    if len(x) != 2:
        raise ValueError(
            "A tuple is read as a pair, since BERT has two segments. Pass texts as a "
            f"list. {PAIR_HINT} Received: a tuple of {len(x)}."
        )
    return x


def read_raw(x) -> RawTexts:
    """Reads every kind of raw text into lists of strings.

    Args:
        x: a string; a list, numpy array, pandas Series, eager TensorFlow tensor or
            other sized iterable of strings or UTF-8 bytes; or a pair of those, as a
            tuple or as `{"first": …, "second": …}`.

    Returns:
        `RawTexts`.

    Raises:
        TypeError: if an element is no text (its index is named), or `x` is of another
            kind.
        ValueError: if there is no text, bytes are not UTF-8, the two parts of a pair
            differ in number, or `x` could mean two things.
    """
    first, second = split_pair(x)
    if second is None:
        texts, scalar = _read_texts(first, "text")
        return RawTexts(texts, None, scalar)
    firsts, scalar = _read_texts(first, "first text")
    seconds, second_scalar = _read_texts(second, "second text")
    if scalar != second_scalar or len(firsts) != len(seconds):
        counts = [
            "one string" if one else f"{len(texts)} texts"
            for one, texts in ((scalar, firsts), (second_scalar, seconds))
        ]
        raise ValueError(
            "Every first text needs a second one. Received: "
            f"{counts[0]} first and {counts[1]} second."
        )
    return RawTexts(firsts, seconds, scalar)


def _read_texts(x, what: str) -> tuple[list[str], bool]:
    if is_tensorflow(x):
        x = x.numpy()
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x.item()
    if isinstance(x, str | bytes):
        return [_to_text(x, 0, what)], True
    if isinstance(x, Mapping | Set) or not isinstance(x, Iterable):
        raise TypeError(
            f"Texts must be a string or a list of strings. Received: {_short(x)} of "
            f"type {type(x).__name__}."
        )
    if not isinstance(x, Sized):
        raise TypeError(
            "Texts must have a length, as a list has. Received: a "
            f"{type(x).__name__}; pass list(x)."
        )
    if getattr(x, "ndim", 1) != 1:  # a matrix, a pandas DataFrame
        raise ValueError(
            "Texts must be one-dimensional: pass one column, or two as (firsts, "
            f"seconds). Received: a {type(x).__name__} of shape {np.shape(x)}."
        )
    if not len(x):
        raise ValueError(f"There must be at least one {what}. Received: none.")
    texts = x.tolist() if isinstance(x, np.ndarray) else list(x)
    return [
        text if type(text) is str else _to_text(text, index, what)
        for index, text in enumerate(texts)
    ], False


def _to_text(item, index: int, what: str) -> str:
    if isinstance(item, str):
        return str(item)
    if isinstance(item, bytes):
        try:
            return item.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"Bytes must be UTF-8; decode them first. Received: {what} {index} "
                f"with byte 0x{item[error.start]:02x} at position {error.start}."
            ) from error
    if _is_missing(item):
        raise TypeError(
            "Every text must be a string; drop missing ones or replace them by ''. "
            f"Received: {item!r} as {what} {index}."
        )
    if isinstance(item, list | tuple | np.ndarray):
        raise TypeError(
            f"Every text must be a string. {PAIR_HINT} "
            f"Received: {_short(item)} as {what} {index}."
        )
    raise TypeError(
        f"Every text must be a string. Received: {_short(item)} of type "
        f"{type(item).__name__} as {what} {index}."
    )


def _is_tensor(item) -> bool:
    return isinstance(item, keras.KerasTensor) or is_tensorflow(item)


def _is_missing(item) -> bool:
    if item is None or type(item).__name__ in ("NAType", "NaTType"):  # pandas'
        return True
    return isinstance(item, float) and item != item


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
