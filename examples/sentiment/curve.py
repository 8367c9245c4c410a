"""Record how training goes, for the picture."""

import keras
import numpy as np


class Curve(keras.callbacks.Callback):
    """Losses of single steps, and accuracy on a small set a few times an epoch.

    Args:
        texts: the sentences to watch the accuracy on.
        labels: int (N,), their classes.
        every: steps between two looks.
    """

    def __init__(self, texts, labels, every):
        super().__init__()
        self.texts, self.labels, self.every = texts, np.asarray(labels), every
        self.losses = []
        self.accuracies = []  # (step, accuracy)

    def on_train_begin(self, logs=None):
        self._look()

    def on_epoch_begin(self, epoch, logs=None):
        self._step, self._sum = 0, 0.0

    def on_train_batch_end(self, batch, logs=None):
        # Keras reports the mean over the epoch so far.
        self._step += 1
        total = logs["loss"] * self._step
        self.losses.append(total - self._sum)
        self._sum = total
        if len(self.losses) % self.every == 0:
            self._look()

    def on_train_end(self, logs=None):
        if self.accuracies[-1][0] != len(self.losses):
            self._look()

    def _look(self):
        # Not `evaluate`, which would reset the metrics of the epoch that is running.
        logits = self.model.predict(self.texts, verbose=0)
        accuracy = float((logits.argmax(axis=1) == self.labels).mean())
        self.accuracies.append((len(self.losses), accuracy))
