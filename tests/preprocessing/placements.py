"""What must hold of every `Placement`, whatever made it."""

import numpy as np


def check_placement(placement, lengths):
    """Fail unless texts of these lengths lie in rows, apart and numbered in turn."""
    rows, starts, numbers = placement.rows, placement.starts, placement.numbers
    assert len(rows) == len(starts) == len(numbers) == len(lengths)
    taken = np.zeros((placement.num_rows, placement.width + 1), int)
    for row, start, length in zip(rows, starts, lengths, strict=True):
        assert 0 <= row < placement.num_rows
        assert 0 <= start <= start + length <= placement.width
        taken[row, start : start + length] += 1
    assert taken.max(initial=0) <= 1
    for row in range(placement.num_rows):
        inside = np.flatnonzero(rows == row)
        inside = inside[starts[inside].argsort()]
        assert numbers[inside].tolist() == list(range(1, len(inside) + 1))
        ends = np.cumsum(np.asarray(lengths)[inside])
        assert starts[inside].tolist() == [0, *ends][: len(inside)]
