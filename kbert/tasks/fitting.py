"""A whole `fit`: what it trains and validates on, and what it leaves behind."""

import contextlib
import sys

import keras

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.layouts import SingleRows, check_batch_size
from kbert.preprocessing.masked_batches import MaskedBatches
from kbert.tasks import compiling, feeding, replicas
from kbert.tasks.feeds import BATCH_SIZE, Arrays


def prepare_fit(
    task, data, class_weight, held_out, *, batch_sizes, steps, epochs, shuffle, verbose
) -> dict:
    """Prepares all that Keras's `fit` needs, checked before any training.

    Args:
        task: the `BertTask`, whose optimizer is set.
        data: `(x, y, sample_weight)` as passed to `fit`.
        class_weight: as passed to `fit`.
        held_out: `validation_data`, or the share of `validation_split`, 0 for none.
        batch_sizes: of training and of validation, as passed to `fit`.
        steps: `(steps_per_epoch, validation_steps)` as passed to `fit`.
        epochs: how many there will be.
        shuffle: whether each has a new order.
        verbose: 0 to say nothing.

    Returns:
        The data arguments of Keras's `fit`.

    Raises:
        ValueError: if the data are not what the task takes.
    """
    steps_per_epoch, validation_steps = steps
    data = feeding.prepare(task, *data, steps=steps_per_epoch, training=True)
    feeding.require_targets(data)
    if not isinstance(held_out, int | float):
        held_out = feeding.prepare_validation(task, held_out, steps=validation_steps)
    else:
        data, held_out = data.split(held_out) if held_out else (data, None)
    if class_weight:
        data, class_weight = task.weigh_classes(data, class_weight)
    size, validation_size = batch_sizes
    size = BATCH_SIZE if size is None else size
    check_batch_size(size)
    total_steps = (steps_per_epoch or data.steps(size)) * epochs
    told = compiling.prepare_run(task, total_steps)
    # A layout is chosen for at least one epoch, though `fit` may be asked for none.
    check_cut(task, data, size, training=True)
    arguments = data.fit_arguments(size, shuffle, max(epochs, 1))
    tell(verbose, data.truncated(), *told, described(arguments["x"]))
    if not replicas.is_distributed(task):
        # TensorFlow traces a step twice that makes variables.
        task.optimizer.build(task.trainable_variables)
    if held_out is not None:
        size = size if validation_size is None else validation_size
        check_cut(task, held_out, size, training=False)
        arguments |= held_out.validation_arguments(size, max(epochs, 1))
    return {
        "steps_per_epoch": steps_per_epoch,
        "validation_steps": validation_steps,
        "class_weight": class_weight,
        **arguments,
    }


def prepare_evaluation(task, given, batch_size, steps, verbose) -> dict:
    """Returns the data arguments of Keras's `evaluate`, and says how rows are laid.

    Args:
        task: the `BertTask`.
        given: x, y and sample_weight by name, as passed to `evaluate`.
        batch_size: the same.
        steps: the same.
        verbose: 0 to say nothing.

    Raises:
        ValueError: if the data are not what the task takes, or there are no targets.
    """
    data = feeding.prepare(task, **given, steps=steps)
    feeding.require_targets(data)
    check_cut(task, data, batch_size or BATCH_SIZE, training=False)
    arguments = data.evaluate_arguments(batch_size)
    tell(verbose, described(arguments["x"]))
    return arguments


def check_cut(task, data, batch_size, *, training):
    """Refuses arrays that Keras would cut into unequal shares for replicas.

    Args:
        task: the `BertTask`.
        data: one of `tasks.feeds`; what kbert lays itself is checked there.
        batch_size: rows a batch.
        training: whether they are to learn from.

    Raises:
        ValueError: as `replicas.check_shares`.
    """
    if isinstance(data, Arrays) and replicas.is_distributed(task):
        count = len(data.x["token_ids"])
        replicas.check_shares(task, count, batch_size, training)


def tell(verbose, *sentences):
    """Says what was chosen, unless `verbose` is 0."""
    if verbose != 0:
        sys.stderr.writelines(f"{sentence}\n" for sentence in sentences if sentence)


@contextlib.contextmanager
def leaving_intact(task):
    """Brings the weights back into the model when a `fit` ends or fails.

    On JAX Keras keeps them outside the model within an epoch; an interrupted run would
    lose them.

    Args:
        task: the `BertTask`.
    """
    try:
        yield
    finally:
        if keras.backend.backend() == "jax":
            task.jax_state_sync()


def described(batches) -> str:
    """Returns a sentence on how texts lie in rows, empty for what kbert did not lay."""
    if isinstance(batches, MaskedBatches) and batches.arrays is None:
        batches = batches.batches
    if not isinstance(batches, TextBatches):
        return ""
    rows = "Several texts a row"
    if isinstance(batches.layout, SingleRows):
        rows = "One text a row"
    widths = [width for _, width in batches.shapes]
    wide = f"{min(widths)} to " if min(widths) < max(widths) else ""
    return (
        f"{rows}, {wide}{max(widths)} positions wide: {batches.share_used:.0%} of the "
        "positions are used."
    )
