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


# Of compiling for one more shape on two cores: seconds an encoder layer, of a training
# step and of a forward pass, and the speed at which either could run meanwhile.
_TRAINING_SECONDS = 2.0
_FORWARD_SECONDS = 0.3
_FLOPS_A_SECOND = 100e9


@dataclasses.dataclass(frozen=True)
class Choices:
    """What `BertTask.compile` was asked for.

    An object of its own, since Keras takes metrics in a model's dictionaries and lists
    for further metrics of the model.

    Args:
        own_optimizer: whether the optimizer is left to kbert.
        own_jit_compile: the same for `jit_compile`, which is then Keras's choice.
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


def prepare_run(task, total_steps) -> list[str]:
    """Compiles what was left to kbert, for a run of `total_steps`.

    Args:
        task: the `BertTask`.
        total_steps: optimizer steps of the run.

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
    tensorflow = keras.backend.backend() == "tensorflow"
    if tensorflow and choices.own_jit_compile and not task.jit_compile:
        # MiniLM on two cores, 32 texts of 24 and of 40 tokens: steps of 0.40 and 0.64 s
        # without XLA, of 0.44 and 0.69 s with it, and 10 s to compile for each shape.
        told.append("No XLA: on a CPU its steps are no faster, and it must compile.")
    return told


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
    seconds = len(layers) * (_TRAINING_SECONDS if training else _FORWARD_SECONDS)
    return seconds * _FLOPS_A_SECOND / ((6 if training else 2) * weights)
