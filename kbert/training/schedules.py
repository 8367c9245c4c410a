"""The learning rate as a function of the optimizer step."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kbert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then linear decay to 0 (Devlin et al. 2018, appendix A.2).

    With W = int(total_steps * warmup_fraction), the learning rate of step t, counted
    from 0, is as in google-research/bert, `optimization.py`:

        t < W:   peak_learning_rate * t / W
        t >= W:  peak_learning_rate * (1 - t / total_steps), never below 0

    So the first step of a warm-up has rate 0, and the decay is that of a line which
    starts at step 0: the rate falls by `warmup_fraction` where the warm-up ends.
    (transformers' linear schedule decays from the end of the warm-up instead.)

    Args:
        peak_learning_rate: the rate at which warm-up and decay aim.
        total_steps: optimizer steps of the whole training. A step under gradient
            accumulation is one update of the weights, see `kbert.AdamW`.
        warmup_fraction: the part of `total_steps` that is warm-up.

    Raises:
        ValueError: if `total_steps` is no integer of at least 1, `warmup_fraction`
            lies outside [0, 1], or `peak_learning_rate` is negative.

    Example:
    >>> schedule = WarmupLinearDecay(1.0, total_steps=10, warmup_fraction=0.2)
    >>> [round(float(schedule(step)), 2) for step in (0, 1, 2, 5, 10, 11)]
    [0.0, 0.5, 0.8, 0.5, 0.0, 0.0]
    """

    def __init__(
        self, peak_learning_rate: float, total_steps: int, warmup_fraction: float = 0.1
    ):
        if not 0 <= peak_learning_rate < float("inf"):
            raise ValueError(
                "`peak_learning_rate` must be a finite number, 0 or more. "
                f"Received: peak_learning_rate={peak_learning_rate!r}."
            )
        if isinstance(total_steps, bool) or total_steps != int(total_steps):
            raise ValueError(
                "`total_steps` must be an integer. "
                f"Received: total_steps={total_steps!r}."
            )
        if total_steps < 1:
            raise ValueError(
                "`total_steps` must be at least 1: the optimizer steps of the whole "
                f"training, epochs * batches. Received: total_steps={total_steps!r}."
            )
        if not 0 <= warmup_fraction <= 1:
            raise ValueError(
                "`warmup_fraction` must lie in [0, 1]: it is a part of `total_steps`, "
                "not a number of steps. "
                f"Received: warmup_fraction={warmup_fraction!r}."
            )
        super().__init__()
        self.peak_learning_rate = float(peak_learning_rate)
        self.total_steps = int(total_steps)
        self.warmup_fraction = float(warmup_fraction)

    @property
    def warmup_steps(self) -> int:
        """The optimizer steps of warm-up, W."""
        return int(self.total_steps * self.warmup_fraction)

    def __call__(self, step):
        """Returns the learning rate of a step.

        Args:
            step: integer scalar, the optimizer step, counted from 0.

        Returns:
            float32 scalar.
        """
        step = ops.cast(step, "float32")
        rising = step / max(self.warmup_steps, 1)
        falling = ops.maximum(self.total_steps - step, 0.0) / self.total_steps
        factor = ops.where(step < self.warmup_steps, rising, falling)
        return self.peak_learning_rate * factor

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "total_steps": self.total_steps,
            "warmup_fraction": self.warmup_fraction,
        }


class PerUpdate(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that counts updates where Keras counts micro-batches.

    Args:
        schedule: of updates.
        calls_per_update: micro-batches an update.
    """

    def __init__(self, schedule, calls_per_update):
        super().__init__()
        self.schedule = schedule
        self.calls_per_update = calls_per_update

    def __call__(self, step):
        """Returns the learning rate of a micro-batch, counted from 0."""
        return self.schedule(ops.floor_divide(step, self.calls_per_update))

    def get_config(self):
        """Returns the constructor's arguments."""
        return {"schedule": self.schedule, "calls_per_update": self.calls_per_update}


def in_updates(learning_rate, calls_per_update):
    """Returns a learning rate for an optimizer that accumulates gradients.

    Args:
        learning_rate: as for `kbert.AdamW`.
        calls_per_update: micro-batches an update; None for one.
    """
    if calls_per_update and isinstance(
        learning_rate, keras.optimizers.schedules.LearningRateSchedule
    ):
        return PerUpdate(learning_rate, calls_per_update)
    return learning_rate
