"""What a token classifier reads: texts of words with their tags, laid for Keras."""

import dataclasses
from typing import Any

import numpy as np

from kbert.preprocessing import tags
from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.layouts import PackedRows, SingleRows
from kbert.preprocessing.rows import PositionValues, entries, rows_of
from kbert.preprocessing.streaming import StreamedBatches
from kbert.preprocessing.words import NO_WORD, EncodedWords
from kbert.tasks import feeding, feeds
from kbert.tasks.compiling import layout_for


@dataclasses.dataclass(frozen=True)
class Words:
    """N encoded texts of words, with the tags of the words and weights.

    A step takes as many windows as Keras is told that a batch has, which are texts but
    for those that are too long for one.

    Args:
        task: the `BertTokenClassifier` that reads them.
        encoded: the texts.
        y: int32 (words,), or None.
        sample_weight: float32 (words,), or None.
        training: whether `y` is a whole training set.
    """

    task: Any
    encoded: EncodedWords
    y: np.ndarray | None
    sample_weight: np.ndarray | None
    training: bool

    def weighted(self, by_tag) -> "Words":
        """Returns the same, each word's weight multiplied by that of its tag, (C,)."""
        weights = by_tag[self.y]
        if self.sample_weight is not None:
            weights = weights * self.sample_weight
        return dataclasses.replace(self, sample_weight=weights)

    def split(self, fraction) -> tuple["Words", "Words"]:
        """Returns all but the last `fraction` of the texts, and those."""
        first, last = feeds.parts_of(len(self.encoded), fraction)
        return self._select(first), self._select(last)

    def steps(self, batch_size) -> int:
        """Returns the steps of an epoch."""
        return self._windows().steps(batch_size)

    def fit_arguments(self, batch_size, shuffle, epochs) -> dict:
        """Returns the data arguments of Keras's `fit`."""
        return self._windows().fit_arguments(batch_size, shuffle, epochs)

    def evaluate_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `evaluate`."""
        return self._windows().evaluate_arguments(batch_size)

    def validation_arguments(self, batch_size, epochs) -> dict:
        """Returns the validation arguments of Keras's `fit`."""
        return self._windows().validation_arguments(batch_size, epochs)

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`, in rows of one width."""
        return self._windows(one_width).predict_arguments(batch_size)

    def single_batch(self, choose_width=int) -> tuple:
        """Returns all texts as one batch; see `Texts.single_batch`."""
        return self._windows().single_batch(choose_width)

    def restore(self, outputs, arguments) -> np.ndarray:
        """Returns the logits (N, S, C) of every text's positions, 0 behind its end."""
        batches: TextBatches = arguments["x"]
        logits = batches.collect(outputs)[self.encoded.sources]
        return feeds.padded(logits, np.diff(self.encoded.row_splits))

    def truncated(self) -> str:
        """Returns a sentence on long texts, empty where there are none."""
        if not self.encoded.num_split:
            return ""
        return (
            f"{self.encoded.num_split:,} of {len(self.encoded):,} texts are longer "
            f"than {self.task.preprocessor.max_length} tokens and lie in windows."
        )

    def _windows(self, choose_layout=layout_for) -> feeds.Texts:
        """Returns the windows as texts, with a target and a weight for every token."""
        words = self.encoded.words_at()

        def at_words(values, elsewhere, fill):
            if values is None:
                return None
            laid = np.where(words >= 0, values[words], elsewhere)
            splits = self.encoded.windows.row_splits
            return PositionValues(laid.astype(values.dtype), splits, fill)

        y = at_words(self.y, words, NO_WORD)
        weights = at_words(self.sample_weight, 0, 0)

        def choose(lengths, batch_size, order, epochs):
            return choose_layout(
                self.task, self.training, lengths, batch_size, order, epochs
            )

        pad_id = self.task.backbone.config.pad_token_id
        return feeds.Texts(self.encoded.windows, y, weights, pad_id, choose)

    def _select(self, texts) -> "Words":
        words = entries(self.encoded.word_splits, texts)
        return dataclasses.replace(
            self,
            encoded=self.encoded.select(texts),
            y=rows_of(self.y, words),
            sample_weight=rows_of(self.sample_weight, words),
        )


def read_arrays(task, x, y, sample_weight, training) -> feeds.Arrays:
    """Checks ready arrays; targets and weights get the inputs' shape (N, S).

    Args:
        task: the `BertTokenClassifier`.
        x: as for `feeding.ready_arrays`.
        y: as for `tags.check_target_array`, or None.
        sample_weight: one weight a row, or None.
        training: whether `y` is a whole training set.
    """
    inputs = feeding.ready_arrays(x, task.backbone.config)
    shape = inputs["token_ids"].shape
    if y is not None:
        y = tags.check_target_array(y, task.labels, shape)
        if training:
            tags.check_several_tags(y, task.labels)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, shape[0])[:, None] * np.ones(shape)
    return feeds.Arrays(inputs, y, sample_weight)


def weighted(data, by_tag):
    """Returns data with every word's weight multiplied by that of its tag.

    Args:
        data: a `Words`, an `Arrays` or a `Stream`.
        by_tag: float32 (C,).
    """
    if isinstance(data, Words):
        return data.weighted(by_tag)
    if isinstance(data, feeds.Arrays):
        weights = _weights(data.y, data.sample_weight, by_tag)
        return dataclasses.replace(data, sample_weight=weights)
    dataset = data.dataset

    def prepare(*raw):
        inputs, y, sample_weight = dataset.prepare(*raw)
        return inputs, y, _weights(y, sample_weight, by_tag)

    return feeds.Stream(StreamedBatches(dataset.source, prepare, dataset.steps))


def _weights(y, sample_weight, by_tag):
    """Returns float32 (N, S), 0 where nothing is scored; None without targets."""
    if y is None:
        return sample_weight
    weights = np.where(y >= 0, by_tag[y], np.float32(0))
    return weights if sample_weight is None else weights * sample_weight


def one_width(task, training, lengths, batch_size, order, epochs):
    """Chooses as `layout_for`, but one width, so that outputs can be laid together."""
    layout = layout_for(task, training, lengths, batch_size, order, epochs)
    if isinstance(layout, SingleRows):
        return SingleRows(layout.widths[-1:], layout.shape_price)
    return PackedRows(layout.width, layout.shape_price)
