"""Choices that `compile` leaves to kbert."""

import keras

_PROBABILITY_LOSSES = (
    "binary_crossentropy",
    "categorical_crossentropy",
    "sparse_categorical_crossentropy",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "SparseCategoricalCrossentropy",
)


def check_loss(loss):
    """Refuses a loss that takes probabilities, since the model returns logits.

    Such a loss trains badly and without an error.

    Args:
        loss: as for `keras.Model.compile`.

    Raises:
        ValueError: if it is a cross-entropy by name or with `from_logits=False`.
    """
    by_name = isinstance(loss, str) and loss in _PROBABILITY_LOSSES
    by_object = (
        isinstance(loss, keras.losses.Loss)
        and loss.get_config().get("from_logits", True) is False
    )
    if by_name or by_object:
        name = loss if by_name else type(loss).__name__
        raise ValueError(
            "The model returns logits, so the loss must take logits: for example "
            "`keras.losses.SparseCategoricalCrossentropy(from_logits=True)`. "
            f"Received: {name!r}, which takes probabilities."
        )


def choose_jit(task, total_steps) -> str:
    """Decides whether XLA compiles the training step; returns a sentence on it."""
    return ""
