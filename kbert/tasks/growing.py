"""A larger vocabulary: tokenizer, embedding, tied decoder and bias grow together."""

import copy as copying
import sys

import keras
import numpy as np

# Variables with a row a piece, which grow along their first axis.
_GROWING = ("embeddings/token_embedding/embeddings", "mlm/bias")


def with_added_tokens(task, tokens):
    """Returns a copy of the task that knows more pieces; all old weights are kept.

    The pieces stand at the end of its vocabulary. New rows are random, as at the
    beginning of pre-training, and must be trained (the bias starts at 0). Rows that a
    padded embedding has beyond the vocabulary are used before any is added. The given
    task stays as it is: variables cannot grow. The copy is compiled as a new task is,
    with the same learning rate and rows.

    Args:
        task: the `BertTask`.
        tokens: words as the tokenizer normalises them, or continuations ("##ly").

    Raises:
        ValueError: if a piece is known, twice there, or could never be cut out; or if
            the task has no preprocessor.
    """
    tokenizer = task.require_preprocessor().tokenizer
    tokens = _checked(tokens, tokenizer)
    config = copying.deepcopy(task.get_config())
    options = config["preprocessor"]["config"]["tokenizer"]
    options["vocabulary"] = [*options["vocabulary"], *tokens]
    sizes = config["backbone"]["config"]
    old_rows = sizes["vocabulary_size"]
    sizes["vocabulary_size"] = max(old_rows, len(options["vocabulary"]))
    grown = type(task).from_config(config)
    _copy_weights(task, grown)
    grown.compile(learning_rate=task.choices.learning_rate, rows=task.choices.rows)
    sys.stderr.write(
        f"{len(tokens)} new pieces, ids {tokenizer.vocabulary_size} to "
        f"{len(options['vocabulary']) - 1}; the token embedding has "
        f"{sizes['vocabulary_size']} rows instead of {old_rows}. The new rows are "
        "random: train them.\n"
    )
    return grown


def _copy_weights(task, grown):
    """Copies every weight; of those that have grown, the old rows."""
    old = {weight.path: weight for weight in task.weights}
    for weight in grown.weights:
        value = _as_array(old[weight.path])
        if weight.path in _GROWING:
            value = np.concatenate([value, _as_array(weight)[len(value) :]])
        weight.assign(value)


def _as_array(weight):
    """Returns a variable's value, by way of a tensor: numpy warns of TensorFlow's."""
    return keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(weight))


def _checked(tokens, tokenizer) -> list[str]:
    """Returns the pieces as a list, each one that the tokenizer can come upon."""
    if isinstance(tokens, str) or not tokens:
        raise ValueError(f"`tokens` must be a list of pieces. Received: {tokens!r}.")
    found: list[str] = []
    for token in tokens:
        if token in found or token in tokenizer.vocabulary:
            raise ValueError(f"Every piece must be new. Received: {token!r} again.")
        word = token.removeprefix("##") if isinstance(token, str) else ""
        words = [word.text for word in tokenizer.normalizer.words(word)]
        if words != [word] or len(word) > tokenizer.max_word_length:
            raise ValueError(
                "A piece must be one word as the tokenizer normalises it, or it would "
                f"never be cut out of a text. Received: {token!r}, which is cut into "
                f"{words}."
            )
        found.append(token)
    return found
