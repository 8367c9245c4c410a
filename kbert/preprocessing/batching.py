"""Batches of texts of similar length, as a `PyDataset` for Keras."""

import random
from collections.abc import Sequence

import keras
import numpy as np

from kbert.preprocessing.packing import EncodedTexts

# Widths are multiples of this: what vector units and GPUs like.
_MULTIPLE = 8

# Texts are grouped by width within pools of so many batches, so that an epoch stays
# shuffled; small data has at least four pools.
_POOL = 50


def choose_widths(lengths, max_length: int, max_widths: int = 4) -> list[int]:
    """Chooses the few widths that pad these texts least.

    Every width is a shape that XLA compiles; every text is padded to the next width.

    Args:
        lengths: tokens of every text, integers `(N,)`.
        max_length: the largest width allowed, no multiple of 8 needed.
        max_widths: most widths.

    Returns:
        Increasing widths, multiples of 8 or `max_length`. The last holds every text.

    Raises:
        ValueError: if there is no text, or a text is longer than `max_length`.

    Example:
    >>> choose_widths([5, 6, 7, 30, 31, 100], max_length=128, max_widths=2)
    [32, 104]
    """
    lengths = np.asarray(lengths)
    if not lengths.size:
        raise ValueError("There must be at least one text. Received: none.")
    if lengths.max() > max_length:
        raise ValueError(
            "A text must not be longer than `max_length`. Received: a text of "
            f"{lengths.max()} tokens, max_length={max_length}."
        )
    rounded = -(-lengths // _MULTIPLE) * _MULTIPLE
    widths, counts = np.unique(np.minimum(rounded, max_length), return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    # cost[j]: positions that the texts of the j narrowest widths take, at best, with
    # as many chosen widths as rounds were run; back[k][j]: the texts before the last.
    cost = np.where(below == 0, 0, np.inf)
    back = []
    for _ in range(min(max_widths, len(widths))):
        steps = cost[:-1, None] + (below[None, 1:] - below[:-1, None]) * widths
        steps = np.where(np.tri(len(widths), dtype=bool).T, steps, np.inf)
        back.append(steps.argmin(axis=0))
        cost = np.concatenate([[np.inf], steps.min(axis=0)])
    chosen, end = [], len(widths)
    for previous in reversed(back):
        chosen.append(int(widths[end - 1]))
        end = previous[end - 1]
    return chosen[::-1]


def collate(encoded: EncodedTexts, indices, width: int, pad_id: int) -> dict:
    """Lays texts into rows, one a row.

    Args:
        encoded: the texts.
        indices: which of them, integers `(rows,)`.
        width: positions of a row.
        pad_id: id that fills a row.

    Returns:
        Dictionary of int32 arrays: `token_ids`, `segment_ids` and `padding_mask` of
        shape `(rows, width)`, and `first_positions` `(rows,)`, the index of each
        text's [CLS] in the flattened rows.

    Raises:
        ValueError: if a text is longer than `width`.
    """
    indices = np.asarray(indices, dtype=np.int64)
    starts = encoded.row_splits[indices][:, None]  # (rows, 1)
    lengths = encoded.row_splits[indices + 1][:, None] - starts
    if lengths.size and lengths.max() > width:
        raise ValueError(
            "A row must be as wide as its text. Received: a text of "
            f"{lengths.max()} tokens, width={width}."
        )
    positions = np.arange(width)  # (width,)
    inside = positions < lengths
    token_ids = np.full(inside.shape, pad_id, np.int32)
    token_ids[inside] = encoded.token_ids[(starts + positions)[inside]]
    is_second = inside & (positions >= encoded.second_starts[indices][:, None])
    return {
        "token_ids": token_ids,
        "segment_ids": is_second.astype(np.int32),
        "padding_mask": inside.astype(np.int32),
        "first_positions": np.arange(len(indices), dtype=np.int32) * np.int32(width),
    }


class TextBatches(keras.utils.PyDataset):
    """Batches of encoded texts of similar length.

    Pass it to Keras with `shuffle=False`: the order below is seeded, Keras's is not.

    Args:
        encoded: N texts.
        y: targets, an array `(N, …)` or a structure of such; None for none.
        sample_weight: array `(N,)`, or None.
        batch_size: texts a batch; the one batch with what is left over has fewer.
        shuffle: True for a new order each epoch, which depends on `seed` and the
            number of the epoch alone. False for the longest texts first.
        seed: integer; None to draw one from Python's `random`, which
            `keras.utils.set_random_seed` seeds.
        widths: allowed widths of a batch; None to choose a few.
        pad_id: id that fills a row.
        keep_shape: fill the last batch up to `batch_size` by repeating its first
            text, so that no new shape appears (`predict`).
        **kwargs: `workers`, `use_multiprocessing`, `max_queue_size` of `PyDataset`.

    Attributes:
        order: the text that each row of this epoch's batches, one after another,
            holds: `(N,)`, or `(rows,)` with `keep_shape`.
        epoch: number of the epoch; set it to continue a run.
        widths: the widths in use, increasing.

    Raises:
        ValueError: if there is no text, targets or weights are not N, a text is wider
            than the widths, or targets come with `keep_shape`.
    """

    def __init__(
        self,
        encoded: EncodedTexts,
        y=None,
        sample_weight=None,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        seed: int | None = None,
        widths: Sequence[int] | None = None,
        pad_id: int = 0,
        keep_shape: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if widths is None:
            widths = choose_widths(encoded.lengths, int(encoded.lengths.max(initial=0)))
        self.widths = sorted(widths)
        _check(encoded, y, sample_weight, batch_size, self.widths, keep_shape)
        self.encoded = encoded
        self.y = None if y is None else keras.tree.map_structure(np.asarray, y)
        self.sample_weight = (
            None if sample_weight is None else np.asarray(sample_weight)
        )
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = random.randrange(2**31) if seed is None else seed
        self.pad_id = pad_id
        self.keep_shape = keep_shape
        # For every text the number of its width, (N,).
        self._width_of = np.searchsorted(self.widths, encoded.lengths)
        self._started = self._finished = False
        self.epoch = 0

    def __len__(self):
        """Batches an epoch."""
        return -(-len(self.encoded) // self.batch_size)

    @property
    def epoch(self) -> int:
        """Number of the epoch whose order is in use, from 0."""
        return self._epoch

    @epoch.setter
    def epoch(self, number: int):
        self._epoch = number
        self._finished = False
        self._batches = self._plan(np.random.default_rng([self.seed, number]))

    @property
    def order(self) -> np.ndarray:
        """The text in every row of the batches, one after another."""
        return np.concatenate(self._batches)

    def restore(self, rows: np.ndarray) -> np.ndarray:
        """Brings what `predict` returned, `(rows, …)`, into the order of the texts.

        Args:
            rows: one entry for every entry of `order`.

        Returns:
            Array `(N, …)`.
        """
        restored = np.empty((len(self.encoded), *rows.shape[1:]), rows.dtype)
        restored[self.order] = rows  # a repeated text bears its own result again
        return restored

    def on_epoch_begin(self):
        """Makes a new order, if the last one was used up.

        Keras also begins epochs to look at one batch, on some backends: that must not
        change what the seed promises.
        """
        if self.shuffle and self._finished:
            self.epoch += 1
        self._started = True

    def __getitem__(self, index):
        """Returns `(inputs,)`, `(inputs, y)` or `(inputs, y, sample_weight)`."""
        rows = self._batches[index]
        if self._started and index == len(self) - 1:
            self._finished = True
        width = self.widths[self._width_of[rows].max()]
        batch: list = [collate(self.encoded, rows, width, self.pad_id)]
        if self.y is not None:
            batch.append(keras.tree.map_structure(lambda array: array[rows], self.y))
        if self.sample_weight is not None:
            batch.append(self.sample_weight[rows])
        return tuple(batch)

    def _plan(self, rng) -> list[np.ndarray]:
        """Returns the texts of every batch."""
        size, count = self.batch_size, len(self.encoded)
        if self.shuffle:
            texts = rng.permutation(count)
            pool = size * min(_POOL, max(1, count // (4 * size)))
            full = count - count % size
            for at in range(0, full, pool):
                part = texts[at : min(at + pool, full)]
                part[:] = part[self._width_of[part].argsort(kind="stable")]
        else:
            texts = (-self.encoded.lengths).argsort(kind="stable")
        batches = [texts[at : at + size] for at in range(0, count, size)]
        if self.keep_shape:
            missing = size - len(batches[-1])
            batches[-1] = np.pad(batches[-1], (missing, 0), mode="edge")
        if self.shuffle:
            full = count // size
            batches = [batches[i] for i in rng.permutation(full)] + batches[full:]
        return self._with_unlike_beginning(batches)

    def _with_unlike_beginning(self, batches):
        """Moves a batch of another width to the second place, where needed.

        From the first two batches Keras concludes on TensorFlow which sizes may vary.
        """
        widths = [self._width_of[rows].max() for rows in batches]
        other = next((i for i, width in enumerate(widths) if width != widths[0]), 1)
        if other > 1:
            batches.insert(1, batches.pop(other))
        return batches


def _check(encoded, y, sample_weight, batch_size, widths, keep_shape):
    if not len(encoded):
        raise ValueError("There must be at least one text. Received: none.")
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be positive. Received: {batch_size}.")
    if encoded.lengths.max() > widths[-1]:
        raise ValueError(
            "The largest width must hold the longest text. Received: a text of "
            f"{encoded.lengths.max()} tokens, widths={widths}."
        )
    if keep_shape and (y is not None or sample_weight is not None):
        raise ValueError(
            "`keep_shape` repeats texts, which would count twice with targets. "
            "Received: keep_shape=True and targets or weights."
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
