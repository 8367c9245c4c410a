"""Choices that `compile` leaves to kbert."""

import dataclasses
import inspect

import keras

from kbert.preprocessing.layouts import check_rows, choose_layout
from kbert.tasks.replicas import (
    check_compiled,
    check_optimizer,
    check_shares,
    division_of,
    is_distributed,
)
from kbert.training.distribution import begin_together
from kbert.training.optimizer import AdamW
from kbert.training.schedules import WarmupLinearDecay
from kbert.training.token_scores import TokenCrossentropy

# What takes probabilities and has no argument that could say otherwise.
_ON_PROBABILITIES = (
    keras.losses.KLDivergence,
    keras.losses.kl_divergence,
    keras.losses.Dice,
    keras.losses.dice,
    keras.losses.Tversky,
    keras.losses.tversky,
    keras.metrics.KLDivergence,
)

# Of compiling for one more shape on two cores: seconds an encoder layer, of a training
# step and of a forward pass, and the speed at which either could run meanwhile.
_TRAINING_SECONDS = 0.8
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


def chosen(task, optimizer, loss, metrics, learning_rate, rows, others) -> Choices:
    """Returns what the arguments of `BertTask.compile` choose; `others` are Keras's.

    Raises:
        ValueError: if `rows` is unknown, or as `compile_arguments`.
    """
    check_rows(rows)
    return Choices(
        own_optimizer=is_auto(optimizer),
        own_jit_compile=others.get("jit_compile", "auto") == "auto",
        learning_rate=learning_rate,
        rows=rows,
        arguments=compile_arguments(task, loss, metrics, **others),
    )


def compile_from_config(task, config):
    """Compiles a task as its `get_compile_config` described."""
    config = keras.saving.deserialize_keras_object(config)
    kept = config.pop("automatic")
    task.compile(**config, learning_rate=kept["learning_rate"], rows=kept["rows"])
    kept["arguments"] = task.choices.arguments
    task.choices = Choices(**kept)
    if task.optimizer is not None:
        task.optimizer.build(task.trainable_variables)


def compile_again(task):
    """Makes a task's optimizer anew: the one there was knows the old weights."""
    optimizer = "auto"
    if not task.choices.own_optimizer:
        optimizer = type(task.optimizer).from_config(task.optimizer.get_config())
    task.compile(
        optimizer,
        **task.choices.arguments,
        learning_rate=task.choices.learning_rate,
        rows=task.choices.rows,
    )


def is_auto(value) -> bool:
    """Whether an argument of `compile` leaves the choice to kbert."""
    return isinstance(value, str) and value == "auto"


def compile_arguments(task, loss, metrics, weighted_metrics=None, **kwargs) -> dict:
    """Returns the arguments of `keras.Model.compile`, but for the optimizer.

    Args:
        task: the `BertTask`.
        loss: as for `BertTask.compile`.
        metrics: the same.
        weighted_metrics: as for `keras.Model.compile`.
        **kwargs: what is passed on.

    Raises:
        ValueError: if a loss or a metric takes probabilities, since the model returns
            logits: it would train badly, or report what is not so, without an error.
    """
    if is_auto(loss):
        loss = task.default_loss()
    for given in keras.tree.flatten(loss):
        if _takes_probabilities(keras.losses.get(given)):
            example = "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
            raise _not_on_logits("loss", given, example)
    return {
        "loss": loss,
        "metrics": task.default_metrics() if is_auto(metrics) else _own(task, metrics),
        "weighted_metrics": _own(task, weighted_metrics),
        **kwargs,
    }


def _own(task, metrics):
    """Returns metrics with the task's own accuracy for "accuracy" and "acc"."""
    losses = keras.tree.flatten(task.default_loss())
    on_logits = any(map(_is_crossentropy, losses))

    def own(given):
        for metric in keras.tree.flatten(task.default_metrics()):
            if given in ("accuracy", "acc") and metric.name == "accuracy":
                metric.name = given
                return metric
        found = keras.metrics.get(given)
        if on_logits and (_takes_probabilities(found) or _has_thresholds(found)):
            example = "keras.metrics.BinaryAccuracy(threshold=0.0)"
            raise _not_on_logits("metric", given, example)
        return given

    return keras.tree.map_structure(own, metrics)


def _is_crossentropy(loss) -> bool:
    """Whether a loss is one of a choice among classes or pieces."""
    return "from_logits" in _options(loss) or isinstance(loss, TokenCrossentropy)


def _takes_probabilities(found) -> bool:
    """Whether a loss or metric wants the outputs of a sigmoid or softmax."""
    if found in _ON_PROBABILITIES or type(found) in _ON_PROBABILITIES:
        return True
    return _options(found).get("from_logits") is False


def _has_thresholds(found) -> bool:
    """Whether a metric cuts at Keras's default of a half, or at steps up to 1."""
    options = _options(found)
    if options.get("top_k") or "from_logits" in options:
        return False
    cuts = (options.get("threshold", 0.0), options.get("thresholds", 0.0))
    return cuts[0] == 0.5 or cuts[1] in (None, 0.5) or "num_thresholds" in options


def _options(found) -> dict:
    """Returns the options of a loss or metric: an object, a function or None."""
    if found is None:
        return {}
    if isinstance(found, keras.losses.Loss | keras.metrics.Metric):
        return found.get_config()
    parameters = inspect.signature(found).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _not_on_logits(what, given, example):
    return ValueError(
        f"The model returns logits, so a {what} must take logits: for example "
        f"`{example}`. Received: {given!r}, which takes probabilities."
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
    tensorflow, divided = keras.backend.backend() == "tensorflow", division_of(task)
    if tensorflow and divided.parts > 1:
        told.append("No XLA: Keras leaves it off under tf.distribute.")
    elif tensorflow and choices.own_jit_compile and not task.jit_compile:
        # MiniLM on two cores, 32 texts of 24 and of 40 tokens: steps of 0.40 and 0.64 s
        # without XLA, of 0.44 and 0.69 s with it, and 10 s to compile for each shape.
        told.append("No XLA: on a CPU its steps are no faster, and it must compile.")
    if divided.parts > 1:
        check_optimizer(task.optimizer, divided)
        check_compiled(task.jit_compile, divided)
        begin_together(divided, task.weights)
        told.append(f"{divided.parts} replicas, each with its share of every batch.")
    return told


def layout_for(
    task, training, lengths, batch_size, order, epochs, *, packs=True, rows=None
):
    """Chooses how the texts of a run are laid into rows.

    Args:
        task: the `BertTask`, compiled for the run.
        training: whether the run is a `fit`.
        lengths: tokens of every text, integers `(N,)`.
        batch_size: texts a batch.
        order: how they come to the batches, one of `layouts.ORDERS`.
        epochs: how often the texts are gone through.
        packs: whether the task could read several texts in a row.
        rows: one of `layouts.ROWS`; None for the task's choice.

    Returns:
        A `SingleRows` or `PackedRows`.

    Raises:
        ValueError: if rows are to be packed for a task that does not read them, or
            under a distribution strategy.
    """
    rows = rows or task.choices.rows
    if not packs:
        if rows == "packed":
            raise ValueError(
                f"A {type(task).__name__} reads one text a row: use "
                '`compile(rows="single")` or "auto". Received: rows=\'packed\'.'
            )
        rows = "single"
    if is_distributed(task):
        if rows == "packed":
            raise ValueError(
                "Under a distribution strategy every replica needs whole rows, and "
                'their texts in step: use `compile(rows="single")` or "auto". '
                "Received: rows='packed'."
            )
        rows = "single"
        # Batches that are alike are filled up.
        count = None if order == "alike" else len(lengths)
        check_shares(task, count, batch_size, training)
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


def compiles_shapes(task) -> bool:
    """Whether a program is compiled for every shape of a batch."""
    compiles = keras.backend.backend() == "jax" or task.jit_compile
    return bool(compiles and not task.run_eagerly) and (
        keras.backend.backend() != "torch"
    )


def _shape_price(task, training) -> float:
    """Returns the positions that could be computed while a shape is compiled."""
    if not compiles_shapes(task):
        return 0.0
    layers = task.backbone.encoder_layers
    weights = sum(layer.count_params() for layer in layers)
    seconds = len(layers) * (_TRAINING_SECONDS if training else _FORWARD_SECONDS)
    return seconds * _FLOPS_A_SECOND / ((6 if training else 2) * weights)
