"""THE table of variable names: one row a variable, one column a format.

Every reader and writer goes through it, in both directions. A transform turns an array
of kbert into that of the other format; each is its own inverse.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

NONE = "none"
TRANSPOSE = "transpose"  # (out, in) there, where a Keras kernel is (in, out)

# In which formats an array lies otherwise than in kbert.
SAME: Mapping[str, str] = {}
TORCH = {"hugging_face": TRANSPOSE}
TORCH_AND_GOOGLE = {"hugging_face": TRANSPOSE, "google": TRANSPOSE}


class Row(NamedTuple):
    """One variable, or a part of its name. `{i}` stands for the number of the layer.

    Args:
        kbert: `variable.path`.
        hugging_face: the tensor's name in a model with a head; a checkpoint of the
            bare `BertModel` leaves out the prefix "bert.".
        google: the variable of google-research/bert's `modeling.py` and scripts.
        keras_hub: the dataset in the HDF5 file of a KerasHub preset, with a number at
            the first layer too, and with "task/" in front for `task.weights.h5`; None
            where KerasHub has no such head.
        transforms: of the formats in which the array lies otherwise than in kbert.
    """

    kbert: str
    hugging_face: str
    google: str
    keras_hub: str | None
    transforms: Mapping[str, str] = SAME

    def transform(self, column: str) -> str:
        """Returns NONE or TRANSPOSE: how the array lies in a format."""
        return self.transforms.get(column, NONE)


# How the variables of a layer are called.
TABLE_OF_VECTORS = (Row("/embeddings", ".weight", "", "/vars/0"),)
NORM = (
    Row("/gamma", ".weight", "/gamma", "/vars/0"),
    Row("/beta", ".bias", "/beta", "/vars/1"),
)
DENSE = (
    Row("/kernel", ".weight", "/kernel", "/vars/0", TORCH),
    Row("/bias", ".bias", "/bias", "/vars/1"),
)
LOGITS = (
    Row("/kernel", ".weight", "output_weights", "/vars/0", TORCH_AND_GOOGLE),
    Row("/bias", ".bias", "output_bias", "/vars/1"),
)
# How the layers are called: in kbert, in transformers, by Google, by KerasHub.
EMBEDDINGS = (
    (
        TABLE_OF_VECTORS,
        *("token_embedding", "word_embeddings"),
        *("word_embeddings", "reversible_embedding"),
    ),
    (
        TABLE_OF_VECTORS,
        *("position_embedding", "position_embeddings"),
        *("position_embeddings", "position_embedding"),
    ),
    (
        TABLE_OF_VECTORS,
        *("segment_embedding", "token_type_embeddings"),
        *("token_type_embeddings", "embedding"),
    ),
    (NORM, "norm", "LayerNorm", "LayerNorm", "layer_normalization"),
)
ENCODER_LAYER = (
    (
        DENSE,
        *("attention/query", "attention.self.query"),
        *("attention/self/query", "_self_attention_layer/query_dense"),
    ),
    (
        DENSE,
        *("attention/key", "attention.self.key"),
        *("attention/self/key", "_self_attention_layer/key_dense"),
    ),
    (
        DENSE,
        *("attention/value", "attention.self.value"),
        *("attention/self/value", "_self_attention_layer/value_dense"),
    ),
    (
        DENSE,
        *("attention/output", "attention.output.dense"),
        *("attention/output/dense", "_self_attention_layer/output_dense"),
    ),
    (
        NORM,
        *("attention_norm", "attention.output.LayerNorm"),
        *("attention/output/LayerNorm", "_self_attention_layer_norm"),
    ),
    (
        DENSE,
        *("intermediate", "intermediate.dense"),
        *("intermediate/dense", "_feedforward_intermediate_dense"),
    ),
    (
        DENSE,
        *("output", "output.dense"),
        *("output/dense", "_feedforward_output_dense"),
    ),
    (
        NORM,
        *("output_norm", "output.LayerNorm"),
        *("output/LayerNorm", "_feedforward_layer_norm"),
    ),
)
POOLER = ((DENSE, "dense", "dense", "dense", "dense"),)
MASKED_LM = (
    (DENSE, "/dense", ".transform.dense", "/transform/dense", "/_intermediate_dense"),
    (
        NORM,
        *("/norm", ".transform.LayerNorm"),
        *("/transform/LayerNorm", "/_intermediate_layer_norm"),
    ),
    ((Row("/bias", ".bias", "/output_bias", "/vars/0"),), "", "", "", ""),
)
NEXT_SENTENCE = ((LOGITS, "nsp", "cls.seq_relationship", "cls/seq_relationship/", ""),)
# In transformers the heads of taggers and of multiple choice are called the same.
CLASSIFIER = ((LOGITS, "classifier", "classifier", "", "task/layers/dense"),)
SPANS = ((LOGITS, "spans", "qa_outputs", "cls/squad/", ""),)


def _rows(prefixes: tuple[str, ...], layers: tuple) -> list[Row]:
    """Returns the rows of one part of the model, each name with its prefix."""
    return [
        Row._make(
            [*map("".join, zip(prefixes, names, variable, strict=True)), transforms]
        )
        for variables, *names in layers
        for *variable, transforms in variables
    ]


ENCODER = (
    *_rows(
        ("embeddings/", "bert.embeddings.", "bert/embeddings/", "layers/"), EMBEDDINGS
    ),
    *_rows(
        (
            *("encoder_layer_{i}/", "bert.encoder.layer.{i}."),
            *("bert/encoder/layer_{i}/", "layers/transformer_encoder_{i}/"),
        ),
        ENCODER_LAYER,
    ),
)
# What another task's checkpoint may lack, or have for itself.
HEADS = (
    *_rows(("pooler/", "bert.pooler.", "bert/pooler/", "layers/"), POOLER),
    *_rows(("", "", "", ""), CLASSIFIER),
    *_rows(
        ("mlm", "cls.predictions", "cls/predictions", "task/layers/masked_lm_head"),
        MASKED_LM,
    ),
    *(
        row._replace(keras_hub=None)
        for row in _rows(("", "", "", ""), (*NEXT_SENTENCE, *SPANS))
    ),
)
TABLE = (*ENCODER, *HEADS)
COLUMNS = Row._fields[:-1]

_INDEX = {
    column: {
        getattr(row, column): row for row in TABLE if getattr(row, column) is not None
    }
    for column in COLUMNS
}
_LAYER_NUMBER = re.compile(r"(?<=[._])\d+(?=[./])")


def translate(name: str, source: str, target: str) -> tuple[str, str] | None:
    """Returns a variable's name in another format.

    Args:
        name: the name in the format `source`.
        source: the column of the table that `name` is from.
        target: the column to translate to; one of the two is "kbert".

    Returns:
        The name in the format `target` and the transform; None for a name that is
        not in the table, or that `target` has no name for.

    Example:
    >>> translate("encoder_layer_3/output/kernel", "kbert", "hugging_face")
    ('bert.encoder.layer.3.output.dense.weight', 'transpose')
    >>> translate("bert/encoder/layer_3/output/dense/kernel", "google", "kbert")
    ('encoder_layer_3/output/kernel', 'none')
    """
    number = _LAYER_NUMBER.search(name)
    row = _INDEX[source].get(_LAYER_NUMBER.sub("{i}", name))
    if row is None:
        return None
    translated = getattr(row, target)
    if translated is None:
        return None
    if number:
        translated = translated.replace("{i}", number.group())
    return translated, row.transform(target if source == "kbert" else source)


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
