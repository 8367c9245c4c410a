"""One post-norm layer of the Transformer encoder (Vaswani et al. 2017, section 3.1)."""

import keras
from keras import ops

from kbert.layers.activation import activate
from kbert.layers.attention import BertSelfAttention, flattened
from kbert.layers.dropout import dropped
from kbert.layers.heads import at_first
from kbert.layers.initial_values import truncated_normal
from kbert.layers.projection import BertProjection


@keras.saving.register_keras_serializable(package="kbert")
class BertEncoderLayer(keras.layers.Layer):
    """Self-attention and a feed-forward layer, each added to its input and normalised.

    Args:
        hidden_dim: H.
        num_heads: N.
        intermediate_dim: F.
        activation: of the feed-forward layer; one of `kbert.config.ACTIVATIONS`.
        dropout: rate after each of the two sub-layers.
        attention_dropout: rate on the attention probabilities.
        layer_norm_epsilon: epsilon of both normalisations.
        initializer_range: standard deviation of the truncated normal initialiser.
        remat: whether training keeps only the layer's input and computes the rest a
            second time for the gradients: less memory for more time. Dropout draws
            the same masks both times.

    Call arguments:
        x: float (B, S, H).
        mask: bool (B, 1, S, S), as in `BertSelfAttention`.
        first_positions: int32 (texts,), as in `BertPooler`, for `first_only`.
        first_only: whether only the first position of every text is wanted. In the last
            layer of a classifier it is, and three quarters of the layer need not be
            computed for the others.

    Returns:
        Float (B, S, H); with `first_only` (texts, 1, H).
    """

    def __init__(
        self,
        hidden_dim,
        num_heads,
        intermediate_dim,
        activation="gelu",
        dropout=0.1,
        attention_dropout=0.1,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        remat=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.remat = remat
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range

        def dense(units, name):
            return BertProjection(
                units,
                kernel_initializer=truncated_normal(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        def norm(name):
            return keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=name
            )

        self.attention = BertSelfAttention(
            hidden_dim,
            num_heads,
            attention_dropout,
            initializer_range,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_norm = norm("attention_norm")
        self.intermediate = dense(intermediate_dim, "intermediate")
        self.output_projection = dense(hidden_dim, "output")
        self.output_norm = norm("output_norm")
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, x_shape, mask_shape=None, first_positions_shape=None):
        """Makes the weights of both sub-layers."""
        self.attention.build(x_shape, mask_shape)
        self.attention_norm.build(x_shape)
        self.intermediate.build(x_shape)
        self.output_projection.build((*x_shape[:-1], self.intermediate_dim))
        self.output_norm.build(x_shape)
        self.built = True

    def call(self, x, mask, first_positions=None, first_only=False, training=None):
        """Encodes; see the class for shapes."""

        def first(x):
            return at_first(x, first_positions)[:, None]  # (texts, 1, H)

        def encode(x, *seeds):
            select = first if first_only else None
            return self._encode(x, mask, training, seeds, select)

        if not (training and self.remat):
            return encode(x)
        # Drawn out here, so that the second pass is given the seeds of the first.
        seeds = []
        if self.attention.dropout > 0:
            seeds.append(self.attention.dropout_layer.seed_generator.next())
        if self.dropout > 0:
            seeds += [self.dropout_layer.seed_generator.next() for _ in range(2)]
        # The mask is no argument: TensorFlow would want a gradient of its booleans.
        return keras.remat(encode)(x, *seeds)

    def _encode(self, x, mask, training, seeds, select):
        """Encodes with seeds drawn before: of the attention, then of the two sums.

        Calls its layers' `call`: what Keras does around it costs torch time at every
        step, and TensorFlow and JAX when they trace.
        """
        first, second = seeds[-2:] if self.dropout > 0 and seeds else (None, None)
        own = seeds[0] if self.attention.dropout > 0 and seeds else None
        y = self.attention.call(x, mask, training=training, seed=own, select=select)
        if select is not None:
            x = select(x)
        y = dropped(self.dropout_layer, y, training, first)
        x = self.attention_norm.call(x + y)
        y = self.intermediate.call(flattened(x, self.hidden_dim))
        y = self.output_projection.call(activate(y, self.activation, training))
        y = ops.reshape(y, ops.shape(x))
        y = dropped(self.dropout_layer, y, training, second)
        return self.output_norm.call(x + y)

    def compute_output_shape(
        self, x_shape, mask_shape=None, first_positions_shape=None
    ):
        """Returns the shape of `x`, that of the result for all positions."""
        return x_shape

    def compute_output_spec(
        self, x, mask, first_positions=None, first_only=False, training=None
    ):
        """Returns shape and dtype of the result, symbolic."""
        shape = x.shape
        if first_only:
            texts = x if first_positions is None else first_positions
            shape = (texts.shape[0], 1, self.hidden_dim)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "remat": self.remat,
        }
