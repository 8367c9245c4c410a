"""A whole `fit`: what it trains and validates on, and what it leaves behind."""

import contextlib

import keras

from kbert.tasks import feeding


def arrange(task, data, held_out, batch_sizes, steps, shuffle):
    """Prepares the data of `fit`, all of them checked before any training.

    Args:
        task: the `BertTask`.
        data: `(x, y, sample_weight)` as passed to `fit`.
        held_out: `validation_data`, or the share of `validation_split`, 0 for none.
        batch_sizes: of training and of validation.
        steps: `(steps_per_epoch, validation_steps)` as passed to `fit`.
        shuffle: whether each epoch has a new order.

    Returns:
        The training data, and the data arguments of Keras's `fit`.

    Raises:
        ValueError: if the data are not what the task takes.
    """
    steps_per_epoch, validation_steps = steps
    data = feeding.prepare(task, *data, steps=steps_per_epoch, training=True)
    feeding.require_targets(data)
    if isinstance(held_out, int | float):
        data, held_out = data.split(held_out) if held_out else (data, None)
    else:
        held_out = feeding.prepare_validation(task, held_out, steps=validation_steps)
    arguments = {
        "steps_per_epoch": steps_per_epoch,
        "validation_steps": validation_steps,
        **data.fit_arguments(batch_sizes[0], shuffle),
    }
    if held_out is not None:
        arguments |= held_out.validation_arguments(batch_sizes[1])
    return data, arguments


@contextlib.contextmanager
def leaving_intact(task):
    """Brings back, when a `fit` ends or fails, what Keras leaves changed.

    XLA stays on for training alone: `classify` would compile anew for every batch size.
    On JAX Keras keeps the weights outside the model within an epoch; an interrupted
    run would lose them.

    Args:
        task: the `BertTask`.
    """
    jit_compile = task.jit_compile
    try:
        yield
    finally:
        task.jit_compile = jit_compile
        if keras.backend.backend() == "jax":
            task.jax_state_sync()
