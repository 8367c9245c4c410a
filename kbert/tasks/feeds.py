"""What a task reads: texts, ready arrays or a dataset, each laid for Keras."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.rows import PositionValues, lay, lay_values, one_a_row, rows_of
from kbert.preprocessing.streaming import StreamedBatches

# Texts a step, where nobody says; and tokens a step of `predict`, which small batches
# would not keep a processor busy with; fewer for torch, which fuses little, so that its
# caches should hold what it passes over.
BATCH_SIZE = 32
_PREDICT_TOKENS = 2048
_PREDICT_TOKENS_OF_TORCH = 768


@dataclasses.dataclass(frozen=True)
class Texts:
    """N encoded texts with their targets.

    Args:
        encoded: the texts as ids, an `EncodedTexts` or another that `lay` takes.
        y: targets, (N, …), or `PositionValues`, or None.
        sample_weight: float (N,), or `PositionValues`, or None.
        pad_id: fills unused positions.
        choose_layout: function of lengths, texts a batch, order and epochs, to a
            layout.
        lay: function that makes the inputs of a batch, as `rows.lay`.
        examples: where several texts make up an example, which they must not be split
            from, its number: not decreasing, integers (N,); else None.
        single: what `single_batch` lays one a row, where that is not `encoded`.
    """

    encoded: Any
    y: np.ndarray | PositionValues | None
    sample_weight: np.ndarray | PositionValues | None
    pad_id: int
    choose_layout: Callable
    lay: Callable = lay
    examples: np.ndarray | None = None
    single: Any = None

    def split(self, fraction) -> tuple["Texts", "Texts"]:
        """Returns all but the last `fraction` of the texts, and those."""
        if self.examples is None:
            first, last = parts_of(len(self.encoded), fraction)
        else:
            present, numbers = np.unique(self.examples, return_inverse=True)
            first, last = parts_of(len(present), fraction)
            first, last = (np.flatnonzero(np.isin(numbers, p)) for p in (first, last))
        return self._select(first), self._select(last)

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return math.ceil(len(self.encoded) / batch_size)

    def batches(self, batch_size, order, epochs=1) -> TextBatches:
        """Returns the batches of an epoch, laid for a run of so many epochs."""
        return TextBatches(
            self.encoded,
            self.y,
            self.sample_weight,
            batch_size=batch_size,
            order=order,
            layout=self.choose_layout(self.encoded.lengths, batch_size, order, epochs),
            pad_id=self.pad_id,
            lay=self.lay,
        )

    def fit_arguments(self, batch_size, shuffle, epochs) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        order = "shuffled" if shuffle else "given"
        return {"x": self.batches(batch_size, order, epochs), "shuffle": False}

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {"x": self.batches(batch_size or BATCH_SIZE, "free")}

    def validation_arguments(self, batch_size, epochs) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return {"validation_data": self.batches(batch_size, "free", epochs)}

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        # Torch makes nothing anew for another size; TensorFlow, also without XLA, does:
        # the kernels of its dense layers.
        order, tokens = "alike", _PREDICT_TOKENS
        if keras.backend.backend() == "torch":
            order, tokens = "free", _PREDICT_TOKENS_OF_TORCH
        if batch_size is None:
            fitting = round(tokens / self.encoded.lengths.mean())
            batch_size = max(BATCH_SIZE, fitting)
        return {"x": self.batches(batch_size, order)}

    def restore(self, outputs, arguments) -> np.ndarray:
        """Puts the rows that `predict` returned into the order of the texts."""
        return arguments["x"].restore(outputs)

    def single_batch(
        self, choose_width: Callable[[int], int] = int
    ) -> tuple[dict, Any, Any]:
        """Returns all texts as one batch.

        Args:
            choose_width: function of the longest text's tokens to the width.
        """
        encoded = self.encoded if self.single is None else self.single
        width = choose_width(encoded.lengths.max())
        count = len(encoded)
        placement = one_a_row(count, width)
        texts = np.arange(count)
        inputs = self.lay(encoded, texts, placement, self.pad_id)
        del inputs["first_positions"]  # the first of every row
        y, weights = (
            None if values is None else lay_values(values, texts, placement)
            for values in (self.y, self.sample_weight)
        )
        return inputs, y, weights

    def truncated(self) -> str:
        """Returns a sentence on truncated texts, empty where there are none."""
        if not self.encoded.num_truncated:
            return ""
        return (
            f"{self.encoded.num_truncated:,} of {self.encoded.num_texts:,} texts were "
            f"longer than {int(self.encoded.lengths.max())} tokens and were truncated."
        )

    def _select(self, indices) -> "Texts":
        return dataclasses.replace(
            self,
            encoded=self.encoded.select(indices),
            y=rows_of(self.y, indices),
            sample_weight=rows_of(self.sample_weight, indices),
            examples=rows_of(self.examples, indices),
            single=None if self.single is None else self.single.select(indices),
        )


@dataclasses.dataclass(frozen=True)
class Arrays:
    """Ready arrays with their targets, which Keras cuts into batches itself.

    Args:
        x: the model's inputs, each (N, S).
        y: targets, (N, …), or None.
        sample_weight: float (N,), or None.
    """

    x: dict[str, np.ndarray]
    y: np.ndarray | None
    sample_weight: np.ndarray | None

    def split(self, fraction) -> tuple["Arrays", "Arrays"]:
        """Returns all but the last `fraction` of the rows, and those."""
        first, last = parts_of(len(self.x["token_ids"]), fraction)
        return self._select(first), self._select(last)

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return math.ceil(len(self.x["token_ids"]) / batch_size)

    def fit_arguments(self, batch_size, shuffle, epochs) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        return {**self.evaluate_arguments(batch_size), "shuffle": shuffle}

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {
            "x": self.x,
            "y": self.y,
            "sample_weight": self.sample_weight,
            "batch_size": batch_size or BATCH_SIZE,
        }

    def validation_arguments(self, batch_size, epochs) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return {
            "validation_data": (self.x, self.y, self.sample_weight),
            "validation_batch_size": batch_size,
        }

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        return {"x": self.x, "batch_size": batch_size or BATCH_SIZE}

    def restore(self, outputs, arguments) -> np.ndarray:
        """Returns `outputs`, which are in order."""
        return outputs

    def single_batch(self, choose_width=None) -> tuple[dict, Any, Any]:
        """Returns all rows as one batch, as wide as they are."""
        return self.x, self.y, self.sample_weight

    def truncated(self) -> str:
        """Returns nothing: ready arrays are taken as they are."""
        return ""

    def _select(self, indices) -> "Arrays":
        return Arrays(
            {key: value[indices] for key, value in self.x.items()},
            rows_of(self.y, indices),
            rows_of(self.sample_weight, indices),
        )


@dataclasses.dataclass(frozen=True)
class Stream:
    """A dataset of batches, each prepared when its turn comes.

    Args:
        dataset: yields `(inputs, y, sample_weight)`.
    """

    dataset: StreamedBatches

    def split(self, fraction):
        """Refuses: a dataset has no last part that could be known in advance."""
        raise ValueError(
            "`validation_split` needs texts or arrays, whose last part can be held "
            f"back. Received: a dataset and validation_split={fraction}. Pass "
            "`validation_data` instead."
        )

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return self.dataset.steps

    def fit_arguments(self, batch_size, shuffle, epochs) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        return {
            "x": self.dataset,
            "shuffle": False,
            "steps_per_epoch": self.dataset.steps,
        }

    def validation_arguments(self, batch_size, epochs) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return {
            "validation_data": self.dataset,
            "validation_steps": self.dataset.steps,
        }

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {"x": self.dataset, "steps": self.dataset.steps}

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        return {"x": self.dataset, "steps": self.dataset.steps}

    def restore(self, outputs, arguments) -> np.ndarray:
        """Returns `outputs`, which are in order."""
        return outputs

    def single_batch(self, choose_width=None):
        """Refuses: a dataset is not one batch."""
        raise ValueError("Pass one batch of texts or arrays. Received: a dataset.")

    def truncated(self) -> str:
        """Returns nothing: the texts are not known in advance."""
        return ""


def padded(values, lengths) -> np.ndarray:
    """Returns the values of every text's tokens in a row of its own, 0 behind its end.

    Args:
        values: float32 (total, C), those of one text after those of another.
        lengths: tokens of each text, integers (N,).

    Returns:
        Float32 (N, S, C), S as many as the longest has.
    """
    rows = np.zeros((len(lengths), lengths.max(), values.shape[-1]), "float32")
    rows[np.arange(lengths.max()) < lengths[:, None]] = values
    return rows


def parts_of(count, fraction):
    """Returns the indices of all but the last `fraction` of `count`, and those.

    Raises:
        ValueError: if one of the two would be empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(
            f"`validation_split` must lie in (0, 1). Received: {fraction}."
        )
    first = math.floor(count * (1 - fraction))
    if not 0 < first < count:
        raise ValueError(
            "`validation_split` must leave texts on both sides. Received: "
            f"{fraction} of {count} texts."
        )
    return np.arange(first), np.arange(first, count)
