"""Several texts in a row: which text lies where."""

import dataclasses

import numpy as np

from kbert.preprocessing.packing import EncodedTexts


@dataclasses.dataclass(frozen=True, eq=False)
class Placement:
    """Where M texts lie in rows of one width.

    Attributes:
        rows: the row of each text, integers `(M,)`.
        starts: the column of its [CLS], integers `(M,)`.
        numbers: how `padding_mask` marks it, unlike its neighbours in the row, from 1:
            integers `(M,)`.
        num_rows: rows in all.
        width: positions of a row.
    """

    rows: np.ndarray
    starts: np.ndarray
    numbers: np.ndarray
    num_rows: int
    width: int

    @property
    def first_positions(self) -> np.ndarray:
        """The index of each [CLS] in the rows laid end to end, integers `(M,)`."""
        return self.rows * self.width + self.starts

    def select(self, texts, rows, num_rows: int) -> "Placement":
        """Returns the part of the texts in some of the rows, which are counted anew.

        Args:
            texts: which of the M texts, integers `(K,)`.
            rows: their rows from now on, integers `(K,)`.
            num_rows: rows from now on.
        """
        return Placement(
            rows, self.starts[texts], self.numbers[texts], num_rows, self.width
        )


@dataclasses.dataclass(frozen=True, eq=False)
class PositionValues:
    """A number for every token of N texts, such as a target or a weight.

    Attributes:
        values: `(total,)`, one text after another.
        row_splits: int64 `(N + 1,)`; those of text i are `values[row_splits[i]:
            row_splits[i + 1]]`.
        fill: the number for positions that hold no token.
    """

    values: np.ndarray
    row_splits: np.ndarray
    fill: float

    def __len__(self) -> int:
        """N, the number of texts."""
        return len(self.row_splits) - 1

    def __getitem__(self, indices) -> "PositionValues":
        """Returns those of the texts at `indices`, integers `(M,)`, in that order."""
        lengths = np.diff(self.row_splits)[indices]
        row_splits = np.concatenate([[0], np.cumsum(lengths)])
        values = self.values[entries(self.row_splits, indices)]
        return PositionValues(values, row_splits, self.fill)


def entries(splits, indices) -> np.ndarray:
    """Returns where the entries of some texts lie, in arrays that hold all in turn.

    Args:
        splits: integers `(N + 1,)`, where each text's entries begin.
        indices: which of the texts, integers `(M,)`.

    Example:
    >>> entries(np.array([0, 2, 3, 6]), [2, 0]).tolist()
    [3, 4, 5, 0, 1]
    """
    indices = np.asarray(indices, dtype=np.int64)
    lengths = np.diff(splits)[indices]
    ends = np.cumsum(lengths)
    offsets = np.repeat(splits[indices] - (ends - lengths), lengths)
    return np.arange(len(offsets)) + offsets


def rows_of(values, indices):
    """Returns rows of an array, or of `PositionValues`; None of None."""
    return None if values is None else values[indices]


def one_a_row(count: int, width: int) -> Placement:
    """Lays every text at the start of a row of its own."""
    zeros = np.zeros(count, np.int64)
    return Placement(np.arange(count), zeros, zeros + 1, count, width)


def best_fit(lengths, width: int) -> Placement:
    """Packs texts into few rows: each, longest first, where it leaves least room.

    In linear time: rows are kept by their free positions, and which numbers of free
    positions occur are the bits of one integer.

    Args:
        lengths: tokens of every text, integers `(M,)`.
        width: positions of a row.

    Returns:
        A `Placement`. Texts in one row are numbered from its start.

    Raises:
        ValueError: if a text is longer than a row.

    Example:
    >>> best_fit([3, 5, 2], width=8).rows.tolist()
    [0, 0, 1]
    """
    lengths = np.asarray(lengths)
    check_width(lengths, width)
    order = (-lengths).argsort(kind="stable")
    with_space: list[list[int]] = [[] for _ in range(width + 1)]
    spaces = 0  # bit s is set where a row has s free positions
    held: list[int] = []  # texts in each row
    found = []
    for length in lengths[order].tolist():
        fitting = spaces >> length
        if fitting:
            space = length + (fitting & -fitting).bit_length() - 1
            row = with_space[space].pop()
            if not with_space[space]:
                spaces ^= 1 << space
        else:
            row, space = len(held), width
            held.append(0)
        held[row] += 1
        found.append((row, width - space, held[row]))
        space -= length
        with_space[space].append(row)
        spaces |= 1 << space
    placed = np.empty((3, len(order)), np.int64)
    placed[:, order] = np.array(found, np.int64).reshape(-1, 3).T
    return Placement(*placed, num_rows=len(held), width=width)


def lay(encoded: EncodedTexts, indices, placement: Placement, pad_id: int) -> dict:
    """Lays texts into rows.

    Args:
        encoded: the texts.
        indices: which of them, integers `(M,)`.
        placement: where each lies.
        pad_id: id that fills what no text takes.

    Returns:
        Dictionary of int32 arrays: `token_ids`, `segment_ids` and `padding_mask` of
        shape `(num_rows, width)`, and `first_positions` `(M,)`, the index of each
        text's [CLS] in the rows laid end to end.

    Raises:
        ValueError: if a text is longer than a row.
    """
    indices = np.asarray(indices, dtype=np.int64)
    text, position, tokens, at = _places(encoded.row_splits, indices, placement)
    size = placement.num_rows * placement.width
    flat = {
        "token_ids": np.full(size, pad_id, np.int32),
        "segment_ids": np.zeros(size, np.int32),
        "padding_mask": np.zeros(size, np.int32),
    }
    flat["token_ids"][at] = encoded.token_ids[tokens]
    flat["segment_ids"][at] = position >= encoded.second_starts[indices][text]
    flat["padding_mask"][at] = placement.numbers[text]
    shape = (placement.num_rows, placement.width)
    inputs = {key: values.reshape(shape) for key, values in flat.items()}
    return {**inputs, "first_positions": placement.first_positions.astype(np.int32)}


def lay_values(values, indices, placement: Placement) -> np.ndarray:
    """Lays what belongs to texts beside them.

    Args:
        values: `PositionValues`, or an array `(N, …)` with an entry a text.
        indices: which of the texts, integers `(M,)`.
        placement: where each lies.

    Returns:
        `(num_rows, width)` of `PositionValues`, `(M, …)` of an array.

    Raises:
        ValueError: if a text is longer than a row.
    """
    if not isinstance(values, PositionValues):
        return values[indices]
    _, _, tokens, at = _places(values.row_splits, np.asarray(indices), placement)
    flat = np.full(
        placement.num_rows * placement.width, values.fill, values.values.dtype
    )
    flat[at] = values.values[tokens]
    return flat.reshape(placement.num_rows, placement.width)


def collect(outputs, row_splits, planned) -> np.ndarray:
    """Brings what a model said of every position of rows to the tokens of the texts.

    Args:
        outputs: `(rows, width, …)`, the rows of one batch after those of another.
        row_splits: as in `EncodedTexts`.
        planned: the texts of each batch, integers `(M,)`, and their `Placement`.

    Returns:
        `(total, …)`, one text after another.
    """
    flat = outputs.reshape(-1, *outputs.shape[2:])
    collected = np.empty((row_splits[-1], *flat.shape[1:]), flat.dtype)
    begin = 0
    for indices, placement in planned:
        _, _, tokens, at = _places(row_splits, np.asarray(indices), placement)
        collected[tokens] = flat[begin + at]
        begin += placement.num_rows * placement.width
    return collected


def _places(row_splits, indices, placement):
    """Returns, for every token, its text, its position there, its index and its place.

    The index is that in the flat tokens, the place that in the rows laid end to end.
    """
    begins = row_splits[indices]
    lengths = row_splits[indices + 1] - begins
    check_width(lengths, placement.width)
    text = np.repeat(np.arange(len(indices)), lengths)
    position = np.arange(len(text)) - (np.cumsum(lengths) - lengths)[text]
    at = placement.first_positions[text] + position
    return text, position, begins[text] + position, at


def check_width(lengths, width) -> None:
    """Raises ValueError if a text is longer than a row."""
    if lengths.size and lengths.max() > width:
        raise ValueError(
            "A row must be as wide as its text. Received: a text of "
            f"{lengths.max()} tokens, width={width}."
        )
