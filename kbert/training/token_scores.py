"""Loss and accuracy of labelled tokens, which pass over all that has no label."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kbert")
class TokenCrossentropy(keras.losses.Loss):
    """Cross-entropy of logits, the mean over the tokens that have a label.

    What has a label below 0 adds nothing: the mean is that of the others, as in
    transformers' `BertForTokenClassification`, and in google-research/bert, where slots
    without a masked token have the weight 0. With sample weights their products with
    the losses are summed, and divided by the number of labels all the same, as Keras
    does with texts.

    Args:
        reduction: as in Keras.
        name: the same.

    Call arguments:
        y_true: int (...), indices of C classes or pieces, below 0 for no label.
        y_pred: float (..., C), logits.

    Example:
    >>> loss = TokenCrossentropy()
    >>> logits = np.array([[0.0, 0.0], [5.0, 0.0]], "float32")
    >>> round(float(loss(np.array([1, -1]), logits)), 4)
    0.6931
    """

    def __init__(
        self, reduction="sum_over_batch_size", name="token_crossentropy", **kwargs
    ):
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true, y_pred):
        """Returns (...), whose mean over everything is that over labelled tokens."""
        labels, has_label = _labels(y_true)
        has_label = ops.cast(has_label, y_pred.dtype)
        scale = ops.divide_no_nan(has_label, ops.mean(has_label))
        return _crossentropy(labels, y_pred) * scale


@keras.saving.register_keras_serializable(package="kbert")
class TokenAccuracy(keras.metrics.Metric):
    """Share of the labelled tokens whose likeliest class or piece is the right one.

    Takes what `TokenCrossentropy` takes.
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.right = self.add_weight(name="right", initializer="zeros")
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Counts the tokens of a batch, or adds their weights."""
        labels, has_label = _labels(y_true)
        weights = ops.cast(has_label, self.dtype)
        if sample_weight is not None:
            weights = weights * ops.cast(sample_weight, self.dtype)
        right = ops.equal(ops.cast(ops.argmax(y_pred, axis=-1), "int32"), labels)
        self.right.assign_add(ops.sum(weights * ops.cast(right, self.dtype)))
        self.total.assign_add(ops.sum(weights))

    def result(self):
        """Returns the share, 0 where there was nothing to count."""
        return ops.divide_no_nan(self.right, self.total)


def _labels(y_true):
    """Returns labels, 0 for what has none, and where there is one."""
    labels = ops.cast(y_true, "int32")
    return ops.maximum(labels, 0), labels >= 0


def _crossentropy(labels, logits):
    """Returns the cross-entropy of every token.

    On torch Keras multiplies with one-hot rows, as large as the logits.
    """
    if keras.backend.backend() != "torch":
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    chosen = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return ops.logsumexp(logits, axis=-1) - chosen
