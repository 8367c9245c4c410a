"""Streams of raw batches as a `PyDataset` of ready arrays."""

import threading
from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np

# Keras looks at so many batches before it starts over.
_LOOKED_AT = 2


def unpack_batch(batch) -> tuple:
    """Splits a raw batch into x, y and sample weights; None for what is absent.

    In a stream `(a, b)` means (x, y), as everywhere in Keras; a pair of texts is
    `((firsts, seconds), y)` or `({"first": …, "second": …}, y)`. A tuple of strings
    in the place of x is a batch of texts, since torch's DataLoader makes such.

    Args:
        batch: x, or a tuple or list of x, y and sample weights.

    Returns:
        x, y, sample_weight.

    Raises:
        ValueError: if x is one text instead of a batch, or there are other than one
            to three parts.
    """
    if isinstance(batch, tuple) or (isinstance(batch, list) and not _are_texts(batch)):
        if not 1 <= len(batch) <= 3:
            raise ValueError(
                "A batch must be x, (x, y) or (x, y, sample_weight). Received: "
                f"{len(batch)} parts."
            )
        x, y, sample_weight = (*batch, None, None)[:3]
    else:
        x, y, sample_weight = batch, None, None
    if isinstance(x, tuple) and _are_texts(x):
        x = list(x)
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, tuple) else [x]
    for part in parts:
        if _is_text(part):
            raise ValueError(
                "A stream must yield batches of texts; batch the dataset first, as in "
                f"dataset.batch(32). Received: the single text {str(part)[:60]!r}."
            )
    return x, y, sample_weight


def _is_text(x) -> bool:
    return isinstance(x, str | bytes) or (
        isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "OSTU"
    )


def _are_texts(x) -> bool:
    return (
        isinstance(x, tuple | list) and len(x) > 0 and all(_is_text(item) for item in x)
    )


class StreamWidths:
    """Chooses the width of each batch of a stream, as narrow as Keras can take it.

    On TensorFlow Keras concludes from the first two batches which sizes may vary. So
    the second is given another width than the first; where there is none left, all
    batches are of the largest width.

    Args:
        widths: the allowed widths.

    Example:
    >>> width = StreamWidths([32, 64, 128])
    >>> width(20), width(20), width(20)
    (32, 64, 32)
    """

    def __init__(self, widths: Sequence[int]):
        self.widths = sorted(widths)
        self._seen: list[int] = []

    def __call__(self, longest: int) -> int:
        """Returns the width for a batch.

        Args:
            longest: tokens of its longest text.

        Raises:
            ValueError: if no width holds it.
        """
        if longest > self.widths[-1]:
            raise ValueError(
                "The largest width must hold the longest text. Received: a text of "
                f"{longest} tokens, widths={self.widths}."
            )
        at = int(np.searchsorted(self.widths, longest))
        last = len(self.widths) - 1
        if len(self._seen) == 1 and at == self._seen[0]:
            at = min(at + 1, last)
        if len(self._seen) >= 2 and self._seen == [last, last]:
            at = last
        self._seen = (self._seen + [at])[:2]
        return self.widths[at]


class StreamedBatches(keras.utils.PyDataset):
    """Ready batches from an iterable of raw ones, in its order, on every backend.

    A source that can be iterated again is, whenever it ends. An iterator, such as a
    generator, goes on where it stands; it must not end before Keras stops asking.

    Keras must be told `steps_per_epoch=batches.steps` (`steps`, `validation_steps`)
    and `shuffle=False`: it is to take one stream over all epochs.

    Args:
        source: a `tf.data.Dataset`, a `PyDataset`, a torch DataLoader, a generator or
            another iterable of raw batches.
        prepare: function of x, y and sample_weight, as `unpack_batch` returns them,
            to the same, ready for Keras: arrays, or None.
        steps: batches an epoch; None for the length of the source.

    Attributes:
        steps: batches an epoch.

    Raises:
        ValueError: if `steps` is None and the source has no known length, or is not
            positive, or exceeds that length. While reading: if the source ends early,
            or yields single texts instead of batches.
    """

    def __init__(self, source, prepare: Callable, steps: int | None = None):
        super().__init__()
        self._once = isinstance(source, Iterator)
        length = _length(source)
        if steps is None:
            steps = length
        if steps is None:
            raise ValueError(
                "The length of this data is unknown: pass `steps_per_epoch` (`steps`, "
                f"`validation_steps`). Received: a {type(source).__name__}."
            )
        if steps < 1:
            raise ValueError(
                f"There must be at least one batch an epoch. Received: {steps}."
            )
        if length is not None and steps > length:
            raise ValueError(
                "An epoch must not be longer than the data; repeat the dataset, or "
                f"ask for fewer steps. Received: {steps} steps, {length} batches."
            )
        self.steps = steps
        self.source = source
        self.prepare = prepare
        self._lock = threading.Lock()
        self._beginning: list[tuple] = []  # of an iterator: what Keras looks at
        self._iterator = None
        self._next = self._read = 0

    @property
    def num_batches(self):
        """None: Keras takes `steps` batches an epoch from one endless stream."""
        return None

    def __getitem__(self, index):
        """Returns batch `index` of the stream; 0 starts it again."""
        with self._lock:  # on TensorFlow a thread reads ahead
            if index == 0:
                self._next = 0
                self._iterator = self._iterator if self._once else None
            if index != self._next:
                raise RuntimeError(
                    "A stream is read in order, by one reader. Received: a call for "
                    f"batch {index} instead of {self._next}."
                )
            self._next += 1
            if self._once and self._read <= _LOOKED_AT and index < self._read:
                return self._beginning[index]
            batch = self._prepared(self._raw())
            self._read += 1
            if self._once and self._read <= _LOOKED_AT:
                self._beginning.append(batch)
            return batch

    def _raw(self):
        for _ in range(2):
            if self._iterator is None:
                self._iterator = _iterate(self.source)
            for raw in self._iterator:
                return raw
            if self._once:
                break
            self._iterator = None
        raise ValueError(
            "The data ended early: it must last for every epoch. Received: "
            f"{self._read} batches in all, where {self.steps} an epoch were asked for."
        )

    def _prepared(self, raw) -> tuple:
        inputs, y, sample_weight = self.prepare(*unpack_batch(raw))
        if y is None:
            return (inputs,)
        return (inputs, y) if sample_weight is None else (inputs, y, sample_weight)


def _length(source) -> int | None:
    if isinstance(source, keras.utils.PyDataset):
        return source.num_batches
    try:
        return len(source)
    except TypeError:  # a generator; a dataset that is endless or does not know
        return None


def _iterate(source) -> Iterator:
    if isinstance(source, keras.utils.PyDataset):
        return _iterate_py_dataset(source)
    as_numpy = getattr(source, "as_numpy_iterator", None)  # tf.data
    return iter(source) if as_numpy is None else iter(as_numpy())


def _iterate_py_dataset(source) -> Iterator:
    source.on_epoch_begin()
    if source.num_batches is None:
        index = 0
        while True:
            yield source[index]
            index += 1
    for index in range(source.num_batches):
        batch = source[index]
        if index == source.num_batches - 1:
            source.on_epoch_end()
        yield batch
