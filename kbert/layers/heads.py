"""What stands on top of the encoder."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kbert")
class BertPooler(keras.layers.Layer):
    """One vector a text: tanh of a dense layer on the text's first position, [CLS].

    Args:
        hidden_dim: H.
        initializer_range: standard deviation of the truncated normal initialiser.

    Call arguments:
        sequence_output: float (B, S, H).
        first_positions: int32 (texts,), where each text's [CLS] lies in the rows laid
            end to end, row * S + column; None for column 0 of every row.

    Returns:
        Float (texts, H), which is (B, H) for one text a row.

    Reference: google-research/bert `modeling.py`; the paper's C is the vector before
    the dense layer.
    """

    def __init__(self, hidden_dim, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range
        self.dense = keras.layers.Dense(
            hidden_dim,
            activation="tanh",
            kernel_initializer=keras.initializers.TruncatedNormal(
                stddev=initializer_range
            ),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, sequence_output_shape, first_positions_shape=None):
        """Makes the dense layer, (H, H)."""
        self.dense.build((None, sequence_output_shape[-1]))
        self.built = True

    def call(self, sequence_output, first_positions=None):
        """Pools; see the class for shapes."""
        return self.dense(at_first(sequence_output, first_positions))

    def compute_output_shape(self, sequence_output_shape, first_positions_shape=None):
        """Returns (texts, H)."""
        texts = (first_positions_shape or sequence_output_shape)[0]
        return (texts, self.hidden_dim)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "initializer_range": self.initializer_range,
        }


def at_first(x, first_positions):
    """Returns what stands at the first position of every text.

    Args:
        x: float (B, S, H).
        first_positions: int32 (texts,) or None, as in `BertPooler`.

    Returns:
        Float (texts, H).
    """
    if first_positions is None:
        return x[:, 0]
    flat = ops.reshape(x, (-1, x.shape[-1]))  # (B * S, H)
    return ops.take(flat, first_positions, axis=0)
