"""Instances from a folder as batches, whose order depends on seed and step alone."""

import dataclasses
import functools
import json
import math
import os
from pathlib import Path

import keras
import numpy as np

from kbert.preprocessing.masked_batches import NO_LABEL
from kbert.preprocessing.masking import TokenMasker
from kbert.preprocessing.packing import EncodedTexts
from kbert.preprocessing.rows import best_fit, lay, one_a_row
from kbert.pretraining import storage
from kbert.pretraining.assembling import Instances, mask
from kbert.pretraining.creation import MANIFEST
from kbert.pretraining.permutation import Permutation
from kbert.pretraining.steps import Plan
from kbert.tokenization.wordpiece import BertTokenizer

# Of shards: files mapped at a time, and pieces of them whose arrays are known.
_OPEN_FILES = 1 << 12
_OPEN_BLOCKS = 1 << 14
ROWS = ("single", "packed")
# Numbers of rows, and of slots an instance, are rounded up to a multiple of this share
# of a batch, since programs are compiled for them.
_SHARE = 16
# Beside the seed: orders and masks are drawn from other numbers.
_ORDER, _MASKS = 0, 1


class InstanceBatches(keras.utils.PyDataset):
    """Batches of instances of pre-training, for `fit` of the tasks that learn them.

    All instances come once, in a random order, then again in another one, and so on
    without an end: batch n is the same whoever asks for it, so that a run goes on at
    any step. Files are mapped, and only what a batch needs is read. As there is no last
    batch, `fit` is to be told `steps_per_epoch`, and `evaluate` `steps`.

    A batch is `(x, y)`, ready for `BertPretrainer`: `x` has `token_ids`, `segment_ids`,
    `padding_mask` and `mask_positions`, `y` is `{"mlm": ids, "nsp": labels}`. Instances
    without a second segment are for `BertMaskedLM`: `y` is the ids alone.

    With `rows="packed"` short instances share a row, and less padding is computed; the
    losses and gradients of a batch are the same.

    Args:
        folder: what `create_instances` wrote.
        batch_size: instances a batch, all batches alike.
        seed: of the order, and of masks that were not decided before.
        first_step: how many batches were used before.
        rows: "single" for one instance a row, or "packed" for several where they fit.
        **kwargs: `workers`, `use_multiprocessing`, `max_queue_size` of `PyDataset`.

    Attributes:
        num_instances: in the folder.
        tokenizer: the `BertTokenizer` that the ids are of.
        settings: the `InstanceSettings` they were made with.

    Raises:
        FileNotFoundError: if the folder is not complete.
        ValueError: if it has no instances, or a number is out of range.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        batch_size: int = 256,
        *,
        seed: int = 0,
        first_step: int = 0,
        rows: str = "single",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if rows not in ROWS:
            raise ValueError(f"`rows` must be one of {ROWS}. Received: {rows!r}.")
        self.folder = Path(folder)
        manifest = self.folder / MANIFEST
        if not manifest.exists():
            raise FileNotFoundError(
                f"A folder of instances must have {MANIFEST}, which is written when "
                f"all is there. Received: {self.folder}. Make them, or call what makes "
                "them once more."
            )
        plan = Plan.read(self.folder)
        self.settings = plan.settings
        self.tokenizer = BertTokenizer.from_config(plan.tokenizer)
        shards = json.loads(manifest.read_text(encoding="utf-8"))["shards"]
        self._paths = [self.folder / shard["file"] for shard in shards]
        self._blocks = [
            (number, block)
            for number, shard in enumerate(shards)
            for block in range(len(shard["instances"]))
        ]
        sizes = [count for shard in shards for count in shard["instances"]]
        self._begins = np.concatenate([[0], np.cumsum(sizes)])
        self.num_instances = int(self._begins[-1])
        if not 1 <= batch_size <= self.num_instances:
            raise ValueError(
                f"`batch_size` must be from 1 to {self.num_instances}, the instances "
                f"in {self.folder}. Received: {batch_size}."
            )
        self.batch_size = batch_size
        self.seed = seed
        self.first_step = first_step
        self.rows = rows
        self._open = functools.lru_cache(_OPEN_FILES)(storage.opened)
        self._read = functools.lru_cache(_OPEN_BLOCKS)(self._read_block)
        self._order = functools.lru_cache(2)(self._order_of)
        self._masker = TokenMasker(self.tokenizer, self.settings.masking)

    @property
    def num_batches(self):
        """None: the batches have no end, so Keras needs `steps_per_epoch`."""
        return None

    def __getitem__(self, index):
        """Returns the batch of step `first_step + index`."""
        return self.at(self.first_step + index)

    def at(self, step: int) -> tuple[dict, dict | np.ndarray]:
        """Returns the batch of a step, counted from 0 over all epochs.

        Args:
            step: its number.

        Returns:
            `(x, y)` of int32 arrays. One instance a row: `mask_positions` and the ids
            are (B, M), 0 where there is none. Several a row: they are flat, the ids
            below 0 where there is none, and `x` has `first_positions` (B,).
        """
        instances = self.instances_at(step)
        if not self.settings.static_masks:
            rng = np.random.default_rng([self.seed, _MASKS, step])
            instances = mask(instances, self._masker, rng)
        single = self.rows == "single"
        x, labels = (self._single if single else self._packed)(instances)
        if self.settings.next_sentence == "none":
            x.pop("first_positions", None)
            return x, labels
        return x, {"mlm": labels, "nsp": instances.labels.astype(np.int32)}

    def instances_at(self, step: int) -> Instances:
        """Returns the instances of a step as they are stored."""
        places = step * self.batch_size + np.arange(self.batch_size)
        epochs = places // self.num_instances
        numbers = np.empty(self.batch_size, np.int64)
        for epoch in np.unique(epochs).tolist():
            chosen = epochs == epoch
            numbers[chosen] = self._order(epoch)(places[chosen] % self.num_instances)
        blocks = np.searchsorted(self._begins, numbers, side="right") - 1
        rows = numbers - self._begins[blocks]
        order = np.argsort(blocks, kind="stable")
        needed, begins = np.unique(blocks[order], return_index=True)
        parts = np.split(rows[order], begins[1:])
        found = [
            storage.select(self._read(block), part)
            for block, part in zip(needed.tolist(), parts, strict=True)
        ]
        return storage.select(joined(found), np.argsort(order))

    def _order_of(self, epoch: int) -> Permutation:
        return Permutation(self.num_instances, [self.seed, _ORDER, epoch])

    def _read_block(self, number: int) -> Instances:
        shard, block = self._blocks[number]
        return storage.read_block(self._open(self._paths[shard]), block)

    def _single(self, instances: Instances) -> tuple[dict, np.ndarray]:
        """Returns one instance a row, as wide as instances may be, and the ids."""
        count = instances.size
        x = self._laid(instances, one_a_row(count, self.settings.sequence_length))
        del x["first_positions"]
        counts = np.diff(instances.mask_splits)
        slot = np.arange(int(counts.max(initial=1))) < counts[:, None]  # (B, M)
        labels = np.zeros(slot.shape, np.int32)
        labels[slot] = instances.mask_labels
        x["mask_positions"] = np.zeros(slot.shape, np.int32)
        x["mask_positions"][slot] = instances.mask_positions
        return x, labels

    def _packed(self, instances: Instances) -> tuple[dict, np.ndarray]:
        """Returns several instances a row, and the ids of the masked tokens."""
        width = self.settings.sequence_length
        placed = best_fit(np.diff(instances.row_splits), width)
        step = -(-self.batch_size // _SHARE)
        num_rows = _rounded(placed.num_rows, step)
        x = self._laid(instances, dataclasses.replace(placed, num_rows=num_rows))
        owner = np.repeat(np.arange(instances.size), np.diff(instances.mask_splits))
        positions = x["first_positions"][owner] + instances.mask_positions
        masked = self.settings.masking.share * width * self.batch_size
        empty = _rounded(len(positions), math.ceil(masked / _SHARE)) - len(positions)
        x["mask_positions"] = np.pad(positions, (0, empty))
        return x, np.pad(instances.mask_labels, (0, empty), constant_values=NO_LABEL)

    def _laid(self, instances: Instances, placement) -> dict[str, np.ndarray]:
        encoded = EncodedTexts(
            instances.token_ids, instances.row_splits, instances.second_starts
        )
        texts = np.arange(instances.size)
        return lay(encoded, texts, placement, self.tokenizer.pad_id)


def _rounded(count: int, step: int) -> int:
    return -(-count // step) * step


def joined(parts: list[Instances]) -> Instances:
    """Returns several `Instances`, at least one, as one."""

    def splits(name):
        lengths = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    found = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Instances._fields
    }
    found["row_splits"] = splits("row_splits")
    found["mask_splits"] = splits("mask_splits")
    return Instances(**found)
