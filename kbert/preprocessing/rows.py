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
    begins = encoded.row_splits[indices]
    lengths = encoded.row_splits[indices + 1] - begins
    check_width(lengths, placement.width)
    first_positions = placement.rows * placement.width + placement.starts
    # For every token: its text, and its position there.
    text = np.repeat(np.arange(len(indices)), lengths)
    position = np.arange(len(text)) - (np.cumsum(lengths) - lengths)[text]
    at = first_positions[text] + position
    size = placement.num_rows * placement.width
    flat = {
        "token_ids": np.full(size, pad_id, np.int32),
        "segment_ids": np.zeros(size, np.int32),
        "padding_mask": np.zeros(size, np.int32),
    }
    flat["token_ids"][at] = encoded.token_ids[begins[text] + position]
    flat["segment_ids"][at] = position >= encoded.second_starts[indices][text]
    flat["padding_mask"][at] = placement.numbers[text]
    shape = (placement.num_rows, placement.width)
    inputs = {key: values.reshape(shape) for key, values in flat.items()}
    return {**inputs, "first_positions": first_positions.astype(np.int32)}


def check_width(lengths, width) -> None:
    """Raises ValueError if a text is longer than a row."""
    if lengths.size and lengths.max() > width:
        raise ValueError(
            "A row must be as wide as its text. Received: a text of "
            f"{lengths.max()} tokens, width={width}."
        )
