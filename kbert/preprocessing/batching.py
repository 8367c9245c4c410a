"""Batches of texts, as a `PyDataset` for Keras."""

import random
from collections.abc import Callable

import keras
import numpy as np

from kbert.preprocessing.layouts import (
    PackedRows,
    Planned,
    SingleRows,
    check_batch_size,
    check_order,
    choose_widths,
)
from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.rows import PositionValues, collect, lay, lay_values


class TextBatches(keras.utils.PyDataset):
    """Batches of encoded texts, an epoch planned ahead.

    Pass it to Keras with `shuffle=False`: the order below is seeded, Keras's is not.

    Args:
        encoded: N texts.
        y: targets, an array `(N, …)`, `PositionValues`, or a structure of such; None
            for none.
        sample_weight: array `(N,)`, `PositionValues`, or None.
        batch_size: texts a batch; the one batch with what is left over has fewer.
        order: "shuffled" for a new order each epoch, which depends on `seed` and the
            number of the epoch alone; "given"; "free" for what costs least; "alike"
            for that in batches of one size and, where possible, one shape, filled up
            by repeating texts (`predict`).
        layout: `SingleRows` or `PackedRows`; None for one text a row, in a few widths.
        seed: integer; None to draw one from Python's `random`, which
            `keras.utils.set_random_seed` seeds.
        pad_id: id that fills a row.
        lay: function that makes the inputs of a batch, as `rows.lay`.
        **kwargs: `workers`, `use_multiprocessing`, `max_queue_size` of `PyDataset`.

    Attributes:
        order_of_texts: this epoch's texts, those of one batch after those of another:
            `(N,)`, or more for "alike".
        epoch: number of the epoch; set it to continue a run.

    Raises:
        ValueError: if there is no text, targets or weights are not N, a text is wider
            than the widths, or targets come with the order "alike".
    """

    def __init__(
        self,
        encoded: EncodedTexts,
        y=None,
        sample_weight=None,
        *,
        batch_size: int = 32,
        order: str = "free",
        layout: SingleRows | PackedRows | None = None,
        seed: int | None = None,
        pad_id: int = 0,
        lay: Callable = lay,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check(encoded, y, sample_weight, batch_size, order)
        if layout is None:
            longest = int(encoded.lengths.max())
            layout = SingleRows(choose_widths(encoded.lengths, longest))
        self.encoded = encoded
        self.y = None if y is None else keras.tree.map_structure(_values, y)
        self.sample_weight = None if sample_weight is None else _values(sample_weight)
        self.batch_size = batch_size
        self.order = order
        self.layout = layout
        self.seed = random.randrange(2**31) if seed is None else seed
        self.pad_id = pad_id
        self._lay = lay
        self._started = self._finished = False
        self.epoch = 0

    def __len__(self):
        """Batches an epoch."""
        return len(self._batches)

    @property
    def epoch(self) -> int:
        """Number of the epoch whose order is in use, from 0."""
        return self._epoch

    @epoch.setter
    def epoch(self, number: int):
        self._epoch = number
        self._finished = False
        rng = np.random.default_rng([self.seed, number])
        self._batches: list[Planned] = self.layout.plan(
            self.encoded.lengths, self.batch_size, self.order, rng
        )

    @property
    def order_of_texts(self) -> np.ndarray:
        """This epoch's texts, those of one batch after those of another."""
        return np.concatenate([texts for texts, _ in self._batches])

    @property
    def share_used(self) -> float:
        """Share of the rows' positions that hold a token, in this epoch."""
        placements = [placement for _, placement in self._batches]
        positions = sum(placed.num_rows * placed.width for placed in placements)
        return self.encoded.num_tokens / positions

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The `(rows, width)` that batches of this epoch have."""
        found = {(placed.num_rows, placed.width) for _, placed in self._batches}
        return sorted(found)

    def planned(self, index: int) -> Planned:
        """Returns which texts batch `index` of this epoch has, and where they lie."""
        return self._batches[index]

    def restore(self, outputs: np.ndarray) -> np.ndarray:
        """Brings what `predict` returned into the order of the texts.

        Args:
            outputs: one entry for every entry of `order_of_texts`.

        Returns:
            Array `(N, …)`.
        """
        restored = np.empty((len(self.encoded), *outputs.shape[1:]), outputs.dtype)
        restored[self.order_of_texts] = outputs  # a repeated text has one result
        return restored

    def collect(self, outputs: np.ndarray) -> np.ndarray:
        """Brings what `predict` returned for every position to the tokens.

        Args:
            outputs: `(rows, width, …)`, in the order of this epoch.

        Returns:
            Array `(total, …)`, one text after another.
        """
        return collect(outputs, self.encoded.row_splits, self._batches)

    def on_epoch_begin(self):
        """Makes a new order, if the last one was used up.

        Keras also begins epochs to look at one batch, on some backends: that must not
        change what the seed promises.
        """
        if self.order == "shuffled" and self._finished:
            self.epoch += 1
        self._started = True

    def __getitem__(self, index):
        """Returns `(inputs,)`, `(inputs, y)` or `(inputs, y, sample_weight)`.

        `inputs` has `first_positions` where a row may hold several texts.
        """
        texts, placement = self._batches[index]
        if self._started and index == len(self) - 1:
            self._finished = True
        inputs = self._lay(self.encoded, texts, placement, self.pad_id)
        if isinstance(self.layout, SingleRows):
            # The first of every row. A distribution strategy would give the second
            # half of them to the replica that has the second half of the rows.
            del inputs["first_positions"]

        def laid(values):
            return lay_values(values, texts, placement)

        batch: list = [inputs]
        if self.y is not None:
            batch.append(keras.tree.map_structure(laid, self.y))
        if self.sample_weight is not None:
            batch.append(laid(self.sample_weight))
        return tuple(batch)


def _values(values):
    return values if isinstance(values, PositionValues) else np.asarray(values)


def _check(encoded, y, sample_weight, batch_size, order):
    check_order(order)
    if not len(encoded):
        raise ValueError("There must be at least one text. Received: none.")
    check_batch_size(batch_size)
    if order == "alike" and (y is not None or sample_weight is not None):
        raise ValueError(
            'The order "alike" repeats texts, which would count twice with targets. '
            "Received: order='alike' and targets or weights."
        )
    if y is None and sample_weight is not None:
        raise ValueError("Weights need targets. Received: sample_weight without y.")
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        for array in keras.tree.flatten(values):
            if array is not None and len(array) != len(encoded):
                raise ValueError(
                    f"`{name}` must have one entry a text. Received: {len(array)} "
                    f"entries for {len(encoded)} texts."
                )
