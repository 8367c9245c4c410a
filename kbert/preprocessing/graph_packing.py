"""Text to packed ids as core TensorFlow ops, for `tf.data` and the SavedModel."""

from kbert.preprocessing.packing import (
    Spans,
    check_long_text,
    check_room,
    keep,
    masks,
    sources,
)


def pack_graph(
    first,
    second=None,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int,
    max_length: int,
    sequence_length: int | None = None,
    long_text: str = "truncate",
) -> dict:
    """Packs ragged ids by the rule of `kbert.preprocessing.packing`.

    Args:
        first: `tf.RaggedTensor` of int32 ids `(B, None)`, without special tokens.
        second: the same for the second texts, or None for single texts.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        pad_id: id of [PAD].
        max_length: most positions of a packed text.
        sequence_length: S, the width of the result; None for the longest packed text.
        long_text: "truncate" or "head_tail".

    Returns:
        Dictionary of int32 tensors `(B, S)`: `token_ids`, `segment_ids` and
        `padding_mask`.

    Raises:
        ValueError: if `long_text` is unknown, or a length has no room for the special
            tokens.
        tf.errors.InvalidArgumentError: if the texts differ in number.
    """
    import tensorflow as tf

    check_long_text(long_text)
    check_room(max_length, pair=second is not None)
    if sequence_length is not None:
        check_room(sequence_length, pair=second is not None, name="sequence_length")
        max_length = min(max_length, sequence_length)
    first = tf.cast(first, tf.int32)
    first_lengths, first_starts = _rows(first)
    if second is None:
        second_ids = tf.zeros([0], tf.int32)
        second_lengths = second_starts = tf.zeros_like(first_lengths)
    else:
        second = tf.cast(second, tf.int32)
        with tf.control_dependencies([_same_number(first, second)]):
            second_ids = tf.identity(second.flat_values)
            second_lengths, second_starts = _rows(second)
    pool = tf.concat([first.flat_values, second_ids, [cls_id, sep_id, pad_id]], axis=0)
    spans = Spans(
        first_lengths,
        second_lengths,
        first_starts,
        second_starts + tf.size(first.flat_values),
    )
    kept = keep(tf, first_lengths, second_lengths, max_length)
    width = sequence_length
    if width is None:
        width = tf.maximum(tf.reduce_max(kept.length), 0)  # 0: no text at all
    positions = tf.range(width)[None, :]  # (1, S)
    index = sources(tf, positions, spans, kept, tf.size(pool) - 3, long_text)
    is_second, is_text = masks(positions, kept)
    return {
        "token_ids": tf.gather(pool, index),
        "segment_ids": tf.cast(is_second, tf.int32),
        "padding_mask": tf.cast(is_text, tf.int32),
    }


def _rows(ragged):
    """Returns lengths and starts of the rows, both int32 `(B, 1)`."""
    import tensorflow as tf

    lengths = tf.cast(ragged.row_lengths(), tf.int32)[:, None]
    starts = tf.cast(ragged.row_starts(), tf.int32)[:, None]
    return lengths, starts


def _same_number(first, second):
    import tensorflow as tf

    return tf.debugging.assert_equal(
        first.nrows(),
        second.nrows(),
        message="Every first text needs a second one. Received: first and second "
        "texts of different number.",
    )


class TextGraph:
    """Tokenizes and packs string tensors inside a TensorFlow graph.

    Args:
        tokenizer: a `BertTokenizer`; the ids are those it computes in Python.
    """

    def __init__(self, tokenizer):
        import tensorflow as tf

        from kbert.tokenization.in_graph import WordPieceGraph

        with tf.init_scope():  # its tables outlive the graph that asked first
            self.word_pieces = WordPieceGraph(tokenizer)
        self.pad_id = tokenizer.pad_id

    def __call__(self, first, second=None, **rule) -> dict:
        """Returns what `pack_graph` returns.

        Args:
            first: string tensor of rank 1 `(B,)`, or of rank 0 for one text.
            second: the same for the second texts, or None for single texts.
            **rule: as for `pack_graph`.

        Returns:
            Dictionary of int32 tensors `(B, S)`, or `(S,)` for one text.

        Raises:
            ValueError: if the ranks are not 0 or 1, or differ.
        """
        import tensorflow as tf

        texts = [first] if second is None else [first, second]
        ranks = {text.shape.rank for text in texts}
        if len(ranks) != 1 or not ranks <= {0, 1}:
            raise ValueError(
                "Text must be a tensor of rank 1, or of rank 0 for one text; both "
                "texts of a pair alike. Received: shapes "
                f"{[str(text.shape) for text in texts]}."
            )
        ids = [self.word_pieces(tf.reshape(text, [-1])) for text in texts]
        packed = pack_graph(*ids, pad_id=self.pad_id, **rule)
        if ranks == {0}:
            packed = {name: tensor[0] for name, tensor in packed.items()}
        return packed


def is_symbolic(x) -> bool:
    """Says whether `x` is a tensor of a graph that is being made."""
    import tensorflow as tf

    return tf.is_symbolic_tensor(x)


def as_tensors(batch: dict) -> dict:
    """Returns a dictionary of numpy arrays as TensorFlow tensors."""
    import tensorflow as tf

    return {name: tf.constant(array) for name, array in batch.items()}
