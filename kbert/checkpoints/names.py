"""THE table of variable names: one row a variable, one column a format.

Every reader and writer goes through it, in both directions. A row's transform turns
the array of the one format into that of the other; each is its own inverse.
"""

import re
from typing import NamedTuple

import numpy as np

NONE = "none"
TRANSPOSE = "transpose"  # torch's Linear keeps (out, in), a Keras kernel is (in, out)


class Row(NamedTuple):
    """One variable. `{i}` stands for the number of the layer.

    Args:
        kbert: `variable.path`.
        hugging_face: the tensor's name in a model with a head; a checkpoint of the
            bare `BertModel` leaves out the prefix "bert.".
        transform: NONE or TRANSPOSE.
    """

    kbert: str
    hugging_face: str
    transform: str


EMBEDDINGS = (
    ("token_embedding/embeddings", "word_embeddings.weight", NONE),
    ("position_embedding/embeddings", "position_embeddings.weight", NONE),
    ("segment_embedding/embeddings", "token_type_embeddings.weight", NONE),
    ("norm/gamma", "LayerNorm.weight", NONE),
    ("norm/beta", "LayerNorm.bias", NONE),
)
ENCODER_LAYER = (
    ("attention/query/kernel", "attention.self.query.weight", TRANSPOSE),
    ("attention/query/bias", "attention.self.query.bias", NONE),
    ("attention/key/kernel", "attention.self.key.weight", TRANSPOSE),
    ("attention/key/bias", "attention.self.key.bias", NONE),
    ("attention/value/kernel", "attention.self.value.weight", TRANSPOSE),
    ("attention/value/bias", "attention.self.value.bias", NONE),
    ("attention/output/kernel", "attention.output.dense.weight", TRANSPOSE),
    ("attention/output/bias", "attention.output.dense.bias", NONE),
    ("attention_norm/gamma", "attention.output.LayerNorm.weight", NONE),
    ("attention_norm/beta", "attention.output.LayerNorm.bias", NONE),
    ("intermediate/kernel", "intermediate.dense.weight", TRANSPOSE),
    ("intermediate/bias", "intermediate.dense.bias", NONE),
    ("output/kernel", "output.dense.weight", TRANSPOSE),
    ("output/bias", "output.dense.bias", NONE),
    ("output_norm/gamma", "output.LayerNorm.weight", NONE),
    ("output_norm/beta", "output.LayerNorm.bias", NONE),
)
POOLER = (
    ("dense/kernel", "dense.weight", TRANSPOSE),
    ("dense/bias", "dense.bias", NONE),
)
CLASSIFIER = (
    ("kernel", "weight", TRANSPOSE),
    ("bias", "bias", NONE),
)


def _rows(kbert: str, hugging_face: str, names: tuple) -> list[Row]:
    """Returns the rows of one part of the model, each name with its prefix."""
    return [
        Row(kbert + ours, hugging_face + theirs, transform)
        for ours, theirs, transform in names
    ]


ENCODER = (
    *_rows("embeddings/", "bert.embeddings.", EMBEDDINGS),
    *_rows("encoder_layer_{i}/", "bert.encoder.layer.{i}.", ENCODER_LAYER),
)
# What another task's checkpoint may lack, or have for itself.
HEADS = (
    *_rows("pooler/", "bert.pooler.", POOLER),
    *_rows("classifier/", "classifier.", CLASSIFIER),
)
TABLE = (*ENCODER, *HEADS)

_INDEX = {
    column: {getattr(row, column): row for row in TABLE}
    for column in ("kbert", "hugging_face")
}
_LAYER_NUMBER = re.compile(r"(?<=[._])\d+(?=[./])")


def translate(name: str, source: str, target: str) -> tuple[str, str] | None:
    """Returns a variable's name in another format.

    Args:
        name: the name in the format `source`.
        source: the column of the table that `name` is from.
        target: the column to translate to.

    Returns:
        The name in the format `target` and the transform; None for a name that is
        not in the table.

    Example:
    >>> translate("encoder_layer_3/output/kernel", "kbert", "hugging_face")
    ('bert.encoder.layer.3.output.dense.weight', 'transpose')
    """
    number = _LAYER_NUMBER.search(name)
    row = _INDEX[source].get(_LAYER_NUMBER.sub("{i}", name))
    if row is None:
        return None
    translated = getattr(row, target)
    if number:
        translated = translated.replace("{i}", number.group())
    return translated, row.transform


def head_of(path: str) -> str | None:
    """Returns the head that a variable belongs to, None for the encoder's.

    Example:
    >>> head_of("pooler/dense/bias")
    'pooler'
    """
    head = path.split("/")[0]
    return head if any(row.kbert.startswith(f"{head}/") for row in HEADS) else None


def apply(transform: str, array: np.ndarray) -> np.ndarray:
    """Returns the array in the other format's layout.

    Example:
    >>> apply(TRANSPOSE, np.zeros((3, 2))).shape
    (2, 3)
    """
    return array.T if transform == TRANSPOSE else array
