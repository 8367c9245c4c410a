"""From what a user passes to `fit` to what Keras's `fit` takes."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import keras
import numpy as np

from kbert.backbone import check_inputs
from kbert.preprocessing.batching import TextBatches, collate
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.raw_text import is_raw
from kbert.preprocessing.streaming import StreamedBatches, StreamWidths

# Widths of a stream's batches, whose texts are not known in advance.
_STREAM_WIDTHS = (16, 32, 64, 128, 256, 512)


@dataclasses.dataclass(frozen=True)
class Texts:
    """N encoded texts with their targets.

    Args:
        encoded: the texts as ids.
        y: targets, (N, …), or None.
        sample_weight: float (N,), or None.
        pad_id: fills unused positions.
    """

    encoded: EncodedTexts
    y: np.ndarray | None
    sample_weight: np.ndarray | None
    pad_id: int

    def split(self, fraction) -> tuple["Texts", "Texts"]:
        """Returns all but the last `fraction` of the texts, and those."""
        first, last = _parts(len(self.encoded), fraction)
        return self._select(first), self._select(last)

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return math.ceil(len(self.encoded) / batch_size)

    def positions(self, batch_size) -> float:
        """Returns the positions of a batch, on average and without padding."""
        return float(self.encoded.lengths.mean()) * batch_size

    def batches(self, batch_size, *, shuffle=False, keep_shape=False) -> TextBatches:
        """Returns the batches of an epoch."""
        return TextBatches(
            self.encoded,
            self.y,
            self.sample_weight,
            batch_size=batch_size,
            shuffle=shuffle,
            pad_id=self.pad_id,
            keep_shape=keep_shape,
        )

    def fit_arguments(self, batch_size, shuffle) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        return {"x": self.batches(batch_size, shuffle=shuffle), "shuffle": False}

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {"x": self.batches(batch_size)}

    def validation_arguments(self, batch_size) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return {"validation_data": self.batches(batch_size)}

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        return {"x": self.batches(batch_size, keep_shape=True)}

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
        width = choose_width(self.encoded.lengths.max())
        everything = np.arange(len(self.encoded))
        inputs = collate(self.encoded, everything, width, self.pad_id)
        return inputs, self.y, self.sample_weight

    def truncated(self) -> str:
        """Returns a sentence on truncated texts, empty where there are none."""
        if not self.encoded.num_truncated:
            return ""
        return (
            f"{self.encoded.num_truncated:,} of {len(self.encoded):,} texts were "
            f"longer than {int(self.encoded.lengths.max())} tokens and were truncated."
        )

    def _select(self, indices) -> "Texts":
        return Texts(
            self.encoded.select(indices),
            _rows(self.y, indices),
            _rows(self.sample_weight, indices),
            self.pad_id,
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
        first, last = _parts(len(self.x["token_ids"]), fraction)
        return self._select(first), self._select(last)

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return math.ceil(len(self.x["token_ids"]) / batch_size)

    def positions(self, batch_size) -> float:
        """Returns the positions of a batch."""
        return self.x["token_ids"].shape[1] * batch_size

    def fit_arguments(self, batch_size, shuffle) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        return {**self.evaluate_arguments(batch_size), "shuffle": shuffle}

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {
            "x": self.x,
            "y": self.y,
            "sample_weight": self.sample_weight,
            "batch_size": batch_size,
        }

    def validation_arguments(self, batch_size) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return {
            "validation_data": (self.x, self.y, self.sample_weight),
            "validation_batch_size": batch_size,
        }

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        return {"x": self.x, "batch_size": batch_size}

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
            _rows(self.y, indices),
            _rows(self.sample_weight, indices),
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

    def positions(self, batch_size) -> None:
        """Returns None: the texts are not known in advance."""
        return None

    def fit_arguments(self, batch_size, shuffle) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        return {
            "x": self.dataset,
            "shuffle": False,
            "steps_per_epoch": self.dataset.steps,
        }

    def validation_arguments(self, batch_size) -> dict:
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


def prepare(task, x, y=None, sample_weight=None, *, steps=None, training=False):
    """Sorts what a user passed into `Texts`, `Arrays` or a `Stream`, all checked.

    Args:
        task: the `BertTask` that will read them.
        x: as for `BertTask.fit`.
        y: targets, or None.
        sample_weight: one weight a text, or None.
        steps: batches an epoch, for a dataset that does not know its length.
        training: whether `y` is a whole training set.

    Returns:
        A `Texts`, an `Arrays` or a `Stream`.

    Raises:
        ValueError: if the data are not what the task takes.
    """
    if _is_dataset(x):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "A dataset holds its targets and weights itself, as (x, y) or "
                f"(x, y, sample_weight). Received: a {type(x).__name__} and `y` or "
                "`sample_weight` beside it."
            )
        return Stream(_streamed(task, x, steps))
    if is_raw(x):
        task.require_preprocessor()
        encoded = task.preprocessor.encode(x)
        return Texts(
            encoded,
            *_targets(task, y, sample_weight, len(encoded), training),
            pad_id=task.backbone.config.pad_token_id,
        )
    if isinstance(x, dict):
        inputs = ready_arrays(x, task.backbone.config)
        count = len(inputs["token_ids"])
        return Arrays(inputs, *_targets(task, y, sample_weight, count, training))
    raise TypeError(
        "`x` must be texts, a dictionary of arrays, or a dataset. Received: "
        f"{type(x).__name__} {str(x)[:60]}."
    )


def require_targets(data):
    """Refuses texts or arrays without targets, where they are to be learned or judged.

    Raises:
        ValueError: if there are none.
    """
    if not isinstance(data, Stream) and data.y is None:
        raise ValueError("`y` must hold a target for every text. Received: None.")


def prepare_validation(task, data, *, steps=None):
    """Does the same for `validation_data`: a tuple with targets, or a dataset."""
    if isinstance(data, tuple):
        if len(data) not in (2, 3):
            raise ValueError(
                "`validation_data` must be (x, y), (x, y, sample_weight) or a dataset."
                f" Received: a tuple of {len(data)}."
            )
        return prepare(task, *data, steps=steps)
    return prepare(task, data, steps=steps)


def with_first_positions(inputs):
    """Returns a model's inputs with first_positions, None for one text a row."""
    if isinstance(inputs, dict) and "first_positions" not in inputs:
        return {**inputs, "first_positions": None}
    return inputs


def ready_arrays(x, config) -> dict[str, np.ndarray]:
    """Returns ready inputs as checked int32 arrays.

    Args:
        x: a dictionary with token_ids, padding_mask and, optionally, segment_ids (0
            everywhere where absent), each (N, S).
        config: the backbone's `BertConfig`.

    Raises:
        ValueError: if a key is missing or unknown, or a value out of range.
    """
    known = ("token_ids", "segment_ids", "padding_mask")
    unknown = sorted(set(x) - {*known, "first_positions"})
    missing = [key for key in ("token_ids", "padding_mask") if x.get(key) is None]
    if unknown or missing:
        raise ValueError(
            f"Ready inputs must have the keys {list(known)}. Received: {sorted(x)}."
        )
    arrays = {key: keras.ops.convert_to_numpy(x[key]) for key in known if key in x}
    check_inputs(arrays, config)
    shapes = {key: value.shape for key, value in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"Ready inputs must be of one shape. Received: {shapes}.")
    if arrays["token_ids"].shape[0] == 0:
        raise ValueError("There must be at least one row. Received: 0 rows.")
    arrays.setdefault("segment_ids", np.zeros_like(arrays["token_ids"]))
    if arrays["padding_mask"].max() > 1:
        raise ValueError(
            "In ready arrays `padding_mask` must be 1 for text and 0 for padding. "
            f"Received: values up to {arrays['padding_mask'].max()}."
        )
    return {key: value.astype("int32") for key, value in arrays.items()}


def _is_dataset(x) -> bool:
    """Whether `x` yields batches, as opposed to being texts or an array."""
    if isinstance(x, keras.utils.PyDataset):
        return True
    if isinstance(x, str | bytes | list | tuple | Mapping) or hasattr(x, "ndim"):
        return False
    return isinstance(x, Iterable)


def _streamed(task, source, steps) -> StreamedBatches:
    """Returns the batches of a dataset, each prepared when its turn comes."""
    longest = task.backbone.config.max_sequence_length
    if task.preprocessor is not None:
        longest = task.preprocessor.max_length
    widths = [width for width in _STREAM_WIDTHS if width < longest]
    choose_width = StreamWidths([*widths, longest])

    def prepare_batch(x, y, sample_weight):
        return prepare(task, x, y, sample_weight).single_batch(choose_width)

    return StreamedBatches(source, prepare_batch, steps)


def _targets(task, y, sample_weight, count, training):
    if y is not None:
        y = task.encode_targets(y, count, training=training)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, count, "sample_weight")
    return y, sample_weight


def _parts(count, fraction):
    """Returns the indices of all but the last `fraction` of `count`, and those."""
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


def _rows(values, indices):
    return None if values is None else values[indices]
