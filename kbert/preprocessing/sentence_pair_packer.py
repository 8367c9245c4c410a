"""The packing rule as a Keras layer, for ids that already are tensors."""

import keras
from keras import ops

from kbert.preprocessing.packing import (
    Spans,
    check_long_text,
    check_room,
    keep,
    masks,
    sources,
)


@keras.saving.register_keras_serializable(package="kbert")
class SentencePairPacker(keras.layers.Layer):
    """Packs ids into `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

    For pipelines that tokenize on their own, eagerly or inside a functional model, on
    every backend. Raw text is for `BertPreprocessor`. The rule, truncation included,
    is that of `kbert.preprocessing.packing`: segment 1 begins behind the first [SEP]
    and ends with the last.

    Args:
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        sequence_length: S, the width of the result.
        pad_id: id that fills the inputs behind their last token, and the result.
        long_text: "truncate" keeps the beginning of a text that is too long,
            "head_tail" its first quarter and the rest from its end.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: integer tensor `(B, W)` of ids without special tokens, filled with
            `pad_id` on the right; or a tuple of two such tensors, whose widths may
            differ. A second text that is all `pad_id` counts as absent.
        sequence_length: S for this call instead of the constructor's.

    Returns:
        Dictionary of int32 tensors `(B, S)`: `token_ids`, `segment_ids` and
        `padding_mask`.

    Raises:
        ValueError: if there are more than two segments, an input is not of rank 2 or
            not integer, or `sequence_length` has no room for the special tokens.

    Example:
    >>> import numpy as np
    >>> packer = SentencePairPacker(cls_id=2, sep_id=3, sequence_length=7)
    >>> packed = packer((np.array([[7, 8]]), np.array([[9]])))
    >>> keras.ops.convert_to_numpy(packed["token_ids"]).tolist()
    [[2, 7, 8, 3, 9, 3, 0]]
    """

    def __init__(
        self,
        cls_id,
        sep_id,
        sequence_length,
        *,
        pad_id=0,
        long_text="truncate",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_long_text(long_text)
        check_room(sequence_length, pair=False, name="sequence_length")
        self.cls_id = cls_id
        self.sep_id = sep_id
        self.sequence_length = sequence_length
        self.pad_id = pad_id
        self.long_text = long_text

    def call(self, inputs, sequence_length=None):
        """Packs one batch; see the class."""
        width = self.sequence_length if sequence_length is None else sequence_length
        first, *second = _segments(inputs)
        check_room(width, pair=bool(second), name="sequence_length")
        first_lengths, first_starts = self._rows(first)
        pool = [ops.reshape(first, (-1,))]
        if second:
            second_lengths, second_starts = self._rows(second[0])
            second_starts = second_starts + ops.size(first)
            pool.append(ops.reshape(second[0], (-1,)))
        else:
            second_lengths = second_starts = ops.zeros_like(first_lengths)
        specials = ops.convert_to_tensor(
            [self.cls_id, self.sep_id, self.pad_id], dtype="int32"
        )
        pool = ops.concatenate([*pool, specials])
        spans = Spans(first_lengths, second_lengths, first_starts, second_starts)
        kept = keep(ops, first_lengths, second_lengths, width)
        positions = ops.expand_dims(ops.arange(width, dtype="int32"), 0)  # (1, S)
        index = sources(ops, positions, spans, kept, ops.size(pool) - 3, self.long_text)
        is_second, is_text = masks(positions, kept)
        return {
            "token_ids": ops.take(pool, index),
            "segment_ids": ops.cast(is_second, "int32"),
            "padding_mask": ops.cast(is_text, "int32"),
        }

    def _rows(self, ids):
        """Returns length and start in the flattened ids, int32 `(B, 1)` each."""
        rows, width = ops.shape(ids)[0], ops.shape(ids)[1]
        numbers = ops.expand_dims(ops.arange(1, width + 1, dtype="int32"), 0)
        numbers = ops.where(ids == self.pad_id, 0, numbers)
        lengths = ops.max(numbers, axis=1, keepdims=True, initial=0)
        starts = ops.expand_dims(ops.arange(rows, dtype="int32"), 1) * width
        return lengths, starts

    def get_config(self):
        """Returns every constructor argument."""
        return {
            **super().get_config(),
            "cls_id": self.cls_id,
            "sep_id": self.sep_id,
            "sequence_length": self.sequence_length,
            "pad_id": self.pad_id,
            "long_text": self.long_text,
        }


def _segments(inputs) -> list:
    segments = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    if not 1 <= len(segments) <= 2:
        raise ValueError(
            "BERT has two segments: pass one tensor of ids, or a tuple of two. "
            f"Received: {len(segments)} segments."
        )
    for segment in segments:
        shape = getattr(segment, "shape", ())
        if len(shape) != 2:
            raise ValueError(
                "The ids must be a tensor or array of shape (batch, length). Received: "
                f"a {type(segment).__name__} of shape {tuple(shape)}."
            )
        dtype = keras.backend.standardize_dtype(segment.dtype)
        if "int" not in dtype:
            raise ValueError(f"The ids must be integers. Received: dtype={dtype}.")
    return [ops.cast(segment, "int32") for segment in segments]
