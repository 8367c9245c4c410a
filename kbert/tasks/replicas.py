"""Replicas that share the batches of a task, and what they must not be given."""

import keras

from kbert.training.distribution import Division, division
from kbert.training.optimizer import AdamW


def division_of(task, training=True) -> Division:
    """Returns how batches are divided among replicas.

    Args:
        task: the `BertTask`.
        training: whether the batches are to learn from. On torch only these are
            divided: what else a process computes, it computes alone.
    """
    if keras.backend.backend() == "torch" and not training:
        return Division()
    return division(getattr(task, "distribute_strategy", None))  # TensorFlow's alone


def is_distributed(task) -> bool:
    """Whether every batch is divided among replicas."""
    if keras.distribution.distribution() is not None:
        return True
    return division_of(task).parts > 1


def check_optimizer(optimizer, divided: Division):
    """Refuses an optimizer that would not train as one device does.

    Args:
        optimizer: a Keras optimizer.
        divided: how batches are divided among replicas.

    Raises:
        ValueError: if it would clip, add up or accumulate the gradient of a replica
            instead of the whole batch's.
    """
    if divided.joined:
        return
    own = isinstance(optimizer, AdamW)
    received = f"Received: {type(optimizer).__name__}"
    if keras.backend.backend() == "torch":
        if not own:
            raise ValueError(
                "On several processes of torch the optimizer must be kbert.AdamW, "
                "which takes the mean of their gradients; with another each process "
                f"would train a model of its own. {received} in {divided.processes} "
                "processes."
            )
        return
    if optimizer.gradient_accumulation_steps:
        raise ValueError(
            "Under tf.distribute gradients cannot be accumulated: replicas may not "
            f"meet within a condition. {received} with gradient_accumulation_steps="
            f"{optimizer.gradient_accumulation_steps}. Use larger batches, if need be "
            "with `remat=True`."
        )
    names = ("clipnorm", "global_clipnorm", "clipvalue")
    clipping = {name: getattr(optimizer, name) for name in names}
    if any(clipping.values()) and not own:
        raise ValueError(
            "Under tf.distribute a Keras optimizer clips the gradient of every replica "
            f"by itself, which trains another model. {received} with {clipping}. Use "
            "kbert.AdamW, which clips that of the whole batch."
        )


def check_compiled(jit_compile, divided: Division):
    """Refuses XLA where its programs cannot reach the variables of all replicas.

    Args:
        jit_compile: whether XLA is to compile a step.
        divided: how batches are divided among replicas.

    Raises:
        ValueError: if it is to, under `tf.distribute`.
    """
    if jit_compile and keras.backend.backend() == "tensorflow":
        raise ValueError(
            "Under tf.distribute XLA cannot compile a step, whose variables lie on "
            "several devices. Received: jit_compile=True, for "
            f"{divided.parts} replicas. Leave jit_compile to kbert."
        )


def check_shares(task, count, batch_size, training):
    """Refuses texts that replicas cannot share evenly.

    Args:
        task: the `BertTask`.
        count: how many there are; None where it does not matter.
        batch_size: texts a batch.
        training: whether they are to learn from.

    Raises:
        ValueError: if there would be a remainder, or there are several processes.
    """
    divided = division_of(task, training)
    if divided.processes > 1:
        raise ValueError(
            "Several processes divide instances of pre-training among them "
            "(`InstanceBatches`), and nothing else in this version. Received: a "
            f"{type(task).__name__} with texts, {divided.processes} processes."
        )
    if count is not None:
        divided.check(count, "The number of texts")
    divided.check(batch_size, "The texts of a batch")


def check_one_process(task):
    """Refuses several processes of torch, for batches that nothing divides.

    Raises:
        ValueError: if there are several.
    """
    processes = division_of(task).processes
    if processes > 1 and keras.backend.backend() == "torch":
        raise ValueError(
            "Several processes of torch train together in `fit`, which divides every "
            f"batch among them. Received: one batch, in {processes} processes."
        )


def check_one_device(task):
    """Refuses a distribution strategy, for a task whose rows belong together.

    Raises:
        ValueError: if there is one.
    """
    if is_distributed(task):
        raise ValueError(
            "The task runs on one device in this version: a strategy would divide the "
            "rows of a batch, which belong together. Received: a "
            f"{type(task).__name__} under a distribution strategy."
        )
