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


# Of XLA on TensorFlow's CPU, rough and on the side of not compiling: in a training
# step of MiniLM's shape it saved from nothing to a third of the time, and compiling
# took seconds for each layer and shape.
_SAVED_SHARE = 0.1
_COMPILATION_SECONDS = 2.5
_SHAPES = 4
_FLOPS_A_SECOND = 100e9


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


def choose_jit(task, total_steps, positions) -> str:
    """Decides whether XLA compiles the training step on TensorFlow without a GPU.

    Keras's "auto" never does there. XLA saves a share of every step and costs seconds
    of compilation for every shape, so it pays for long runs only.

    Args:
        task: the `BertTask`, whose `jit_compile` is set.
        total_steps: optimizer steps of the run.
        positions: positions in a step's batch, or None where they are not known.

    Returns:
        A sentence on what was chosen and why; empty where Keras's choice stands.
    """
    if keras.backend.backend() != "tensorflow" or _has_gpu():
        return ""
    if positions is None:
        task.jit_compile = False
        return "No XLA: the sizes of the batches are not known in advance."
    layers = task.backbone.encoder_layers
    weights = sum(layer.count_params() for layer in layers)
    seconds = 6 * weights * positions / _FLOPS_A_SECOND
    saved = total_steps * seconds * _SAVED_SHARE
    spent = _COMPILATION_SECONDS * len(layers) * _SHAPES
    task.jit_compile = saved > spent
    return (
        f"{'XLA' if task.jit_compile else 'No XLA'}: compiling would take about "
        f"{spent:.0f} s and save about {saved:.0f} s."
    )


def _has_gpu() -> bool:
    return bool(keras.distribution.list_devices("gpu"))
