"""The sum of token, position and segment embeddings (section 3.1, figure 2)."""

import keras
from keras import ops

from kbert.layers.dropout import dropped
from kbert.layers.initial_values import truncated_normal


@keras.saving.register_keras_serializable(package="kbert")
class BertEmbeddings(keras.layers.Layer):
    """Turns ids into vectors: token + position + segment, normalised, dropped out.

    Positions count from 0 at the start of every text. Where `padding_mask` holds only
    0 and 1 that is the plain column number, as in Google's code, whatever the mask;
    where it numbers several texts in a row (1, 1, 1, 2, 2, 0) it restarts at each.

    Args:
        vocabulary_size: V, rows of the token embedding.
        hidden_dim: H.
        max_sequence_length: rows of the position embedding.
        num_segments: rows of the segment embedding.
        dropout: rate after the normalisation.
        layer_norm_epsilon: epsilon of the normalisation.
        initializer_range: standard deviation of the truncated normal initialiser.

    Call arguments:
        token_ids: int (B, S), each in [0, V).
        segment_ids: int (B, S), each in [0, num_segments).
        padding_mask: int (B, S): the number of the text at each position, from 1; 0 is
            padding.

    Returns:
        Float (B, S, H).

    Reference: Devlin et al. 2018, section 3, "Input/Output Representations".
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        max_sequence_length=512,
        num_segments=2,
        dropout=0.1,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range

        def table(rows, name):
            return keras.layers.Embedding(
                rows,
                hidden_dim,
                embeddings_initializer=truncated_normal(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        self.token_embedding = table(vocabulary_size, "token_embedding")
        self.position_embedding = table(max_sequence_length, "position_embedding")
        self.segment_embedding = table(num_segments, "segment_embedding")
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, token_ids_shape, segment_ids_shape=None, padding_mask_shape=None):
        """Makes the three tables and the normalisation."""
        for table in (
            self.token_embedding,
            self.position_embedding,
            self.segment_embedding,
        ):
            table.build(token_ids_shape)
        self.norm.build((*token_ids_shape, self.hidden_dim))
        self.built = True

    def call(self, token_ids, segment_ids, padding_mask, training=None):
        """Embeds; see the class for shapes."""
        x = self.token_embedding(token_ids)
        x = x + self.position_embedding(positions(padding_mask))
        x = x + self.segment_embedding(segment_ids)
        return dropped(self.dropout_layer, self.norm(x), training)

    def compute_output_shape(
        self, token_ids_shape, segment_ids_shape=None, padding_mask_shape=None
    ):
        """Returns (B, S, H)."""
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
        }


def positions(padding_mask):
    """Returns the position of every column within its own text.

    Args:
        padding_mask: int (B, S), numbers of texts as in `BertEmbeddings`.

    Returns:
        Int32 (B, S). The plain column number unless a row holds a number above 1.

    Example:
    >>> import numpy as np
    >>> keras.ops.convert_to_numpy(positions(np.array([[1, 1, 1, 2, 2, 0]]))).tolist()
    [[0, 1, 2, 0, 1, 0]]
    >>> keras.ops.convert_to_numpy(positions(np.array([[0, 1, 1, 0]]))).tolist()
    [[0, 1, 2, 3]]
    """
    padding_mask = ops.cast(padding_mask, "int32")
    column = ops.arange(ops.shape(padding_mask)[1], dtype="int32")[None, :]  # (1, S)
    same_text = ops.equal(padding_mask[:, :, None], padding_mask[:, None, :])
    # (B, S, S)
    first = ops.argmax(ops.cast(same_text, "int32"), axis=-1)  # (B, S)
    packed = ops.max(padding_mask, axis=1, keepdims=True) > 1  # (B, 1)
    return column - ops.where(packed, ops.cast(first, "int32"), 0)
