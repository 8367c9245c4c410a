"""Choices that `compile` leaves to kbert."""

import dataclasses

import keras

from kbert.preprocessing.layouts import choose_layout
from kbert.training.optimizer import AdamW
from kbert.training.schedules import WarmupLinearDecay

_PROBABILITY_LOSSES = (
    "binary_crossentropy",
    "categorical_crossentropy",
    "sparse_categorical_crossentropy",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "SparseCategoricalCrossentropy",
)


# Of XLA on TensorFlow's CPU: estimates on the side of not compiling, from runs of
# MiniLM on a busy machine that spread widely.
_SAVED_SHARE = 0.1
_COMPILATION_SECONDS = 2.5
_FORWARD_SECONDS = 0.3
_SHAPES = 4
_FLOPS_A_SECOND = 100e9


@dataclasses.dataclass(frozen=True)
class Choices:
    """What `BertTask.compile` was asked for.

    An object of its own, since Keras takes metrics in a model's dictionaries and lists
    for further metrics of the model.

    Args:
        own_optimizer: whether the optimizer is left to kbert.
        own_jit_compile: the same for `jit_compile`.
        learning_rate: peak of kbert's own schedule.
        rows: how texts are laid, one of `preprocessing.layouts.ROWS`.
        arguments: of `keras.Model.compile`, but for the optimizer.
    """

    own_optimizer: bool
    own_jit_compile: bool
    learning_rate: float
    rows: str
    arguments: dict


def is_auto(value) -> bool:
    """Whether an argument of `compile` leaves the choice to kbert."""
    return isinstance(value, str) and value == "auto"


def check_loss(loss):
    """Refuses a loss that takes probabilities, since the model returns logits.

    Such a loss trains badly and without an error.

    Args:
        loss: as for `keras.Model.compile`.

    Raises:
        ValueError: if it is a cross-entropy by name or with `from_logits=False`.
    """
    name = ""
    if isinstance(loss, str) and loss in _PROBABILITY_LOSSES:
        name = loss
    elif not isinstance(loss, str) and isinstance(loss, keras.losses.Loss):
        if loss.get_config().get("from_logits") is False:
            name = type(loss).__name__
    if name:
        raise ValueError(
            "The model returns logits, so the loss must take logits: for example "
            "`keras.losses.SparseCategoricalCrossentropy(from_logits=True)`. "
            f"Received: {name!r}, which takes probabilities."
        )


def prepare_run(task, total_steps, positions) -> list[str]:
    """Compiles what was left to kbert, for a run of `total_steps`.

    Args:
        task: the `BertTask`.
        total_steps: optimizer steps of the run.
        positions: as for `choose_jit`.

    Returns:
        Sentences on what was chosen.
    """
    told, choices = [], task.choices
    if choices.own_optimizer:
        peak = choices.learning_rate
        # At least one: `fit` may be asked for no epoch.
        task.compile_with(AdamW(WarmupLinearDecay(peak, max(total_steps, 1))))
        told.append(
            f"New AdamW: {total_steps:,} steps, learning rate up to {peak:g} over the "
            "first tenth, then down to 0."
        )
    if choices.own_jit_compile:
        told.append(choose_jit(task, total_steps, positions))
    return told


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


def layout_for(task, training, lengths, batch_size, order, epochs):
    """Chooses how the texts of a run are laid into rows.

    Args:
        task: the `BertTask`, compiled for the run.
        training: whether the run is a `fit`.
        lengths: tokens of every text, integers `(N,)`.
        batch_size: texts a batch.
        order: how they come to the batches, one of `layouts.ORDERS`.
        epochs: how often the texts are gone through.

    Returns:
        A `SingleRows` or `PackedRows`.

    Raises:
        ValueError: if rows are to be packed under a distribution strategy.
    """
    rows = task.choices.rows
    if is_distributed(task):
        if rows == "packed":
            raise ValueError(
                "Under a distribution strategy every replica needs whole rows, and "
                'their texts in step: use `compile(rows="single")` or "auto". '
                "Received: rows='packed'."
            )
        rows = "single"
    config = task.backbone.config
    return choose_layout(
        lengths,
        batch_size,
        order,
        rows=rows,
        max_width=config.max_sequence_length,
        hidden_dim=config.hidden_dim,
        shape_price=_shape_price(task, training) / epochs,
    )


def is_distributed(task) -> bool:
    """Whether Keras or TensorFlow splits every batch among devices."""
    if keras.distribution.distribution() is not None:
        return True
    strategy = getattr(task, "distribute_strategy", None)  # TensorFlow's alone
    return strategy is not None and strategy.num_replicas_in_sync > 1


def _shape_price(task, training) -> float:
    """Returns the positions that could be computed while a shape is compiled."""
    compiles = keras.backend.backend() == "jax" or task.jit_compile
    if not compiles or task.run_eagerly or keras.backend.backend() == "torch":
        return 0.0
    layers = task.backbone.encoder_layers
    weights = sum(layer.count_params() for layer in layers)
    seconds = len(layers) * (_COMPILATION_SECONDS if training else _FORWARD_SECONDS)
    return seconds * _FLOPS_A_SECOND / ((6 if training else 2) * weights)


def _has_gpu() -> bool:
    return bool(keras.distribution.list_devices("gpu"))
