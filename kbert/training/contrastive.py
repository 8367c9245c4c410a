"""Loss and accuracy of pairs of texts, of which the others in a batch are negatives."""

import keras
from keras import ops

# The score of what is no negative: its probability is 0.
_RULED_OUT = -1e9
_LEAST_SQUARE = 1e-24


@keras.saving.register_keras_serializable(package="kbert")
class InBatchNegatives(keras.losses.Loss):
    """Cross-entropy of finding every first text's second one among those of the batch.

    Scores are cosines divided by the temperature. Texts that are equal are no negatives
    of each other, and neither are those of pairs which share a text.

    Args:
        temperature: of the softmax; 0.05 is usual.
        symmetric: whether the second texts look for their first ones as well; the loss
            is then the mean of both.
        reduction: as in Keras.
        name: the same.

    Call arguments:
        y_true: int (N, 2), a number for each text, the same for equal ones.
        y_pred: float (2 N, H), the embeddings of the first pair's two texts, of the
            second pair's, and so on.

    Raises:
        ValueError: if the temperature is not positive.

    Reference: Henderson et al. 2017, https://arxiv.org/abs/1705.00652, section 4; with
    a temperature Gao et al. 2021, https://arxiv.org/abs/2104.08821.

    Example:
    >>> loss = InBatchNegatives(temperature=1.0)
    >>> vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], "float32")
    >>> round(float(loss(np.array([[0, 1], [2, 3]]), vectors)), 4)
    0.3133
    >>> round(float(loss(np.array([[0, 1], [0, 2]]), vectors)), 4)
    0.0
    """

    def __init__(
        self,
        temperature=0.05,
        symmetric=False,
        reduction="sum_over_batch_size",
        name="in_batch_negatives",
        **kwargs,
    ):
        super().__init__(name=name, reduction=reduction, **kwargs)
        check_temperature(temperature)
        self.temperature = temperature
        self.symmetric = symmetric

    def call(self, y_true, y_pred):
        """Returns a loss a pair, (N,)."""
        scores, own, is_own = _scores(y_true, y_pred)
        scores = ops.where(is_own, own, scores) / self.temperature
        own = own[:, 0] / self.temperature
        losses = ops.logsumexp(scores, axis=1) - own
        if not self.symmetric:
            return losses
        return (losses + ops.logsumexp(scores, axis=0) - own) / 2

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "temperature": self.temperature,
            "symmetric": self.symmetric,
        }


@keras.saving.register_keras_serializable(package="kbert")
class InBatchAccuracy(keras.metrics.Mean):
    """Share of the first texts to which their second one is more alike than all others.

    Takes what `InBatchNegatives` takes.
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Counts the pairs of a batch, or adds their weights."""
        scores, own, is_own = _scores(y_true, y_pred)
        others = ops.max(ops.where(is_own, _RULED_OUT, scores), axis=1)
        super().update_state(ops.greater(own[:, 0], others), sample_weight)


def check_temperature(temperature):
    """Refuses a temperature that is no positive number."""
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < float("inf"):
        raise ValueError(
            "`temperature` must be a positive number. Received: "
            f"temperature={temperature!r}."
        )


def _scores(y_true, y_pred):
    """Returns the cosines of first with second texts, and which are of a pair.

    Returns:
        Float (N, N), -1e9 for what is no negative (and what is a pair); float (N, 1),
        those of the pairs; bool (N, N), where these belong.
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    squares = ops.sum(ops.square(y_pred), axis=-1, keepdims=True)
    unit = y_pred * ops.rsqrt(ops.maximum(squares, _LEAST_SQUARE))
    pairs = ops.reshape(unit, (-1, 2, y_pred.shape[-1]))
    cosines = ops.matmul(pairs[:, 0], ops.transpose(pairs[:, 1]))
    first, second = y_true[:, 0], y_true[:, 1]
    related = ops.equal(first[:, None], first)
    for one, other in ((second, second), (first, second)):
        related = ops.logical_or(related, ops.equal(one[:, None], other))
    number = ops.arange(ops.shape(pairs)[0])
    return (
        ops.where(related, _RULED_OUT, cosines),
        ops.sum(pairs[:, 0] * pairs[:, 1], axis=-1, keepdims=True),
        ops.equal(number[:, None], number),
    )
