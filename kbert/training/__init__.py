"""The paper's optimizer, its schedule of the learning rate, and checkpoints."""

from kbert.training.checkpoint import TrainingCheckpoint
from kbert.training.lamb import Lamb
from kbert.training.optimizer import AdamW
from kbert.training.schedules import WarmupLinearDecay

__all__ = ["AdamW", "Lamb", "TrainingCheckpoint", "WarmupLinearDecay"]
