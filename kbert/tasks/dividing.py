"""Batches of instances as replicas share them."""

import numpy as np

from kbert.preprocessing.masked_batches import NO_LABEL
from kbert.training.distribution import Division


def divided(batch, division: Division, few_sizes: bool) -> tuple:
    """Returns the part of a batch that this process feeds its replicas with.

    Instances stay in their order; every replica has as many. Slots of masked tokens are
    laid block by block, since a strategy cuts every array into equal parts: those of a
    block are the first of its rows, then empty ones. A loss that is the mean over the
    tokens of one block gets weights with which the mean over the blocks is that over
    all tokens.

    Args:
        batch: inputs, targets and weights: one instance a row, or texts.
        division: among whom.
        few_sizes: whether programs are compiled for every number of slots.

    Returns:
        The same, of the blocks that are this process's own.

    Raises:
        ValueError: if the rows cannot be divided evenly, hold several instances each,
            are texts to be divided among processes, or have no targets.
    """
    x, y, weights = batch
    if division.parts == 1:
        return batch
    count, width = x["token_ids"].shape
    division.check(count, "The instances of a batch")
    if "mask_positions" not in x:
        if division.processes > 1:
            raise ValueError(
                "Several processes divide instances of pre-training among them "
                "(`InstanceBatches`), and nothing else in this version. Received: "
                f"other batches, in {division.processes} processes."
            )
        return batch
    if x.get("first_positions") is not None:
        raise ValueError(
            "Replicas divide whole rows, with the instances in them in step: use "
            "InstanceBatches(…, rows='single'). Received: several instances a row, for "
            f"{division.parts} replicas."
        )
    if y is None:
        raise ValueError(
            "Replicas divide instances to learn from or to measure by. Received: "
            f"instances without targets, for {division.parts} replicas."
        )
    labels = y["mlm"] if isinstance(y, dict) else y
    rows = count // division.blocks
    slots = _Slots(x["mask_positions"], labels, weights, rows * width, division)
    own = _rows_of(division, rows)
    x = {key: value[own] for key, value in x.items() if key != "mask_positions"}
    size = slots.size(division, few_sizes)
    x["mask_positions"], labels, of_slots = slots.laid(division, size)
    if not isinstance(y, dict):
        return x, labels, of_slots
    if of_slots is not None:
        of_nsp = np.ones(count, np.float32) if weights is None else weights["nsp"]
        of_slots = {"mlm": of_slots, "nsp": of_nsp[own]}
    return x, {"mlm": labels, "nsp": y["nsp"][own]}, of_slots


class _Slots:
    """The masked tokens of a batch, sorted by the block that they lie in."""

    def __init__(self, positions, labels, weights, block_size, division):
        there = np.flatnonzero(labels >= 0)
        self.block_size = block_size
        self.positions, self.labels = positions[there], labels[there]
        self.weights = None
        if weights is not None:
            of_slots = weights["mlm"] if isinstance(weights, dict) else weights
            self.weights = of_slots[there]
        # In the order of rows already.
        ends = np.arange(division.blocks + 1) * block_size
        self.bounds = np.searchsorted(self.positions, ends)
        self.counts = np.diff(self.bounds)

    def size(self, division, few_sizes) -> int:
        """Returns the slots of a block, a multiple of the replicas that share it."""
        size = slots_for(int(self.counts.max()), few_sizes)
        sharing = division.parts // division.blocks
        return -(-size // sharing) * sharing

    def laid(self, division, size) -> tuple:
        """Returns positions, labels and weights of the process's own blocks."""
        found = [self._block(number, division, size) for number in division.own]
        positions, labels, weights = zip(*found, strict=True)
        needless = self.weights is None and division.joined
        return (
            np.concatenate(positions),
            np.concatenate(labels),
            None if needless else np.concatenate(weights),
        )

    def _block(self, number, division, size):
        part = slice(self.bounds[number], self.bounds[number + 1])
        empty = (0, size - int(self.counts[number]))
        begin = number * self.block_size
        # What is joined counts through the rows of all.
        positions = self.positions[part] - (0 if division.joined else begin)
        positions = np.pad(
            positions, empty, constant_values=begin if division.joined else 0
        )
        weights = np.ones(len(self.labels[part]), np.float32)
        if self.weights is not None:
            weights = self.weights[part].astype(np.float32)
        if not division.joined:
            mean = self.counts.sum() / division.blocks
            weights = weights * np.float32(self.counts[number] / mean)
        return (
            positions.astype(np.int32),
            np.pad(self.labels[part], empty, constant_values=NO_LABEL),
            np.pad(weights, empty),
        )


def _rows_of(division: Division, rows: int) -> slice:
    own = division.own
    return slice(own.start * rows, own.stop * rows)


def slots_for(count: int, few_sizes: bool) -> int:
    """Returns a number of slots: at least one, of a few by at most a quarter more.

    Args:
        count: masked tokens.
        few_sizes: whether programs are compiled for every number of slots.
    """
    if not few_sizes:
        return max(count, 1)  # the mean of no loss would be no number
    step = max(8, 1 << max(count.bit_length() - 3, 0))
    return max(-(-count // step), 1) * step
