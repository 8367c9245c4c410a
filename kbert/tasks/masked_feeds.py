"""What the tasks of masked tokens read: texts to be masked, or ready arrays."""

import dataclasses
import functools
import random
from typing import Any

import numpy as np

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.masked_batches import MaskedBatches
from kbert.preprocessing.masking import Masked, TokenMasker
from kbert.preprocessing.raw_text import is_raw
from kbert.preprocessing.rows import rows_of
from kbert.tasks.compiling import compiles_shapes, layout_for
from kbert.tasks.feeds import Texts, parts_of
from kbert.tasks.instances import laid, read_arrays
from kbert.tasks.replicas import check_one_device

# Of `evaluate` and of validation: the same masks each time.
_SEED = 0


def read(task, x, y, sample_weight, training, targets):
    """Returns texts as `TextsToMask`, ready arrays as `InstanceArrays`.

    Args:
        task: a `BertTask` with a head of masked tokens.
        x: texts, or a dictionary of ready arrays with `mask_positions`.
        y: targets, or None.
        sample_weight: one weight a text, or None.
        training: whether this is for a `fit`.
        targets: whether the targets of text are made, by masking it; False where
            [MASK]s are in it.

    Raises:
        ValueError: if text comes with targets, or the task has a second head, whose
            targets text does not hold; or as `instances.read_arrays`.
    """
    if not is_raw(x):
        return read_arrays(task, x, y, sample_weight)
    check_one_device(task)
    preprocessor = task.require_preprocessor()
    if task.has_next_sentence:
        raise ValueError(
            f"{type(task).__name__} reads instances as ready arrays: a dictionary with "
            "mask_positions, and y={'mlm': …, 'nsp': …}. Received: text. For masked "
            "tokens alone, BertMaskedLM reads text."
        )
    if y is not None:
        raise ValueError(
            "The targets of text are made by masking it. Pass masks of your own as "
            "ready arrays: x with mask_positions, y with the ids. Received: text and "
            f"`y` of type {type(y).__name__}."
        )
    masker = None
    if targets:
        encoded = preprocessor.encode(x)
        masker = TokenMasker(preprocessor.tokenizer, task.masking)
    else:
        encoded = preprocessor.encode_blanks(x)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, len(encoded))
    texts = Texts(
        encoded,
        None,
        None,
        pad_id=task.backbone.config.pad_token_id,
        choose_layout=functools.partial(layout_for, task, training),
    )
    mask_id = preprocessor.tokenizer.mask_id
    return TextsToMask(texts, masker, mask_id, sample_weight, compiles_shapes(task))


@dataclasses.dataclass(frozen=True)
class TextsToMask:
    """N encoded texts, masked anew in every epoch, or with blanks to fill in.

    Args:
        texts: without targets.
        y: the `TokenMasker` that makes the targets; None where [MASK]s are in the
            texts and nothing is to be learned.
        mask_id: id of [MASK].
        sample_weight: float (N,), or None.
        few_sizes: as for `MaskedBatches`.
    """

    texts: Texts
    y: TokenMasker | None
    mask_id: int
    sample_weight: np.ndarray | None
    few_sizes: bool

    def split(self, fraction) -> tuple["TextsToMask", "TextsToMask"]:
        """Returns all but the last `fraction` of the texts, and those."""
        count = len(self.texts.encoded)
        first, last = (
            dataclasses.replace(
                self, texts=part, sample_weight=rows_of(self.sample_weight, indices)
            )
            for part, indices in zip(
                self.texts.split(fraction), parts_of(count, fraction), strict=True
            )
        )
        return first, last

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return self.texts.steps(batch_size)

    def fit_arguments(self, batch_size, shuffle, epochs) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        arguments = self.texts.fit_arguments(batch_size, shuffle, epochs)
        seed = arguments["x"].seed
        # A user who wants no shuffling still wants new masks.
        return {**arguments, "x": self._masked(arguments["x"], seed)}

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return {"x": self._masked(self.texts.evaluate_arguments(batch_size)["x"])}

    def validation_arguments(self, batch_size, epochs) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        arguments = self.texts.validation_arguments(batch_size, epochs)
        return {"validation_data": self._masked(arguments["validation_data"])}

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        return {"x": self._masked(self.texts.predict_arguments(batch_size)["x"])}

    def restore(self, outputs, arguments) -> np.ndarray:
        """Returns the logits of every [MASK], in the order of the texts."""
        return arguments["x"].restore(outputs)

    def single_batch(self, choose_width=int) -> tuple[dict, Any, Any]:
        """Returns all texts as one batch, masked at random."""
        inputs, _, _ = self.texts.single_batch(choose_width)
        masked, splits = (
            self._mask(random.randrange(2**31), 0),
            self.texts.encoded.row_splits,
        )
        return laid(
            inputs,
            masked,
            splits,
            with_labels=self.y is not None,
            sample_weight=self.sample_weight,
            few_sizes=self.few_sizes,
        )

    def truncated(self) -> str:
        """Returns a sentence on truncated texts, empty where there are none."""
        return self.texts.truncated()

    def _masked(self, batches: TextBatches, seed=_SEED) -> MaskedBatches:
        return MaskedBatches(
            batches,
            functools.partial(self._mask, seed),
            with_labels=self.y is not None,
            sample_weight=self.sample_weight,
            few_sizes=self.few_sizes,
        )

    def _mask(self, seed, epoch) -> Masked:
        encoded = self.texts.encoded
        if self.y is None:
            blanks = np.flatnonzero(encoded.token_ids == self.mask_id)
            return Masked(encoded.token_ids, blanks, encoded.token_ids[blanks])
        rng = np.random.default_rng([seed, epoch])
        return self.y(encoded.token_ids, encoded.row_splits, rng)
