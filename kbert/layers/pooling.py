"""One vector a text, made of those of its tokens."""

import keras
from keras import ops

from kbert.layers.heads import RULED_OUT, at_first

POOLING = ("mean", "cls", "max")

# Below this length a vector is left as it is, as in transformers' and torch's code.
_LEAST_SQUARE = 1e-24


@keras.saving.register_keras_serializable(package="kbert")
class TextPooling(keras.layers.Layer):
    """The mean, the first or the largest of a text's vectors, of length 1 if asked for.

    As sentence-transformers' modules `Pooling` and `Normalize`.

    Args:
        pooling: "mean" and "max" go over the positions of a text, each number by
            itself; "cls" takes that of the first one.
        normalize: whether to divide by the Euclidean length.
        special_tokens: whether [CLS] and every [SEP] count in "mean" and "max". Without
            them a text that has no other token is all 0.

    Call arguments:
        sequence_output: float (B, S, H).
        segment_ids: int32 (B, S).
        padding_mask: int32 (B, S), the number of the text at each position, 0 for none.
        first_positions: int32 (texts,), where each text's [CLS] lies in the rows laid
            end to end; None for one text a row.

    Returns:
        Float (texts, H), which is (B, H) for one text a row.

    Raises:
        ValueError: if `pooling` is none.

    Reference: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084, section 3.
    """

    def __init__(self, pooling="mean", normalize=True, special_tokens=True, **kwargs):
        super().__init__(**kwargs)
        if pooling not in POOLING:
            raise ValueError(
                f"`pooling` must be one of {POOLING}. Received: pooling={pooling!r}."
            )
        self.pooling = pooling
        self.normalize = normalize
        self.special_tokens = special_tokens

    def call(self, sequence_output, segment_ids, padding_mask, first_positions=None):
        """Pools; see the class for shapes."""
        if self.pooling == "cls":
            pooled = at_first(sequence_output, first_positions)
        else:
            counted = ops.greater(padding_mask, 0)
            if not self.special_tokens:
                counted = _between(segment_ids, padding_mask)
            pool = _mean if self.pooling == "mean" else _max
            pooled = pool(sequence_output, padding_mask, counted, first_positions)
        if not self.normalize:
            return pooled
        squares = ops.sum(ops.square(pooled), axis=-1, keepdims=True)
        return pooled * ops.rsqrt(ops.maximum(squares, _LEAST_SQUARE))

    def compute_output_shape(
        self,
        sequence_output_shape,
        segment_ids_shape,
        padding_mask_shape,
        first_positions_shape=None,
    ):
        """Returns (texts, H)."""
        texts = (first_positions_shape or sequence_output_shape)[0]
        return (texts, sequence_output_shape[-1])

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "pooling": self.pooling,
            "normalize": self.normalize,
            "special_tokens": self.special_tokens,
        }


def _mean(x, padding_mask, counted, first_positions):
    """Returns the mean of what is counted, (texts, H), a product of two matrices."""
    if first_positions is None:
        parts = ops.cast(counted, x.dtype)  # (B, S)
        sums = ops.matmul(parts[:, None], x)[:, 0]
    else:
        numbers = ops.reshape(padding_mask, (-1,))  # (B * S,)
        width = ops.shape(padding_mask)[1]
        rows = ops.arange(ops.shape(numbers)[0], dtype="int32") // width
        same_row = ops.equal(rows, (first_positions // width)[:, None])
        own = ops.equal(numbers, ops.take(numbers, first_positions)[:, None])
        own = ops.logical_and(own, ops.reshape(counted, (1, -1)))
        own = ops.logical_and(own, same_row)
        parts = ops.cast(own, x.dtype)  # (texts, B * S)
        sums = ops.matmul(parts, ops.reshape(x, (-1, x.shape[-1])))
    return sums / ops.maximum(ops.sum(parts, axis=-1, keepdims=True), 1.0)


def _max(x, padding_mask, counted, first_positions):
    """Returns the largest of what is counted, (texts, H); 0 where there is nothing."""
    if first_positions is not None:
        numbers = ops.take(ops.reshape(padding_mask, (-1,)), first_positions)
        rows = first_positions // ops.shape(padding_mask)[1]
        x = ops.take(x, rows, axis=0)  # (texts, S, H)
        own = ops.equal(ops.take(padding_mask, rows, axis=0), numbers[:, None])
        counted = ops.logical_and(own, ops.take(counted, rows, axis=0))
    largest = ops.max(ops.where(counted[..., None], x, RULED_OUT), axis=1)
    return ops.where(ops.any(counted, axis=1)[:, None], largest, 0.0)


def _between(segment_ids, padding_mask):
    """Returns where neither [CLS] nor [SEP] stands: bool (B, S).

    [CLS] is the first position of a text, [SEP] the last one of a segment. Texts that
    lie beside each other bear unlike numbers.
    """
    before = ops.pad(padding_mask[:, :-1], [[0, 0], [1, 0]])
    behind = ops.pad(padding_mask[:, 1:], [[0, 0], [0, 1]])
    segment_behind = ops.pad(segment_ids[:, 1:], [[0, 0], [0, 1]])
    same_text = ops.logical_and(
        ops.equal(before, padding_mask), ops.equal(behind, padding_mask)
    )
    inside = ops.logical_and(same_text, ops.equal(segment_behind, segment_ids))
    return ops.logical_and(inside, ops.greater(padding_mask, 0))
