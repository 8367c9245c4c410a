"""Which texts share a batch, and where each lies: one text a row, or several."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbert.preprocessing.rows import Placement, best_fit, check_width, one_a_row

ROWS = ("auto", "packed", "single")

# How texts come to the batches of an epoch: in a new order each time, in their own,
# in the one that costs least, or in that and in batches of one size.
ORDERS = ("shuffled", "given", "free", "alike")

# Widths are multiples of this: what vector units and GPUs like.
_MULTIPLE = 8

# One text a row: texts are grouped by width within pools of so many batches, so that
# an epoch of much data stays shuffled.
_POOL = 50

# Several texts a row: widths tried beside that of the longest text. Few, so that
# calls share compiled programs.
_WIDTHS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)

# Texts looked at to choose a width.
_SAMPLE = 4096

# Attention costs a position as much as all dense layers do where a row is so many
# times as wide as the model. By the number of multiplications that would be 6, but they
# are many small ones with a softmax between: measured with MiniLM on two cores, 0.8 on
# JAX, 1 on TensorFlow and 2 on torch forward, 2, 1.3 and 1 in training.
_ATTENTION = 1.0

# Batches looked at to choose how many rows they may have.
_BATCHES = 256


class Planned(NamedTuple):
    """A batch to be: its texts, integers `(M,)`, and where they lie."""

    texts: np.ndarray
    placement: Placement


class SingleRows:
    """One text a row: batches of similar length, as wide as their longest text needs.

    Args:
        widths: the allowed widths of a batch.
        shape_price: see `PackedRows`.
    """

    def __init__(self, widths: Sequence[int], shape_price: float = 0.0):
        self.widths = sorted(widths)
        self.shape_price = shape_price

    def plan(self, lengths, batch_size, order, rng) -> list[Planned]:
        """Plans the batches of an epoch.

        Args:
            lengths: tokens of every text, integers `(N,)`.
            batch_size: texts a batch.
            order: one of `ORDERS`.
            rng: numpy's generator, for the order "shuffled".

        Returns:
            The batches, in turn.
        """
        check_width(lengths, self.widths[-1])
        width_of = np.searchsorted(self.widths, lengths)  # (N,), of `widths`
        if order == "shuffled":
            batches = self._shuffled(width_of, batch_size, rng)
        elif order == "given":
            batches = _cut(np.arange(len(lengths)), batch_size)
        else:
            batches = _cut(_longest_first(lengths), batch_size)
        if order == "alike":
            size = batch_size
            if len(batches) == 1:
                size = min(size, _rounded(len(batches[0]), self.shape_price))
            batches[-1] = np.pad(batches[-1], (size - len(batches[-1]), 0), "edge")
        needed = [width_of[texts].max() for texts in batches]
        if order == "given":
            _make_beginning_unlike(needed, len(self.widths) - 1)
        planned = [
            Planned(texts, one_a_row(len(texts), self.widths[number]))
            for texts, number in zip(batches, needed, strict=True)
        ]
        return planned if order == "given" else _with_unlike_beginning(planned)

    def _shuffled(self, width_of, batch_size, rng):
        count = len(width_of)
        texts = rng.permutation(count)
        pool, full = batch_size * _POOL, count // batch_size
        for at in range(0, full * batch_size, pool):
            part = texts[at : min(at + pool, full * batch_size)]
            part[:] = part[width_of[part].argsort(kind="stable")]
        batches = _cut(texts, batch_size)
        return [batches[i] for i in rng.permutation(full)] + batches[full:]


class PackedRows:
    """Several texts a row: as few rows of one width as the texts of a batch need.

    Args:
        width: positions of a row.
        shape_price: what a number of rows costs in positions of an epoch, since a
            program is compiled for it; 0 where nothing is compiled.
        narrow: in the order "alike", the width of the rows without a text that is
            longer; they are batches of their own. None for all rows in one width.
    """

    def __init__(self, width: int, shape_price: float = 0.0, narrow: int | None = None):
        self.width = width
        self.shape_price = shape_price
        self.narrow = narrow
        self._row_counts: list[int] = []

    def plan(self, lengths, batch_size, order, rng) -> list[Planned]:
        """Plans the batches of an epoch; see `SingleRows.plan`."""
        if order == "alike":
            return self._alike(lengths, batch_size)
        if order == "shuffled":
            texts = rng.permutation(len(lengths))
        elif order == "given":
            texts = np.arange(len(lengths))
        else:
            texts = _evened(_longest_first(lengths), batch_size)
        planned = [
            Planned(some, best_fit(lengths[some], self.width))
            for some in _cut(texts, batch_size)
        ]
        if not self.shape_price:
            return planned
        if not self._row_counts:
            needed = [placement.num_rows for _, placement in planned]
            if order == "shuffled":
                needed += self._needed_later(lengths, batch_size)
            price = self.shape_price / self.width * len(needed) / len(planned)
            self._row_counts = choose_few(needed, price=price)
        return [Planned(some, self._filled(placed)) for some, placed in planned]

    def _needed_later(self, lengths, batch_size) -> list[int]:
        """Returns the rows that shuffled batches of epochs to come may need."""
        rng, needed = np.random.default_rng(0), []
        while len(needed) < _BATCHES:
            for batch in _cut(rng.permutation(lengths), batch_size):
                needed.append(best_fit(batch, self.width).num_rows)
        return needed

    def _alike(self, lengths, batch_size):
        """Packs all texts at once, into batches of one shape, or of one for each width.

        Rows may stay empty. Where a batch has fewer texts than another, some are
        listed again, in their own place.
        """
        tokens = batch_size * lengths.mean()  # of a batch
        everything = best_fit(lengths, self.width)
        if self.narrow is None:
            return self._one_shape(np.arange(len(lengths)), everything, tokens)
        # Long texts are placed first: theirs are the first rows.
        last_wide = everything.rows[lengths > self.narrow].max(initial=-1)
        is_wide = everything.rows <= last_wide
        planned = []
        for chosen, width in ((is_wide, self.width), (~is_wide, self.narrow)):
            texts = chosen.nonzero()[0]
            if len(texts):
                placement = best_fit(lengths[texts], width)
                planned += self._one_shape(texts, placement, tokens)
        return _with_unlike_beginning(planned)

    def _one_shape(self, texts, everything, tokens):
        """Deals the rows of a `Placement` of texts out to batches of about so much."""
        num_rows = max(1, round(tokens / everything.width))
        if everything.num_rows < num_rows:
            num_rows = min(num_rows, _rounded(everything.num_rows, self.shape_price))
        count = -(-everything.num_rows // num_rows)
        if not self.shape_price:
            num_rows = -(-everything.num_rows // count)
        # Rows are dealt out in turn: the first ones hold few, long texts.
        batch_of, row_of = everything.rows % count, everything.rows // count
        parts = np.split(
            batch_of.argsort(kind="stable"), np.cumsum(np.bincount(batch_of))[:-1]
        )
        most = _rounded(max(map(len, parts)), self.shape_price)
        parts = [np.pad(part, (0, most - len(part)), mode="wrap") for part in parts]
        return [
            Planned(texts[part], everything.select(part, row_of[part], num_rows))
            for part in parts
        ]

    def _filled(self, placement: Placement) -> Placement:
        """Adds empty rows up to the next of the chosen numbers."""
        enough = [n for n in self._row_counts if n >= placement.num_rows]
        num_rows = min(enough, default=placement.num_rows)
        return dataclasses.replace(placement, num_rows=num_rows)


def choose_layout(
    lengths,
    batch_size: int,
    order: str,
    *,
    rows: str,
    max_width: int,
    hidden_dim: int,
    shape_price: float = 0.0,
) -> SingleRows | PackedRows:
    """Chooses how to lay texts: one a row, or several, and how wide.

    What is weighed is positions: those that rows would take, those that attention
    over wide rows costs, and the price of every shape.

    Args:
        lengths: tokens of every text, integers `(N,)`.
        batch_size: texts a batch.
        order: one of `ORDERS`.
        rows: "packed" or "single", or "auto" for what costs less.
        max_width: the model's positions, the largest width allowed.
        hidden_dim: H of the model.
        shape_price: positions of an epoch that compiling for one shape costs.

    Returns:
        `SingleRows` or `PackedRows`.

    Raises:
        ValueError: if there is no text, one is longer than `max_width`, or
            `batch_size` is not positive.
    """
    check_rows(rows)
    check_batch_size(batch_size)
    lengths = np.asarray(lengths)
    widths = choose_widths(lengths, max_width, price=shape_price)
    full = widths[-1]
    if not shape_price and order != "alike":
        widths = np.unique(lengths).tolist()  # a width more costs nothing
    single = SingleRows(widths, shape_price)
    if rows == "single":
        return single
    sample = lengths[:: -(-len(lengths) // _SAMPLE)]

    def cost(layout):
        planned = layout.plan(sample, batch_size, order, np.random.default_rng(0))
        positions = 0.0
        for _, placement in planned:
            attention = placement.width / (_ATTENTION * hidden_dim)
            positions += placement.num_rows * placement.width * (1 + attention)
        shapes = {(placement.num_rows, placement.width) for _, placement in planned}
        return positions * len(lengths) / len(sample) + shape_price * len(shapes)

    tried = {full, *(w for w in _WIDTHS if full < w <= max_width)}
    best = min((PackedRows(width, shape_price) for width in sorted(tried)), key=cost)
    if order == "alike":
        narrower = (width for width in _WIDTHS if width < best.width)
        in_two = (PackedRows(best.width, shape_price, width) for width in narrower)
        best = min((best, *in_two), key=cost)
    if rows == "auto" and cost(single) <= cost(best):
        return single
    return PackedRows(best.width, shape_price, best.narrow)


def check_order(order) -> None:
    """Raises ValueError unless `order` is a known order of an epoch."""
    if order not in ORDERS:
        raise ValueError(f"`order` must be one of {ORDERS}. Received: {order!r}.")


def check_rows(rows) -> None:
    """Raises ValueError unless `rows` is a known way to lay texts."""
    if rows not in ROWS:
        raise ValueError(f"`rows` must be one of {ROWS}. Received: {rows!r}.")


def check_batch_size(batch_size) -> None:
    """Raises ValueError unless a batch holds texts."""
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be positive. Received: {batch_size}.")


def choose_widths(
    lengths, max_width: int, most: int = 4, price: float = 0.0
) -> list[int]:
    """Chooses the few widths that pad these texts least, one text a row.

    Args:
        lengths: tokens of every text, integers `(N,)`.
        max_width: the largest width allowed, no multiple of 8 needed.
        most: most widths.
        price: positions that each width costs, since programs are compiled for it.

    Returns:
        Increasing widths, multiples of 8 or `max_width`. The last holds every text.

    Raises:
        ValueError: if there is no text, or a text is longer than `max_width`.

    Example:
    >>> choose_widths([5, 6, 7, 30, 31, 100], max_width=128, most=2)
    [32, 104]
    """
    lengths = np.asarray(lengths)
    if not lengths.size:
        raise ValueError("There must be at least one text. Received: none.")
    if lengths.max() > max_width:
        raise ValueError(
            "A text must not be longer than `max_width`. Received: a text of "
            f"{lengths.max()} tokens, max_width={max_width}."
        )
    rounded = -(-lengths // _MULTIPLE) * _MULTIPLE
    return choose_few(np.minimum(rounded, max_width), most, price)


def choose_few(numbers, most: int = 3, price: float = 0.0) -> list[int]:
    """Chooses the few numbers to which rounding these up adds least.

    Args:
        numbers: positive integers, at least one.
        most: most numbers to choose.
        price: what choosing one costs.

    Returns:
        Increasing numbers; the last is the largest given.

    Example:
    >>> choose_few([3, 3, 4, 9], most=2)
    [4, 9]
    """
    values, counts = np.unique(numbers, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    # cost[j]: what the j smallest values become in sum, at best, with as many chosen
    # as rounds were run; back[k][j]: the values before the last chosen.
    cost = np.where(below == 0, 0, np.inf)
    back, totals = [], []
    for _ in range(min(most, len(values))):
        steps = cost[:-1, None] + (below[None, 1:] - below[:-1, None]) * values
        steps = np.where(np.tri(len(values), dtype=bool).T, steps, np.inf)
        back.append(steps.argmin(axis=0))
        cost = np.concatenate([[np.inf], steps.min(axis=0)])
        totals.append(cost[-1] + price * len(back))
    chosen, end = [], len(values)
    for previous in reversed(back[: int(np.argmin(totals)) + 1]):
        chosen.append(int(values[end - 1]))
        end = previous[end - 1]
    return chosen[::-1]


def _rounded(count: int, shape_price) -> int:
    """Rounds up to a power of two where programs are compiled for a shape."""
    return 1 << (count - 1).bit_length() if shape_price else count


def _cut(texts, batch_size) -> list[np.ndarray]:
    return [texts[at : at + batch_size] for at in range(0, len(texts), batch_size)]


def _longest_first(lengths):
    return (-lengths).argsort(kind="stable")


def _evened(texts, batch_size):
    """Deals sorted texts out to batches in turn, so that all hold about as much."""
    full = len(texts) // batch_size
    dealt = texts[: full * batch_size].reshape(batch_size, full).T.reshape(-1)
    return np.concatenate([dealt, texts[full * batch_size :]])


def _make_beginning_unlike(needed: list[int], largest: int) -> None:
    """Widens the second batch where the order must stay, or else all; see below.

    Args:
        needed: the number of the width of each batch, changed in place.
        largest: number of the largest width.
    """
    if len(set(needed[:2])) > 1 or len(set(needed)) == 1:
        return
    if needed[1] < largest:
        needed[1] += 1
    else:
        needed[:] = [largest] * len(needed)


def _with_unlike_beginning(planned: list[Planned]) -> list[Planned]:
    """Moves a batch of another width to the second place, where needed.

    From the first two batches Keras concludes on TensorFlow which sizes may vary.
    """
    widths = [placement.width for _, placement in planned]
    other = next((i for i, width in enumerate(widths) if width != widths[0]), 1)
    if other > 1:
        planned.insert(1, planned.pop(other))
    return planned
