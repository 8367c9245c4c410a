"""All that a training is made of, saved while it runs, so that it goes on bitwise."""

import os
from collections.abc import Callable

import keras
import numpy as np

from kbert.training.checkpoint_folder import CheckpointFolder, SavedCheckpoint
from kbert.training.randomness import random_states, set_random_states
from kbert.training.stopping import StopRequest

WEIGHTS, OPTIMIZER, METRICS, RANDOM = "weights", "optimizer", "metrics", "random"


class TrainingCheckpoint(keras.callbacks.Callback):
    """Saves a training every so many batches; a killed one goes on to the same bits.

    Saved are the weights, all variables of the optimizer, the seeds of every layer, the
    states of the random generators of Python, numpy and torch, the sums of the metrics,
    and how many batches were used. Keras's `BackupAndRestore` has no seeds and no place
    in the data: with dropout it goes on differently, and after a stop within an epoch
    it begins the epoch again.

    The data must be able to begin at any batch, as `InstanceBatches` are:

        checkpoint = TrainingCheckpoint("run/checkpoints")
        batches = InstanceBatches("instances", first_step=checkpoint.step)
        pretrainer.compile(kbert.AdamW(kbert.WarmupLinearDecay(1e-4, total)))
        pretrainer.fit(batches, steps_per_epoch=total - checkpoint.step,
                       callbacks=[checkpoint])

    The model and its optimizer must be made as they were; that they have other shapes
    is noticed. On TensorFlow the same bits also need `make_deterministic` of
    `kbert.training.randomness`, and metrics that exist: where the saved ones are of an
    epoch's middle, `evaluate` one batch before. With `use_ema` Keras ends each `fit`
    with the averages as weights, and so does the checkpoint at its end.

    It saves after every `every` batches, when `fit` ends, and where `stop` was asked
    for: then `fit` ends after the batch at hand.

    Args:
        folder: where the checkpoints lie; see `CheckpointFolder`.
        every: batches from one to the next.
        keep: how many to keep.
        stop: what notes a signal, or None.
        facts: function without arguments, to what JSON can hold: saved beside.

    Attributes:
        step: batches used so far, over all epochs and processes.
        saved: the checkpoint that the training goes on from, or None.

    Raises:
        ValueError: if `every` or `keep` is below 1, or every checkpoint is damaged.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        every: int = 1000,
        keep: int = 3,
        *,
        stop: StopRequest | None = None,
        facts: Callable[[], dict] | None = None,
    ):
        super().__init__()
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(
                "There must be at least one batch from a checkpoint to the next. "
                f"Received: every={every!r}."
            )
        self.folder = CheckpointFolder(folder, keep)
        self.every = every
        self.stop = stop
        self.facts = facts
        self.saved: SavedCheckpoint | None = self.folder.newest()
        self.step = self.saved.step if self.saved else 0
        self._on_disk = self.step
        self._epoch_began = self.step
        self._restored_model = None
        # What the next batch must find, whatever draws numbers between two `fit`s.
        self._random: dict[str, np.ndarray] | None = None
        self._metrics: dict[str, np.ndarray] | None = None

    def restore(self, model) -> None:
        """Brings the saved state into a model, once; `fit` does it if nobody has.

        Args:
            model: compiled, with an optimizer of the user's.

        Raises:
            ValueError: if the model has no optimizer, or one of its variables another
                shape than was saved; if another backend saved.
        """
        if self._restored_model is model:
            return
        self._restored_model = model
        if model.optimizer is None:
            raise ValueError(
                "A training that goes on needs an optimizer of yours: "
                "`compile(kbert.AdamW(kbert.WarmupLinearDecay(rate, total_steps)))`. "
                "Received: a model whose `fit` makes a new one each time."
            )
        model.optimizer.build(model.trainable_variables)
        if self.saved is None:
            self._random = random_states()
            return
        backend = self.saved.facts["backend"]
        if backend != keras.backend.backend():
            raise ValueError(
                f"A training goes on with the backend that it began with: {backend}. "
                f"Received: KERAS_BACKEND={keras.backend.backend()}. The weights alone "
                "go from one to the other, in a preset."
            )
        where = self.saved.folder
        _assign(model.variables, self.saved.arrays(WEIGHTS), where)
        _assign(model.optimizer.variables, self.saved.arrays(OPTIMIZER), where)
        self._metrics = self.saved.arrays(METRICS)
        self._random = self.saved.arrays(RANDOM)

    def save(self) -> None:
        """Saves the state after the batches used so far."""
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # within an epoch it lies outside the model
        groups = {
            WEIGHTS: _arrays(self.model.variables),
            OPTIMIZER: _arrays(self.model.optimizer.variables),
            METRICS: _arrays(self.model.metrics_variables),
            RANDOM: random_states(),
        }
        facts = {"backend": keras.backend.backend(), "keras": keras.version()}
        if self.facts is not None:
            facts["more"] = self.facts()
        self.folder.write(self.step, groups, facts)
        self._on_disk = self.step

    def on_train_begin(self, logs=None):
        """Restores what was saved, if nobody has."""
        self.restore(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        """Notes where the epoch begins."""
        self._epoch_began = self.step

    def on_train_batch_begin(self, batch, logs=None):
        """Before the first one, puts back what was between it and the last one.

        Not earlier: to start reading data, torch draws a number of its own.
        """
        if self._metrics is not None:
            self._restore_metrics(self._metrics)
            self._metrics = None
        if self._random is not None:
            set_random_states(self._random)
            self._random = None

    def on_train_batch_end(self, batch, logs=None):
        """Saves where it is time to, or where a signal asks to stop."""
        self.step = self._epoch_began + batch + 1
        stops = self.stop is not None and self.stop.received is not None
        if stops:
            self.model.stop_training = True
        if stops or self.step % self.every == 0:
            self.save()

    def on_train_end(self, logs=None):
        """Saves the end."""
        if self.step != self._on_disk:
            self.save()
        self._random = random_states()

    def _restore_metrics(self, arrays):
        variables = self.model.metrics_variables
        unmade = len(variables) < len(arrays)
        if unmade and not any(value.any() for value in arrays.values()):
            return  # as new ones are
        if unmade:
            raise ValueError(
                f"The metrics must exist to get their sums back: call `evaluate(…, "
                f"steps=1)` before `fit`. Received: {len(variables)} variables of "
                f"metrics, for {len(arrays)} in {self.saved and self.saved.folder}."
            )
        _assign(variables, arrays, self.saved and self.saved.folder)


def _arrays(variables) -> dict[str, np.ndarray]:
    """Returns the values of variables, named by number and path."""
    found = {}
    for number, variable in enumerate(variables):
        # By way of a tensor: numpy warns of TensorFlow's variables.
        value = keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(variable))
        if value.dtype.kind == "V":  # bfloat16, of which float32 loses nothing
            value = value.astype("float32")
        found[f"{number:05d} {variable.path}"] = value
    return found


def _assign(variables, arrays, where) -> None:
    """Sets variables to saved values, in the order in which they were saved.

    Their paths may count differently: layers without a name have a number, which goes
    on from model to model.
    """
    shapes = [tuple(variable.shape) for variable in variables]
    saved = [array.shape for _, array in sorted(arrays.items())]
    if shapes != saved:
        pairs = zip(shapes, saved, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        told = f"{len(shapes)} variables, for {len(saved)} that were saved"
        if at is not None:
            name = sorted(arrays)[at]
            told = f"{variables[at].path} of shape {shapes[at]}, for {name} {saved[at]}"
        raise ValueError(
            "A training goes on with the model and the optimizer that it began with. "
            f"Received: {told}, in {where}."
        )
    for variable, (_, array) in zip(variables, sorted(arrays.items()), strict=True):
        variable.assign(array)
