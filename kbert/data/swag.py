"""Files of SWAG (Zellers et al. 2018), in both their layouts, to prompts and endings.

Those that are shuffled (`train.csv`, `val.csv`, `test.csv`) have four endings and, but
for the test set, the number of the right one. The full ones (`train_full.csv`,
`val_full.csv`) have the right ending and three or four wrong ones. Cells are quoted, as
in every CSV file. https://github.com/rowanz/swagaf/tree/master/data
"""

import dataclasses
import os
import pathlib

import numpy as np

from kbert.data.rows import read_text, split_cells
from kbert.data.tables import TableReport

NUM_CHOICES = 4
_FIRST, _SECOND = "sent1", "sent2"
_ENDINGS = tuple(f"ending{number}" for number in range(NUM_CHOICES))
_GOLD = "gold-ending"
# A fifth, "distractor-3", is in some rows alone: the task has four endings.
_DISTRACTORS = tuple(f"distractor-{number}" for number in range(NUM_CHOICES - 1))
_LABEL = "label"


@dataclasses.dataclass(frozen=True)
class Swag:
    """The situations of a file.

    Args:
        prompts: N first sentences.
        choices: for each four continuations: the beginning of the second sentence with
            one of its endings.
        labels: N numbers of the right ones, from 0; None where the file hides them.
        report: what was read and what was skipped.
    """

    prompts: list[str]
    choices: list[list[str]]
    labels: list[int] | None
    report: TableReport


def read_swag(path: str | os.PathLike, *, seed: int = 0) -> Swag:
    r"""Reads a CSV file of SWAG; its header says which layout it has.

    Args:
        path: the file.
        seed: of the order of the endings in a full file, whose right one stands first.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8, lacks a column, or has no row that can be read.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "val.csv"
    >>> _ = path.write_text("sent1,sent2,ending0,ending1,ending2,ending3,label\n"
    ...     '"A man, old, sits.",He,stands.,sings.,falls.,"runs, fast.",3\n')
    >>> swag = read_swag(path)
    >>> swag.prompts[0], swag.choices[0][3], swag.labels
    ('A man, old, sits.', 'He runs, fast.', [3])
    >>> folder.cleanup()
    """
    path = pathlib.Path(path)
    content, encoding = read_text(path, may_choose=False)
    numbered = list(enumerate(split_cells(path, content, ","), start=1))
    rows = [(number, cells) for number, cells in numbered if cells]
    header = rows.pop(0)[1]
    full = _GOLD in header
    endings = (_GOLD, *_DISTRACTORS) if full else _ENDINGS
    hidden = not full and _LABEL not in header
    columns = [_FIRST, _SECOND, *endings, *[_LABEL] * (not full and not hidden)]
    missing = [name for name in columns if header.count(name) != 1]
    if missing:
        raise ValueError(
            "A file of SWAG must have the columns sent1, sent2, and ending0 to ending3 "
            f"or gold-ending and distractor-0 to distractor-2. Received: {path}, whose "
            f"header is {str(header)[:300]}."
        )
    kept, skipped = _select(rows, header, columns, full or hidden)
    if not kept or (skipped and hidden):
        raise ValueError(
            "The rows of a file of SWAG must be there, and those of a test set whole: "
            f"each is to be answered. Received: {path} with {len(rows):,} rows; "
            f"{', '.join(skipped) or 'nothing more'}."
        )
    prompts = [cells[_FIRST] for cells in kept]
    choices = [
        [f"{cells[_SECOND]} {cells[e]}".strip() for e in endings] for cells in kept
    ]
    labels = None if hidden or full else [int(cells[_LABEL]) for cells in kept]
    if full:
        choices, labels = _shuffled(choices, seed)
    report = TableReport(str(path), encoding, len(rows), len(kept), skipped, [])
    return Swag(prompts, choices, labels, report)


def _select(rows, header, columns, unlabelled):
    """Returns the cells of the rows that can be read, and reason -> the others."""
    places = {name: header.index(name) for name in columns}
    kept: list[dict[str, str]] = []
    skipped: dict[str, list[int]] = {}
    allowed = [str(number) for number in range(NUM_CHOICES)]
    for number, row in rows:
        reason = None
        if len(row) != len(header):
            reason = f"the row has not {len(header)} cells"
        else:
            cells = {name: row[place] for name, place in places.items()}
            empty = [c for c in columns[2:] if not cells[c].strip()]
            if empty or not cells[_FIRST].strip():
                reason = f"the cell {(empty or [_FIRST])[0]!r} is empty"
            elif not unlabelled and cells[_LABEL].strip() not in allowed:
                reason = f"the label is {cells[_LABEL]!r}"
        if reason is None:
            kept.append(cells)
        else:
            skipped.setdefault(reason, []).append(number)
    return kept, skipped


def _shuffled(choices, seed):
    """Returns choices in a random order each, and where the first ones went.

    A model that cannot tell them apart would else name the first, and be right.
    """
    random = np.random.default_rng(seed)
    orders = [random.permutation(NUM_CHOICES) for _ in choices]
    mixed = [
        [endings[place] for place in order]
        for endings, order in zip(choices, orders, strict=True)
    ]
    return mixed, [int(np.flatnonzero(order == 0)[0]) for order in orders]
