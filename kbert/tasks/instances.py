"""Instances of pre-training as ready arrays: masked before, one a row, all checked."""

import dataclasses
import math
from typing import Any

import keras
import numpy as np

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.layouts import SingleRows
from kbert.preprocessing.masked_batches import (
    NO_LABEL,
    MaskedBatches,
    MaskedTexts,
    with_next_sentence,
)
from kbert.preprocessing.masking import Masked
from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.rows import one_a_row, rows_of
from kbert.tasks.compiling import compiles_shapes
from kbert.tasks.dividing import slots_for
from kbert.tasks.feeding import ready_arrays
from kbert.tasks.feeds import BATCH_SIZE, parts_of
from kbert.tasks.replicas import is_distributed


def read_arrays(task, x, y, sample_weight):
    """Returns the `InstanceArrays` of a task of masked tokens.

    Raises:
        ValueError: if a position lies in no text, or a label is out of range.
    """
    config = task.backbone.config
    inputs = ready_arrays(
        {key: value for key, value in x.items() if key != "mask_positions"}, config
    )
    positions = _positions(x.get("mask_positions"), inputs)
    labels = next_sentence = None
    if y is not None:
        if task.has_next_sentence:
            y, next_sentence = _two_targets(y, len(positions))
        labels = _labels(y, positions, config.vocabulary_size)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, len(positions))
    return InstanceArrays(
        inputs,
        positions,
        labels,
        next_sentence,
        sample_weight,
        compiles_shapes(task),
        is_distributed(task),
    )


@dataclasses.dataclass(frozen=True)
class InstanceArrays:
    """N instances of pre-training, masked before, one a row.

    Args:
        x: token_ids, segment_ids and padding_mask, each int32 (N, S).
        positions: int32 (N, M), the columns of the masked tokens; 0 for none.
        y: int32 (N, M), what stood there; None where nothing is to be learned.
        next_sentence: int32 (N,), 0 for the next one and 1 for a random one, or None.
        sample_weight: float (N,), or None.
        few_sizes: as for `MaskedBatches`.
        shared: whether replicas are to share every batch.
    """

    x: dict[str, np.ndarray]
    positions: np.ndarray
    y: np.ndarray | None
    next_sentence: np.ndarray | None
    sample_weight: np.ndarray | None
    few_sizes: bool
    shared: bool = False

    def split(self, fraction) -> tuple["InstanceArrays", "InstanceArrays"]:
        """Returns all but the last `fraction` of the instances, and those."""
        first, last = parts_of(len(self.positions), fraction)
        return self._select(first), self._select(last)

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return math.ceil(len(self.positions) / batch_size)

    def fit_arguments(self, batch_size, shuffle, epochs) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        order = "shuffled" if shuffle else "given"
        return {"x": self._batches(batch_size, order), "shuffle": False}

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {"x": self._batches(batch_size or BATCH_SIZE, "given")}

    def validation_arguments(self, batch_size, epochs) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return {"validation_data": self._batches(batch_size, "given")}

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        order = "free" if keras.backend.backend() == "torch" else "alike"
        return {"x": self._batches(batch_size or BATCH_SIZE, order, False)}

    def restore(self, outputs, arguments):
        """Returns the logits in the order of the instances."""
        return arguments["x"].restore(outputs)

    def single_batch(self, choose_width=None) -> tuple[dict, Any, Any]:
        """Returns all instances as one batch, as wide as they are."""
        splits = self._encoded().row_splits
        return laid(
            self.x,
            self._masked(),
            splits,
            with_labels=self.y is not None,
            next_sentence=self.next_sentence,
            sample_weight=self.sample_weight,
            few_sizes=self.few_sizes,
        )

    def truncated(self) -> str:
        """Returns nothing: ready arrays are taken as they are."""
        return ""

    def _batches(self, batch_size, order, with_labels=True) -> MaskedBatches:
        if self.shared:
            raise ValueError(
                "Replicas share instances that come as a dataset of batches, such as "
                "`InstanceBatches`. Received: arrays, under a distribution strategy."
            )
        encoded = self._encoded()
        width = self.x["token_ids"].shape[1]
        batches = TextBatches(
            encoded, batch_size=batch_size, order=order, layout=SingleRows([width])
        )
        masked = self._masked()
        return MaskedBatches(
            batches,
            lambda epoch: masked,
            with_labels=with_labels,
            next_sentence=self.next_sentence,
            sample_weight=self.sample_weight,
            arrays=self.x,
            few_sizes=self.few_sizes,
        )

    def _encoded(self) -> EncodedTexts:
        """Returns every row as a text as wide as it is, padding and all."""
        count, width = self.x["token_ids"].shape
        return EncodedTexts(
            self.x["token_ids"].reshape(-1),
            np.arange(count + 1, dtype=np.int64) * width,
            np.full(count, width, np.int32),
        )

    def _masked(self) -> Masked:
        rows, slots = np.nonzero(self.positions)
        columns = self.positions[rows, slots]
        at = rows * self.x["token_ids"].shape[1] + columns
        order = np.argsort(at, kind="stable")
        labels = np.zeros_like(columns) if self.y is None else self.y[rows, slots]
        return Masked(self.x["token_ids"].reshape(-1), at[order], labels[order])

    def _select(self, indices) -> "InstanceArrays":
        return InstanceArrays(
            {key: value[indices] for key, value in self.x.items()},
            self.positions[indices],
            rows_of(self.y, indices),
            rows_of(self.next_sentence, indices),
            rows_of(self.sample_weight, indices),
            self.few_sizes,
            self.shared,
        )


def laid(
    inputs,
    masked: Masked,
    row_splits,
    *,
    with_labels,
    next_sentence=None,
    sample_weight=None,
    few_sizes=False,
) -> tuple[dict, Any, Any]:
    """Returns all texts, one a row, as one batch with its targets and weights.

    Args:
        inputs: of the texts, each (N, S), in order.
        masked: their masked tokens.
        row_splits: where each text begins in `masked.token_ids`, (N + 1,).
        with_labels: whether there are targets; else they and the weights are None.
        next_sentence: int (N,), or None.
        sample_weight: float (N,), or None.
        few_sizes: whether slots without a token round the number of slots up.
    """
    count, width = inputs["token_ids"].shape
    texts = MaskedTexts(masked, row_splits)
    index, positions, owner = texts.find(np.arange(count), one_a_row(count, width))
    inputs = texts.hide(inputs, index, positions)
    if not with_labels:
        return inputs, None, None
    empty = slots_for(len(index), few_sizes) - len(index)
    inputs["mask_positions"] = np.pad(positions, (0, empty))
    labels = np.pad(masked.labels[index], (0, empty), constant_values=NO_LABEL)
    weights = None
    if sample_weight is not None:
        of_slots = np.pad(sample_weight[owner], (0, empty))
        of_nsp = None if next_sentence is None else sample_weight
        weights = with_next_sentence(of_slots, of_nsp)
    return inputs, with_next_sentence(labels, next_sentence), weights


def _positions(positions, inputs) -> np.ndarray:
    """Returns the columns of masked tokens as int32 (N, M)."""
    count, width = inputs["token_ids"].shape
    if positions is None:
        raise ValueError(
            "Ready inputs must have `mask_positions` (N, M), the columns of the masked "
            f"tokens, 0 where there is none. Received: {sorted(inputs)}."
        )
    positions = keras.ops.convert_to_numpy(positions)
    if positions.ndim != 2 or positions.shape[0] != count:
        raise ValueError(
            f"`mask_positions` must have the shape ({count}, M). Received: "
            f"{positions.shape}."
        )
    if positions.dtype.kind not in "iu":
        raise ValueError(
            f"`mask_positions` must be integers. Received: {positions.dtype}."
        )
    if positions.size and not 0 <= positions.min() <= positions.max() < width:
        raise ValueError(
            f"`mask_positions` must be columns of rows {width} wide. Received: values "
            f"from {positions.min()} to {positions.max()}."
        )
    positions = positions.astype("int32")
    rows, _ = np.nonzero(positions)
    outside = inputs["padding_mask"][rows, positions[positions > 0]] == 0
    if outside.any():
        row = rows[outside][0]
        raise ValueError(
            "A masked token must lie in the text, where `padding_mask` is 1. Received: "
            f"row {row} with mask_positions={positions[row].tolist()}."
        )
    if not len(rows):
        raise ValueError(
            "There must be at least one masked token. Received: `mask_positions` of "
            "zeros alone."
        )
    return positions


def _two_targets(y, count):
    """Returns the targets of both heads, those of next sentences checked."""
    if not isinstance(y, dict) or set(y) != {"mlm", "nsp"}:
        received = sorted(map(str, y)) if isinstance(y, dict) else type(y).__name__
        raise ValueError(
            "`y` must be {'mlm': ids (N, M), 'nsp': (N,) with 0 for the next sentence "
            f"and 1 for a random one}}. Received: {received}."
        )
    labels = keras.ops.convert_to_numpy(y["nsp"])
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (count,) or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"`y['nsp']` must be 0 or 1, one an instance, ({count},). Received: shape "
            f"{labels.shape} with {np.unique(labels)[:5].tolist()}."
        )
    return y["mlm"], labels.astype("int32")


def _labels(y, positions, vocabulary_size) -> np.ndarray:
    """Returns the ids that stood at the masked positions as int32 (N, M)."""
    labels = keras.ops.convert_to_numpy(y)
    if labels.shape != positions.shape or labels.dtype.kind not in "iu":
        raise ValueError(
            "The ids of the masked tokens must be integers in the shape of "
            f"`mask_positions`, {positions.shape}. Received: {labels.dtype} of shape "
            f"{labels.shape}."
        )
    used = labels[positions > 0]
    if used.min() < 0 or used.max() >= vocabulary_size:
        raise ValueError(
            f"The ids of the masked tokens must be at least 0 and below "
            f"vocabulary_size={vocabulary_size}. Received: values from {used.min()} to "
            f"{used.max()}."
        )
    return labels.astype("int32")
