"""How replicas share a batch: whose part is whose, and what belongs to all of them.

Three ways, one a backend: `keras.distribution` on JAX, `tf.distribute` on TensorFlow,
and on torch the processes of `torch.distributed`, each with a model of its own.
"""

import dataclasses

import keras
from keras import ops


@dataclasses.dataclass(frozen=True)
class Division:
    """Among whom every batch is divided.

    Args:
        parts: replicas; each computes as many rows as any other.
        processes: programs that train together, each of which reads the data.
        process: which of them this is.
        joined: whether the replicas compute as one, so that a position counts through
            the rows of all of them, as on JAX.
    """

    parts: int = 1
    processes: int = 1
    process: int = 0
    joined: bool = False

    @property
    def blocks(self) -> int:
        """Into how many parts, each complete in itself, a batch is laid."""
        return self.processes if self.joined else self.parts

    @property
    def own(self) -> range:
        """Those of the blocks that this process feeds its replicas with."""
        if self.processes == 1:
            return range(self.blocks)
        return range(self.process, self.process + 1)

    def check(self, count: int, what: str):
        """Refuses a number that cannot be divided evenly.

        Args:
            count: the number.
            what: of what, in words.

        Raises:
            ValueError: if there would be a remainder.
        """
        if count % self.parts:
            raise ValueError(
                f"{what} must be a multiple of the number of replicas, since each "
                f"computes as much as any other. Received: {count}, for {self.parts} "
                "replicas. Choose another batch size, or leave out the rest."
            )


def division(strategy=None) -> Division:
    """Returns how batches are divided at the moment.

    Args:
        strategy: a model's `tf.distribute.Strategy`, or None.

    Raises:
        ValueError: if `keras.distribution` is set where Keras passes over it.
    """
    backend, chosen = keras.backend.backend(), keras.distribution.distribution()
    if chosen is not None and backend != "jax":
        other = "tf.distribute.MirroredStrategy"
        if backend == "torch":
            other = "torch.distributed, a process a replica"
        raise ValueError(
            "keras.distribution divides batches on JAX alone; elsewhere Keras accepts "
            f"it and does nothing. Received: a {type(chosen).__name__} on {backend!r}. "
            f"Use {other}."
        )
    if chosen is not None:
        mesh = chosen.device_mesh
        axis = mesh.axis_names.index(chosen.batch_dim_name)
        parts = mesh.devices.shape[axis]
        return Division(
            parts, min(chosen.num_processes, parts), chosen.data_shard_id, joined=True
        )
    if backend == "torch":
        count, rank = _processes_of_torch()
        return Division(count, count, rank)
    replicas = 1 if strategy is None else strategy.num_replicas_in_sync
    return Division(replicas)


def begin_together(division: Division, variables):
    """Gives every process of torch the first one's weights, as DDP does.

    Args:
        division: how batches are divided.
        variables: list of `keras.Variable`.
    """
    if keras.backend.backend() != "torch" or division.processes == 1:
        return
    import torch  # pyright: ignore[reportMissingImports]

    for variable in variables:
        value = ops.convert_to_tensor(variable.value)
        torch.distributed.broadcast(value.detach(), src=0)


def are_apart() -> bool:
    """Whether each replica has a gradient of its own at this moment."""
    backend = keras.backend.backend()
    if backend == "torch":
        return _processes_of_torch()[0] > 1
    if backend != "tensorflow":
        return False
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync > 1


def joint_gradients(gradients) -> list:
    """Returns the gradients of the whole batch, the same on every replica.

    On TensorFlow Keras has divided the loss of every replica by their number, so that
    the sum is wanted; on torch it is the mean.

    Args:
        gradients: list of tensors, of one replica.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        if context is None:  # as Keras, where nobody is apart
            return list(gradients)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients))
    import torch  # pyright: ignore[reportMissingImports]

    count, _ = _processes_of_torch()
    # One message instead of one for each variable.
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients]) / count
    torch.distributed.all_reduce(flat)
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    return [
        part.reshape(gradient.shape)
        for part, gradient in zip(parts, gradients, strict=True)
    ]


def _processes_of_torch() -> tuple[int, int]:
    """Returns how many processes train together, and the number of this one."""
    import torch  # pyright: ignore[reportMissingImports]

    group = torch.distributed
    if not group.is_available() or not group.is_initialized():
        return 1, 0
    return group.get_world_size(), group.get_rank()
