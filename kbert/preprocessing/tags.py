"""Tags of words as people write them to targets of tokens, and their checks."""

from collections.abc import Collection, Sequence

import numpy as np

from kbert.preprocessing.words import NO_WORD, EncodedWords, listed


def encode_tags(tags, labels: Sequence[str], encoded: EncodedWords) -> np.ndarray:
    """Turns tags into indices, checked word by word.

    Args:
        tags: for each of N texts a tag a word: names, or indices of `labels`. Lists,
            arrays, Series, ragged tensors.
        labels: the names of the C tags.
        encoded: the words.

    Returns:
        int32 `(words,)`, those of one text after those of another.

    Raises:
        TypeError: if the tags of a text are no list, or one is neither a name nor an
            index; text and word are named.
        ValueError: if their number is not that of the texts or words, one is unknown
            or out of range, or a text has no words.
    """
    texts = listed(tags, "Tags")
    if len(texts) != len(encoded):
        raise ValueError(
            "Every text needs a list of tags, one a word. Received: "
            f"{len(encoded)} texts, {len(texts)} lists of tags."
        )
    indices = {name: index for index, name in enumerate(labels)}
    counts = np.diff(encoded.word_splits)
    found = np.empty(encoded.word_splits[-1], np.int32)
    for text, row in enumerate(texts):
        if isinstance(row, str | bytes) or not isinstance(row, Collection):
            raise TypeError(
                "The tags of a text must be a list, one a word; for a single text "
                f"pass lists of one text. Received: {row!r} as the tags of text {text}."
            )
        if len(row) != counts[text] or not counts[text]:
            raise ValueError(
                "Every text must have words, and every word one tag. Received: "
                f"{counts[text]} words and {len(row)} tags in text {text}."
            )
        begin = encoded.word_splits[text]
        for word, tag in enumerate(row):
            found[begin + word] = _index(tag, indices, text, word)
    return found


def check_several_tags(targets: np.ndarray, labels: Sequence[str]) -> None:
    """Raises ValueError if the tags to train on, integers, are all the same."""
    scored = targets[targets >= 0]
    if not len(scored) or (scored == scored[0]).all():
        told = repr(labels[scored[0]]) if len(scored) else "not scored"
        raise ValueError(
            "Training needs words of at least two tags. Received: "
            f"{len(scored)} words, all of them {told}."
        )


def check_target_array(targets, labels: Sequence[str], shape) -> np.ndarray:
    """Checks the targets of ready arrays.

    Args:
        targets: integers `(N, S)`, the tag of every token that is scored, and below
            0 (transformers has -100) for every other.
        labels: the names of the C tags.
        shape: `(N, S)`, that of the inputs.

    Returns:
        int32 `(N, S)`, with one number below 0.

    Raises:
        ValueError: if it is of another kind or shape, or an index is out of range.
    """
    array = np.asarray(targets)
    if array.dtype.kind not in "iu" or array.shape != tuple(shape):
        raise ValueError(
            "Beside ready arrays `y` must be integers, one a token, of shape "
            f"{tuple(shape)}. Received: {array.dtype} of shape {array.shape}."
        )
    if array.size and array.max() >= len(labels):
        raise ValueError(
            f"The index of a tag must be below {len(labels)}, or below 0 where there "
            f"is none. Received: {array.max()}."
        )
    return np.maximum(array, NO_WORD).astype(np.int32)


def _index(tag, indices, text: int, word: int) -> int:
    """Returns the index of one tag."""
    where = f"as the tag of word {word} in text {text}"
    if isinstance(tag, bytes):
        tag = tag.decode("utf-8", "replace")
    if isinstance(tag, str):
        if tag not in indices:
            raise ValueError(
                f"A tag must be one of {list(indices)}. Received: {str(tag)!r} {where}."
            )
        return indices[tag]
    if isinstance(tag, bool | np.bool_) or not isinstance(tag, int | np.integer):
        raise TypeError(f"A tag must be a name or an index. Received: {tag!r} {where}.")
    if not 0 <= tag < len(indices):
        raise ValueError(
            f"The index of a tag must lie in [0, {len(indices)}). Received: {tag} "
            f"{where}."
        )
    return int(tag)
