"""What stands on top of the encoder."""

import keras
from keras import ops

from kbert.layers._backend import linear
from kbert.layers.activation import activate
from kbert.layers.projection import BertProjection

# The logit of a choice or a position that cannot be the answer: its probability is 0.
RULED_OUT = -1e9


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


@keras.saving.register_keras_serializable(package="kbert")
class ChoiceLogits(keras.layers.Layer):
    """The logits of texts beside each other, those of the choices of one example.

    Call arguments:
        logits: float (N * K, 1), one a text.
        choice_mask: int32 (N, K), 0 where an example has no choice; None for texts
            that are no choices, each an example of its own.

    Returns:
        Float (N, K), -1e9 where there is no choice, so that its probability is 0.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def call(self, logits, choice_mask=None):
        """Lays the logits out; see the class for shapes."""
        if choice_mask is None:
            return logits
        logits = ops.reshape(logits, ops.shape(choice_mask))
        return ops.where(ops.equal(choice_mask, 0), RULED_OUT, logits)

    def compute_output_shape(self, logits_shape, choice_mask_shape=None):
        """Returns (N, K)."""
        return choice_mask_shape or logits_shape


@keras.saving.register_keras_serializable(package="kbert")
class MaskedLMHead(keras.layers.Layer):
    """Scores every piece of the vocabulary for each masked token.

    A dense layer with the model's activation, a normalisation, then the product with
    the token embedding, which is the model's own (tied: one variable, two uses), and a
    bias. Masked positions are gathered first, so that nothing is computed for others.

    Args:
        token_embedding: the model's `keras.layers.Embedding` of V rows of H.
        activation: of the dense layer; one of `kbert.config.ACTIVATIONS`.
        layer_norm_epsilon: epsilon of the normalisation.
        initializer_range: standard deviation of the truncated normal initialiser.

    Call arguments:
        sequence_output: float (B, S, H).
        mask_positions: int32 (masked,), where the masked tokens lie in the rows laid
            end to end: row * S + column.

    Returns:
        Float (masked, V), logits.

    Reference: Devlin et al. 2018, section 3.1, "Task #1"; google-research/bert
    `run_pretraining.py`, `get_masked_lm_output`.
    """

    def __init__(
        self,
        token_embedding,
        activation="gelu",
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.token_embedding = token_embedding
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.dense = BertProjection(
            token_embedding.output_dim,
            kernel_initializer=keras.initializers.TruncatedNormal(
                stddev=initializer_range
            ),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, sequence_output_shape, mask_positions_shape=None):
        """Makes the dense layer, the normalisation and the bias (V,)."""
        if not self.token_embedding.built:
            self.token_embedding.build((None, None))
        shape = (None, sequence_output_shape[-1])
        self.dense.build(shape)
        self.norm.build(shape)
        self.bias = self.add_weight(
            shape=(self.token_embedding.input_dim,), initializer="zeros", name="bias"
        )
        self.built = True

    def call(self, sequence_output, mask_positions, training=None):
        """Scores; see the class for shapes."""
        flat = ops.reshape(sequence_output, (-1, sequence_output.shape[-1]))
        x = ops.take(flat, mask_positions, axis=0)  # (masked, H)
        x = activate(self.dense.call(x), self.activation, bool(training))
        x = self.norm.call(x)
        table = ops.cast(self.token_embedding.embeddings, self.compute_dtype)  # (V, H)
        return linear(x, ops.transpose(table), ops.cast(self.bias, self.compute_dtype))

    def compute_output_shape(self, sequence_output_shape, mask_positions_shape):
        """Returns (masked, V)."""
        return (mask_positions_shape[0], self.token_embedding.input_dim)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "token_embedding": keras.saving.serialize_keras_object(
                self.token_embedding
            ),
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
        }

    @classmethod
    def from_config(cls, config):
        """Returns the layer that `get_config` described."""
        embedding = keras.saving.deserialize_keras_object(config["token_embedding"])
        return cls(**{**config, "token_embedding": embedding})


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


@keras.saving.register_keras_serializable(package="kbert")
class SpanHead(keras.layers.Layer):
    """Two logits a position: that an answer starts there, and that it ends there.

    The vectors S and E of section 4.2. Padding gets a logit of -1e9, so that no loss
    depends on it. When not training so does all that is not in the second text, but for
    the first position, [CLS], which stands for no answer (section 4.3). In training the
    softmax goes over the first text as well, as in run_squad.py of google-research/bert
    and in transformers (where it goes over padding too).

    Args:
        initializer_range: standard deviation of the truncated normal initialiser.

    Call arguments:
        sequence_output: float (B, S, H).
        segment_ids: int32 (B, S), 1 for the second text and the [SEP] behind it.
        padding_mask: int32 (B, S), 0 where there is no text; one text a row.

    Returns:
        Float (B, 2, S): the logits of starts, and of ends.
    """

    def __init__(self, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.initializer_range = initializer_range
        self.dense = keras.layers.Dense(
            2,
            kernel_initializer=keras.initializers.TruncatedNormal(
                stddev=initializer_range
            ),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, sequence_output_shape, segment_ids_shape, padding_mask_shape):
        """Makes the dense layer, (H, 2)."""
        self.dense.build((None, sequence_output_shape[-1]))
        self.built = True

    def call(self, sequence_output, segment_ids, padding_mask, training=None):
        """Computes the logits; see the class for shapes."""
        logits = ops.transpose(self.dense(sequence_output), (0, 2, 1))  # (B, 2, S)
        kept = ops.greater(padding_mask, 0)
        if not training:
            kept = _answerable(segment_ids, padding_mask)
        return ops.where(kept[:, None], logits, ops.cast(RULED_OUT, logits.dtype))

    def compute_output_shape(
        self, sequence_output_shape, segment_ids_shape, padding_mask_shape
    ):
        """Returns (B, 2, S)."""
        return (sequence_output_shape[0], 2, sequence_output_shape[1])

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "initializer_range": self.initializer_range}


def _answerable(segment_ids, padding_mask):
    """Returns where an answer may start or end: bool (B, S)."""
    second = ops.logical_and(ops.equal(segment_ids, 1), ops.greater(padding_mask, 0))
    second = ops.cast(second, "int32")
    # The last position of the second text is its [SEP].
    followed = ops.pad(second[:, 1:], [[0, 0], [0, 1]])
    inside = (second * followed)[:, 1:]
    first = ops.ones_like(second[:, :1])
    return ops.cast(ops.concatenate([first, inside], axis=1), "bool")
