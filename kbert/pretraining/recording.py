"""What a run of pre-training tells while `fit` goes on."""

import dataclasses
import math
import time
from collections.abc import Callable

import keras

from kbert.pretraining.curves import CurveTable
from kbert.pretraining.run_data import PhaseData
from kbert.pretraining.run_model import schedule_of
from kbert.pretraining.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a run stands after a batch.

    Args:
        step: updates done, of `steps`.
        steps: of the run.
        sequence_length: of the phase at hand.
        scores: losses and accuracies by name, means since the last point of the curve.
        tokens_per_second: that were learnt from, padding not counted.
        seconds_left: at this speed.
    """

    step: int
    steps: int
    sequence_length: int
    scores: dict[str, float]
    tokens_per_second: float
    seconds_left: float


class Recorder(keras.callbacks.Callback):
    """Adds a point to the curve every so many steps, and tells how it goes.

    It goes before a `TrainingCheckpoint` among the callbacks: at a point of the curve
    the sums of the metrics begin anew, which a checkpoint then saves.

    Args:
        settings: of the run.
        phases: all of them.
        curve: where points go.
        board: a writer for TensorBoard, or None.
        progress: called after every batch; or None.

    Attributes:
        phase: the one at hand, to be set before `fit`.
        done: batches of the run before this `fit`, the same.

    Raises:
        ValueError: in `fit`, if the loss is no finite number.
    """

    def __init__(
        self,
        settings: RunSettings,
        phases: list[PhaseData],
        curve: CurveTable,
        board,
        progress: Callable[[Progress], None] | None,
    ):
        super().__init__()
        self.settings = settings
        self.phases = phases
        self.curve = curve
        self.board = board
        self.progress = progress
        self.phase, self.done = phases[0], 0
        self._since, self._batches = 0.0, 0
        self._schedule = schedule_of(settings)

    def on_train_begin(self, logs=None):
        """Starts the clock."""
        self._since, self._batches = time.perf_counter(), 0

    def on_train_batch_end(self, batch, logs=None):
        """Tells of a batch; at the end of a stretch of the curve adds its point."""
        logs = logs or {}
        parts = self.settings.accumulation
        done = self.done + batch + 1
        self._batches += 1
        scores = {name: float(value) for name, value in logs.items()}
        if not math.isfinite(scores["loss"]):
            raise ValueError(
                f"The loss must be a finite number. Received: {scores['loss']} at step "
                f"{done // parts}, with a learning rate up to {self.settings.peak}. "
                "What was learnt before is in the checkpoints; begin anew with a lower "
                "rate."
            )
        seconds = time.perf_counter() - self._since
        speed = self._batches * self.phase.tokens / seconds
        if self.progress is not None:
            left = sum(
                (phase.end - max(phase.begin, done)) * phase.tokens
                for phase in self.phases
                if phase.end > done
            )
            self.progress(
                Progress(
                    done // parts,
                    self.settings.steps,
                    self.phase.sequence_length,
                    scores,
                    speed,
                    left / speed,
                )
            )
        last = done == self.phase.end
        if done % (self.settings.log_every * parts) == 0 or last:
            self._add_point(done // parts, scores, speed)

    def _add_point(self, step, scores, speed):
        rate = keras.ops.convert_to_numpy(self._schedule(step - 1))
        row = {
            "step": step,
            "sequence_length": self.phase.sequence_length,
            "learning_rate": float(rate),
            **scores,
            "tokens_per_second": round(speed, 1),
        }
        self.curve.add(row)
        if self.board is not None:
            for name, value in row.items():
                self.board.add_scalar(f"training/{name}", value, step)
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # within an epoch it lies outside the model
        self.model.reset_metrics()
        self._since, self._batches = time.perf_counter(), 0
