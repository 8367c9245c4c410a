"""Batches of texts with masked tokens, as a `PyDataset` for Keras."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.masking import Masked
from kbert.preprocessing.rows import Placement, entries, rows_of

# The label of a slot that is there for the shape alone: no piece has this id.
NO_LABEL = -1

# Numbers of slots are multiples of this.
_MULTIPLE = 8


class MaskedTexts:
    """Which tokens of N texts are masked, and where they lie once texts are laid.

    Args:
        masked: what `TokenMasker` returned for the texts.
        row_splits: int (N + 1,), where each text begins in `masked.token_ids`.
    """

    def __init__(self, masked: Masked, row_splits: np.ndarray):
        self.masked = masked
        self.row_splits = np.asarray(row_splits)
        self._bounds = np.searchsorted(masked.positions, self.row_splits)

    def counts(self, texts) -> np.ndarray:
        """Returns how many tokens of each of some texts are masked."""
        return np.diff(self._bounds)[texts]

    def find(self, texts, placement: Placement) -> tuple[np.ndarray, ...]:
        """Says where the masked tokens of texts lie in the rows laid end to end.

        Args:
            texts: which of the N, integers (B,).
            placement: where they lie.

        Returns:
            Three arrays (masked,): indices into `masked.positions`, int32 positions
            row * S + column, and which of the B texts each belongs to.
        """
        counts = self.counts(texts)
        owner = np.repeat(np.arange(len(texts)), counts)
        index = entries(self._bounds, texts)
        column = self.masked.positions[index] - self.row_splits[texts][owner]
        positions = placement.first_positions[owner] + column
        return index, positions.astype(np.int32), owner

    def hide(self, inputs: dict, index, positions) -> dict:
        """Returns inputs with the masked tokens hidden.

        Args:
            inputs: with "token_ids", int32 (rows, S).
            index: as `find` returned it.
            positions: the same.
        """
        token_ids = inputs["token_ids"].copy()
        token_ids.reshape(-1)[positions] = self.masked.token_ids[
            self.masked.positions[index]
        ]
        return {**inputs, "token_ids": token_ids, "mask_positions": positions}


class MaskedBatches(keras.utils.PyDataset):
    """The batches of a `TextBatches`, each with some of its tokens masked.

    Args:
        batches: which texts share a batch and where they lie; without targets.
        mask: function of the number of an epoch to a `Masked` of all texts.
        with_labels: whether the hidden tokens come as targets: (masked,), or with
            `next_sentence` `{"mlm": (masked,), "nsp": (texts,)}`.
        next_sentence: int32 (N,), labels of a second head; None without one.
        sample_weight: float32 (N,), one weight a text; None for 1.
        arrays: inputs `{key: (N, S)}` that stand in the place of those that `batches`
            lays, None for these.
        few_sizes: whether slots without a token (position 0, label -1) fill the
            batches of one shape up to one size, since programs are compiled for it.
            Keras then weighs the loss of a batch, in the mean of an epoch, by all its
            slots; the loss itself is the mean over its tokens.
    """

    def __init__(
        self,
        batches: TextBatches,
        mask: Callable[[int], Masked],
        *,
        with_labels: bool,
        next_sentence: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
        few_sizes: bool = False,
    ):
        super().__init__()
        self.batches = batches
        self.mask = mask
        self.with_labels = with_labels
        self.next_sentence = next_sentence
        self.sample_weight = sample_weight
        self.arrays = arrays
        self.few_sizes = few_sizes
        self._epoch = -1
        self._sizes: dict[tuple[int, int], int] = {}
        self._prepare()

    def __len__(self):
        """Batches an epoch."""
        return len(self.batches)

    def on_epoch_begin(self):
        """Makes a new order and new masks, if the last ones were used up."""
        self.batches.on_epoch_begin()
        self._prepare()

    def _prepare(self):
        """Masks the texts for the epoch of `batches`."""
        if self.batches.epoch == self._epoch:
            return
        self._epoch = self.batches.epoch
        row_splits = self.batches.encoded.row_splits
        self._texts = MaskedTexts(self.mask(self._epoch), row_splits)
        most: dict[tuple[int, int], int] = {}
        for index in range(len(self)):
            texts, placed = self.batches.planned(index)
            shape = (placed.num_rows, placed.width)
            count = int(self._texts.counts(texts).sum())
            most[shape] = max(most.get(shape, 0), count)
        for shape, count in most.items():
            if count > self._sizes.get(shape, 0):
                # A little more than needed: another epoch may need it.
                roomy = -(-(count + count // 20) // _MULTIPLE) * _MULTIPLE
                self._sizes[shape] = max(roomy, 1)

    def _slots(self, index: int) -> tuple[Any, ...]:
        """Returns texts, index, positions, owner and the number of empty slots."""
        texts, placed = self.batches.planned(index)
        found, positions, owner = self._texts.find(texts, placed)
        size = max(len(found), 1)  # the mean of no loss would be no number
        if self.few_sizes:
            size = self._sizes[placed.num_rows, placed.width]
        return texts, found, positions, owner, size - len(found)

    def __getitem__(self, index):
        """Returns `(inputs,)`, `(inputs, y)` or `(inputs, y, sample_weight)`."""
        inputs = self.batches[index][0]
        texts, found, positions, owner, empty = self._slots(index)
        inputs.pop("first_positions", None)
        if self.arrays is not None:
            inputs = {key: array[texts] for key, array in self.arrays.items()}
        inputs = self._texts.hide(inputs, found, positions)
        inputs["mask_positions"] = np.pad(positions, (0, empty))
        if not self.with_labels:
            return (inputs,)
        labels = self._texts.masked.labels[found]
        labels = np.pad(labels, (0, empty), constant_values=NO_LABEL)
        nsp = rows_of(self.next_sentence, texts)
        targets = with_next_sentence(labels, nsp)
        if self.sample_weight is None:
            return inputs, targets
        weights = self.sample_weight[texts]
        of_slots = np.pad(weights[owner], (0, empty))
        of_nsp = None if nsp is None else weights
        return inputs, targets, with_next_sentence(of_slots, of_nsp)

    def restore(self, outputs):
        """Brings what `predict` returned into the order of the texts.

        Args:
            outputs: the logits of all slots, or `{"mlm": these, "nsp": (N, 2)}`.

        Returns:
            The same: the masked tokens of the first text, of the second, …
        """
        if isinstance(outputs, dict):
            return {
                "mlm": self.restore(outputs["mlm"]),
                "nsp": self.batches.restore(outputs["nsp"]),
            }
        where = []
        for index in range(len(self)):
            _, found, _, _, empty = self._slots(index)
            where.append(np.pad(found, (0, empty), constant_values=NO_LABEL))
        slots = np.concatenate(where)
        total = len(self._texts.masked.positions)
        restored = np.empty((total, *outputs.shape[1:]), outputs.dtype)
        restored[slots[slots >= 0]] = outputs[slots >= 0]
        return restored


def with_next_sentence(masked, next_sentence):
    """Returns targets or weights: of the masked tokens, or of both heads by name."""
    if next_sentence is None:
        return masked
    return {"mlm": masked, "nsp": next_sentence}
