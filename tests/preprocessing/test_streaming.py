import functools
import itertools

import keras
import numpy as np
import pytest

from kbert.preprocessing.streaming import (
    StreamedBatches,
    StreamWidths,
    unpack_batch,
)
from tests.preprocessing import toy

LENGTHS = [9, 9, 30, 5, 9, 30, 5, 5, 9, 30, 5, 9, 20]
TEXTS = [f"{index} {length}" for index, length in enumerate(LENGTHS)]
Y, WEIGHTS = toy.targets(len(LENGTHS))
STEPS = 4  # batches of 4, 4, 4 and 1


def raw_batches(weights=False):
    """Yield (texts, labels) or (texts, labels, weights)."""
    for at in range(0, len(TEXTS), 4):
        part = slice(at, at + 4)
        batch = (TEXTS[part], Y[part])
        yield (*batch, WEIGHTS[part]) if weights else batch


def prepare(widths=(16, 64)):
    """Return a `prepare` that reads a text's number, its length, from its letters."""
    encoded = toy.encoded(LENGTHS)
    width = StreamWidths(widths)

    def prepared(x, y, sample_weight):
        rows = [int(text.split()[0]) for text in x]
        longest = encoded.lengths[rows].max()
        return toy.plain(encoded, rows, width(longest)), y, sample_weight

    return prepared


class Batches(keras.utils.PyDataset):
    """The same as a PyDataset, which counts its epochs."""

    def __init__(self, batches=STEPS):
        super().__init__()
        self.batches = batches
        self.begun = self.ended = 0

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        return list(raw_batches())[index]

    def on_epoch_begin(self):
        self.begun += 1

    def on_epoch_end(self):
        self.ended += 1


class Endless(Batches):
    @property
    def num_batches(self):
        return None

    def __getitem__(self, index):
        return super().__getitem__(index % STEPS)


class Reiterable:
    """An iterable without a length."""

    def __iter__(self):
        return raw_batches()


SOURCES = {
    "list": (lambda: list(raw_batches()), None),
    "py_dataset": (Batches, None),
    "endless py_dataset": (Endless, STEPS),
    "generator": (lambda: itertools.chain(*(raw_batches() for _ in range(9))), STEPS),
    "iterable without a length": (Reiterable, STEPS),
}


@pytest.fixture(params=SOURCES)
def stream(request):
    make, steps = SOURCES[request.param]
    return StreamedBatches(make(), prepare(), steps)


def plain_batches():
    encoded = toy.encoded(LENGTHS)
    for at in range(0, len(TEXTS), 4):
        rows = np.arange(at, min(at + 4, len(TEXTS)))
        yield toy.plain(encoded, rows, 64), Y[rows]


def test_length_is_known_or_given(stream):
    assert stream.steps == STEPS
    assert stream.num_batches is None


def test_fit_takes_every_batch_in_order_in_every_epoch(stream):
    model = toy.model(run_eagerly=True)
    validation = StreamedBatches(list(raw_batches()), prepare())
    weights, losses = two_plain_epochs()
    history = model.fit(
        stream,
        epochs=2,
        steps_per_epoch=stream.steps,
        validation_data=validation,
        validation_steps=validation.steps,
        shuffle=False,
        verbose=0,
    )
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert history.history["val_loss"] == pytest.approx(losses, abs=1e-5)


@functools.cache
def two_plain_epochs():
    """Train on the plain batches; return the weights and the loss of each epoch."""
    model, losses = toy.model(run_eagerly=True), []
    for _ in range(2):
        for batch in plain_batches():
            model.train_on_batch(*batch)
        losses.append(mean_loss(model))
    return model.get_weights(), losses


def mean_loss(model):
    losses = [(model.test_on_batch(*batch), len(batch[1])) for batch in plain_batches()]
    return sum(loss * count for loss, count in losses) / len(LENGTHS)


@pytest.mark.parametrize("kind", ["list", "py_dataset", "iterable without a length"])
def test_predictions_are_in_order_each_time(kind):
    make, steps = SOURCES[kind]
    stream = StreamedBatches(make(), prepare(), steps)
    model = toy.model()
    expected = [keras.ops.convert_to_numpy(model(x)) for x, _ in plain_batches()]
    for _ in range(2):
        predicted = model.predict(stream, steps=stream.steps, verbose=0)
        np.testing.assert_allclose(predicted, np.concatenate(expected), atol=1e-5)


def test_predictions_of_a_generator_begin_with_its_first_batch():
    stream = StreamedBatches(raw_batches(), prepare(), STEPS)
    model = toy.model()
    expected = [keras.ops.convert_to_numpy(model(x)) for x, _ in plain_batches()]
    predicted = model.predict(stream, steps=STEPS, verbose=0)
    np.testing.assert_allclose(predicted, np.concatenate(expected), atol=1e-5)


@pytest.mark.parametrize("weighting", ["sample", "class"])
def test_weights_reach_the_loss(weighting):
    class_weight = {0: 0.2, 1: 1.0, 2: 3.0} if weighting == "class" else None
    source = list(raw_batches(weights=weighting == "sample"))
    stream = StreamedBatches(source, prepare())
    model, expected = toy.model(run_eagerly=True), toy.model(run_eagerly=True)
    model.fit(
        stream,
        steps_per_epoch=STEPS,
        class_weight=class_weight,
        shuffle=False,
        verbose=0,
    )
    for (x, y), at in zip(plain_batches(), range(0, len(TEXTS), 4), strict=True):
        weights = WEIGHTS[at : at + 4]
        if class_weight:
            weights = np.array([class_weight[index] for index in y], "float32")
        expected.train_on_batch(x, y, weights)
    for ours, theirs in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_py_dataset_is_told_of_its_epochs():
    source = Batches()
    stream = StreamedBatches(source, prepare())
    for index in range(2 * STEPS + 1):
        stream[index]
    assert (source.begun, source.ended) == (3, 2)


def test_data_without_targets():
    stream = StreamedBatches([TEXTS[:4]], prepare())
    assert len(stream[0]) == 1


# What Keras does before it begins.


def rows(batch):
    return batch[1].tolist()


def test_looking_at_the_first_batches_loses_none_of_a_generator():
    stream = StreamedBatches(raw_batches(), prepare(), STEPS)
    looked = [rows(stream[0]), rows(stream[1])]
    seen = [rows(stream[index]) for index in range(STEPS)]
    assert seen[:2] == looked
    assert sum(seen, []) == Y.tolist()


def test_generator_goes_on_where_it_stands():
    stream = StreamedBatches(
        itertools.chain(raw_batches(), raw_batches()), prepare(), 4
    )
    first = [rows(stream[index]) for index in range(STEPS)]
    second = [rows(stream[index]) for index in range(STEPS)]
    assert first == second


def test_starting_again_starts_the_data_again():
    stream = StreamedBatches(list(raw_batches()), prepare())
    first = rows(stream[0])
    stream[1], stream[2]
    assert rows(stream[0]) == first


def test_second_reader_is_told():
    stream = StreamedBatches(list(raw_batches()), prepare())
    stream[0]
    with pytest.raises(RuntimeError, match="batch 3 instead of 1"):
        stream[3]


# Widths.


def test_second_batch_has_another_width():
    width = StreamWidths([64, 16, 32])
    assert [width(n) for n in (10, 10, 10, 40, 16)] == [16, 32, 16, 64, 16]
    width = StreamWidths([16, 32, 64])
    assert [width(n) for n in (10, 60, 10)] == [16, 64, 16]


def test_widest_batches_first_make_all_of_them_wide():
    width = StreamWidths([16, 32])
    assert [width(n) for n in (20, 20, 10, 20)] == [32, 32, 32, 32]
    assert StreamWidths([16])(3) == 16


def test_text_wider_than_every_width():
    with pytest.raises(ValueError, match=r"33 tokens, widths=\[16, 32\]"):
        StreamWidths([16, 32])(33)


# Refusals.


@pytest.mark.parametrize("make", [raw_batches, Reiterable, Endless])
def test_unknown_length(make):
    with pytest.raises(ValueError, match=rf"steps_per_epoch.*{type(make()).__name__}"):
        StreamedBatches(make(), prepare())


@pytest.mark.parametrize(("source", "steps"), [([], None), (raw_batches(), 0)])
def test_no_batch(source, steps):
    with pytest.raises(ValueError, match="at least one batch an epoch. Received: 0"):
        StreamedBatches(source, prepare(), steps)


def test_epoch_longer_than_the_data():
    with pytest.raises(ValueError, match="Received: 5 steps, 4 batches"):
        StreamedBatches(list(raw_batches()), prepare(), 5)


def test_generator_that_ends_early():
    stream = StreamedBatches(raw_batches(), prepare(), 3)
    for index in range(4):
        stream[index]
    with pytest.raises(ValueError, match="ended early.*4 batches in all, where 3"):
        stream[4]


def test_data_without_a_batch():
    class Empty:
        def __iter__(self):
            return iter([])

    with pytest.raises(ValueError, match="ended early.*0 batches in all"):
        StreamedBatches(Empty(), prepare(), 3)[0]


def test_generator_that_ends_early_tells_keras(backend):
    stream = StreamedBatches(raw_batches(), prepare(), STEPS)
    with pytest.raises(Exception, match="ended early.*4 batches in all") as told:
        toy.model().fit(
            stream, steps_per_epoch=STEPS, epochs=2, shuffle=False, verbose=0
        )
    # On TensorFlow a thread that reads ahead turns it into its own error.
    wrapped = "InvalidArgumentError" if backend == "tensorflow" else "ValueError"
    assert type(told.value).__name__ == wrapped


@pytest.mark.parametrize(
    "batch",
    [
        "one text",
        ("one text", 1),
        (b"one text", 1, 0.5),
        (np.array("one text"), 1),
        ({"first": "one text", "second": "b"}, 1),
        (("one text", ["b"]), 1),
    ],
    ids=repr,
)
def test_single_text(batch):
    with pytest.raises(ValueError, match="batch the dataset first.*one text"):
        unpack_batch(batch)


@pytest.mark.parametrize("count", [0, 4])
def test_number_of_parts(count):
    with pytest.raises(ValueError, match=f"Received: {count} parts"):
        unpack_batch(([["a"], [1], [1.0], [2]][:count]) or ())


def test_batches_of_every_form():
    x, y, w = ["a", "b"], [0, 1], [0.5, 1]
    assert unpack_batch(x) == (x, None, None)
    assert unpack_batch((x,)) == (x, None, None)
    assert unpack_batch((x, y)) == (x, y, None)
    assert unpack_batch([x, y, w]) == (x, y, w)
    assert unpack_batch([("a", "b"), y]) == (x, y, None)  # torch's DataLoader
    assert unpack_batch(((x, x), y)) == ((x, x), y, None)
    assert unpack_batch({"first": x}) == ({"first": x}, None, None)
    assert unpack_batch(({"token_ids": np.ones((2, 3))}, y))[1] == y
