"""Multi-head self-attention with a boolean mask (Vaswani et al. 2017, section 3.2)."""

import keras
from keras import ops

from kbert.layers._backend import attention, has_fused_attention
from kbert.layers.dropout import dropped
from kbert.layers.initial_values import truncated_normal
from kbert.layers.projection import BertProjection


@keras.saving.register_keras_serializable(package="kbert")
class BertSelfAttention(keras.layers.Layer):
    """Every position looks at all positions of its own text.

    A fused kernel computes it where the backend has one, unless dropout on the
    probabilities is wanted: that the fused kernels do not offer, so training with
    dropout takes the softmax written out here, in float32.

    Args:
        hidden_dim: H, the width of input and output.
        num_heads: N; each head is H / N wide.
        dropout: rate on the attention probabilities.
        initializer_range: standard deviation of the truncated normal initialiser.

    Call arguments:
        x: float (B, S, H).
        mask: bool (B, 1, S, S), true where a row's position may look at a column's;
            every position must see at least one.
        select: function that picks, from float (B, S, H), the positions whose result
            is wanted, (M, S', H); None for all.

    Returns:
        Float (B, S, H), or (M, S', H).

    Raises:
        ValueError: if `hidden_dim` is not a multiple of `num_heads`.
    """

    def __init__(
        self, hidden_dim, num_heads, dropout=0.1, initializer_range=0.02, **kwargs
    ):
        super().__init__(**kwargs)
        if hidden_dim % num_heads:
            raise ValueError(
                "The hidden size must be a multiple of num_heads. Received: "
                f"hidden_dim={hidden_dim}, num_heads={num_heads}."
            )
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.initializer_range = initializer_range

        def projection(name):
            return BertProjection(
                hidden_dim,
                kernel_initializer=truncated_normal(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        self.query = projection("query")
        self.key = projection("key")
        self.value = projection("value")
        self.output_projection = projection("output")
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, x_shape, mask_shape=None):
        """Makes the four projections, each (H, H)."""
        for layer in (self.query, self.key, self.value, self.output_projection):
            layer.build(x_shape)
        self.built = True

    def call(self, x, mask, training=None, seed=None, select=None):
        """Attends; see the class for shapes, `layers.dropout.dropped` for the seed."""
        query, key, value = self._heads(x, self.query, self.key, self.value)
        if (training and self.dropout > 0) or not has_fused_attention():
            weights = _softmax(query, key, mask)
            weights = dropped(self.dropout_layer, weights, training, seed)
            y = ops.einsum("bnst,btnd->bsnd", weights, value)
        else:
            y = attention(query, key, value, mask)
        y = ops.reshape(y, ops.shape(x))
        if select is not None:
            y = select(y)
        shape = ops.shape(y)
        y = self.output_projection.call(flattened(y, self.hidden_dim))
        return ops.reshape(y, shape)

    def probabilities(self, x, mask):
        """Returns the attention probabilities, float (B, N, S, S), without dropout."""
        query, key = self._heads(x, self.query, self.key)
        return _softmax(query, key, mask)

    def compute_output_shape(self, x_shape, mask_shape=None):
        """Returns the shape of `x`."""
        return x_shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
        }

    def _heads(self, x, *projections):
        """Returns a projection each, split into heads: float (B, S, N, D)."""
        batch, length = ops.shape(x)[0], ops.shape(x)[1]
        head_dim = self.hidden_dim // self.num_heads
        shape = (batch, length, self.num_heads, head_dim)
        flat = flattened(x, self.hidden_dim)
        return [ops.reshape(project.call(flat), shape) for project in projections]


def visible(padding_mask, left_to_right=False):
    """Returns which positions a position may look at, the mask of the attention.

    Args:
        padding_mask: int32 (B, S), the number of the text at each position, 0 for none.
        left_to_right: whether only those up to its own.

    Returns:
        Bool (B, 1, S, S), true where a row's position sees a column's.
    """
    same_text = ops.equal(
        padding_mask[:, None, :, None], padding_mask[:, None, None, :]
    )
    if not left_to_right:
        return same_text
    # Counted, and not by `arange`, which knows no length while a model is put together.
    place = ops.cumsum(ops.ones_like(padding_mask), axis=1)  # (B, S)
    before = ops.less_equal(place[:, None, None, :], place[:, None, :, None])
    return ops.logical_and(same_text, before)


def flattened(x, width):
    """Returns (..., width) as (positions, width).

    On two axes TensorFlow fuses a dense layer with its bias and gelu; on more it does
    not (on a CPU a tenth of a forward pass).
    """
    return ops.reshape(x, (-1, width))


def _softmax(query, key, mask):
    """Returns softmax(Q K^T / sqrt(D)) over the allowed columns, (B, N, S, S)."""
    query = query * query.shape[-1] ** -0.5
    scores = ops.cast(ops.einsum("bsnd,btnd->bnst", query, key), "float32")
    # float32, so within range in any policy; a sum, since TensorFlow passes over all
    # heads for it and is slow to choose.
    scores = scores + ops.where(mask, 0.0, -1e9)
    return ops.cast(ops.softmax(scores, axis=-1), query.dtype)
