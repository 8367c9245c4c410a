"""Loss and accuracy of masked tokens, which pass over slots without a token."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kbert")
class MaskedCrossentropy(keras.losses.Loss):
    """Cross-entropy of logits, the mean over the masked tokens.

    A slot with the label -1 is there for the shape of a batch alone: it adds nothing,
    and the mean is that of the others, as in google-research/bert, where such slots
    have the weight 0.

    Args:
        reduction: as in Keras.
        name: the same.

    Call arguments:
        y_true: int (masked,), ids, or -1.
        y_pred: float (masked, V), logits.

    Example:
    >>> loss = MaskedCrossentropy()
    >>> logits = np.array([[0.0, 0.0], [5.0, 0.0]], "float32")
    >>> round(float(loss(np.array([1, -1]), logits)), 4)
    0.6931
    """

    def __init__(
        self, reduction="sum_over_batch_size", name="masked_crossentropy", **kwargs
    ):
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true, y_pred):
        """Returns the loss of every slot, scaled so that its mean is that of tokens."""
        labels, is_token = _labels(y_true)
        is_token = ops.cast(is_token, y_pred.dtype)
        share = ops.mean(is_token)
        scale = ops.divide_no_nan(is_token, share)
        return _crossentropy(labels, y_pred) * scale


@keras.saving.register_keras_serializable(package="kbert")
class MaskedAccuracy(keras.metrics.Metric):
    """Share of the masked tokens whose likeliest piece is the right one.

    Takes what `MaskedCrossentropy` takes, of a head of next sentences too.
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.right = self.add_weight(name="right", initializer="zeros")
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Counts the tokens of a batch, or adds their weights."""
        labels, is_token = _labels(y_true)
        weights = ops.cast(is_token, self.dtype)
        if sample_weight is not None:
            weights = weights * ops.cast(sample_weight, self.dtype)
        right = ops.equal(ops.cast(ops.argmax(y_pred, axis=-1), "int32"), labels)
        self.right.assign_add(ops.sum(weights * ops.cast(right, self.dtype)))
        self.total.assign_add(ops.sum(weights))

    def result(self):
        """Returns the share, 0 where there was nothing to count."""
        return ops.divide_no_nan(self.right, self.total)


def _labels(y_true):
    """Returns ids, 0 for a slot without a token, and which slots have one."""
    labels = ops.cast(y_true, "int32")
    return ops.maximum(labels, 0), labels >= 0


def _crossentropy(labels, logits):
    """Returns the cross-entropy of every slot.

    On torch Keras multiplies with one-hot rows, as large as the logits.
    """
    if keras.backend.backend() != "torch":
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    chosen = ops.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    return ops.logsumexp(logits, axis=-1) - chosen
