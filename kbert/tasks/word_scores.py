"""Scores of whole entities, from the tokens that stand for a word.

Targets are int (B, S): at the first piece of every word the index of its tag, below 0
elsewhere (`kbert.preprocessing.words`). Logits are float (B, S, C).
"""

import keras
import numpy as np
from keras import ops

from kbert.metrics import tagging
from kbert.preprocessing.words import TEXT_BEGINS


@keras.saving.register_keras_serializable(package="kbert")
class EntityScores(keras.metrics.Metric):
    """Precision, recall and F1 of whole entities, as `kbert.metrics.tagging` counts.

    The windows of a text that is too long for one count as texts of their own.

    Args:
        labels: the names of the C tags.
        name: of the metric; what it reports is "precision", "recall" and "f1".
        dtype: of the counts.
    """

    def __init__(self, labels, name="entities", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.labels = labels
        self.transitions = tagging.transitions(labels)
        self.right = self.add_weight(name="right", initializer="zeros")
        self.found = self.add_weight(name="found", initializer="zeros")
        self.there = self.add_weight(name="there", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the entities of a batch; weights have no meaning here."""
        y_true = ops.cast(y_true, "int32")
        is_word = ops.greater_equal(y_true, 0)
        # No word, and so outside of every entity: what divides the texts of a row.
        outside = len(self.labels)
        truth = ops.where(is_word, y_true, outside)
        guess = ops.cast(ops.argmax(y_pred, -1), "int32")
        guess = ops.where(is_word, guess, outside)
        counts = ops.logical_or(is_word, ops.equal(y_true, TEXT_BEGINS))
        at = ops.arange(ops.shape(y_true)[1])
        earlier = ops.logical_and(counts[:, None, :], at[None, :, None] > at)
        before = ops.max(ops.where(earlier, at, -1), axis=-1)  # (B, S); -1: none
        there, their_types, their_ends = self._entities(truth, before, counts, at)
        found, our_types, our_ends = self._entities(guess, before, counts, at)
        alike = ops.logical_and(
            ops.equal(their_types, our_types), ops.equal(their_ends, our_ends)
        )
        right = ops.logical_and(ops.logical_and(there, found), alike)
        for variable, entities in (
            (self.right, right),
            (self.found, found),
            (self.there, there),
        ):
            variable.assign_add(ops.sum(ops.cast(entities, "float32")))

    def _entities(self, tags, before, counts, at):
        """Returns where entities begin, the types, and where one from there ends.

        Each is (B, S); an entity ends before the position that is returned.
        """
        outside = len(self.labels)
        previous = ops.take_along_axis(tags, ops.maximum(before, 0), axis=1)
        previous = ops.where(before < 0, outside, previous)
        pair = previous * (outside + 1) + tags

        def look_up(table):
            return ops.take(ops.convert_to_tensor(np.ravel(table)), pair, axis=0)

        begins = ops.logical_and(counts, look_up(self.transitions.begins))
        ends = ops.logical_and(counts, look_up(self.transitions.ends))
        later = ops.logical_and(ends[:, None, :], at[None, :, None] < at)
        end = ops.min(ops.where(later, at, ops.shape(tags)[1]), axis=-1)
        types = ops.take(ops.convert_to_tensor(self.transitions.types), tags, axis=0)
        return begins, types, end

    def result(self):
        """Returns {"precision", "recall", "f1"}, 0 where a denominator is 0."""
        both = self.found + self.there
        return {
            "precision": self.right / ops.maximum(self.found, 1.0),
            "recall": self.right / ops.maximum(self.there, 1.0),
            "f1": 2.0 * self.right / ops.maximum(both, 1.0),
        }

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "labels": list(self.labels)}
