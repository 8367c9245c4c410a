"""The paper's optimizer and its schedule of the learning rate."""

from kbert.training.optimizer import AdamW
from kbert.training.schedules import WarmupLinearDecay

__all__ = ["AdamW", "WarmupLinearDecay"]
