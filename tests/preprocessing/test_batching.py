import itertools
import pickle

import keras
import numpy as np
import pytest

from kbert.preprocessing.batching import TextBatches, choose_widths, collate
from tests.preprocessing import toy

RNG = np.random.default_rng(0)
LENGTHS = np.minimum(3 + RNG.geometric(0.07, 75), 60)


# Widths.


def padding(lengths, widths):
    return sum(min(w for w in widths if w >= length) - length for length in lengths)


@pytest.mark.parametrize("max_length", [60, 64, 512])
@pytest.mark.parametrize("max_widths", [1, 2, 3, 4])
def test_widths_waste_least(max_widths, max_length):
    widths = choose_widths(LENGTHS, max_length, max_widths)
    assert len(widths) == max_widths
    assert widths == sorted(set(widths))
    allowed = [w for w in range(8, max_length, 8)] + [max_length]
    assert set(widths) <= set(allowed)
    possible = itertools.combinations([w for w in allowed if w <= 64], max_widths)
    fitting = [some for some in possible if some[-1] >= LENGTHS.max()]
    least = min(padding(LENGTHS, some) for some in fitting)
    assert padding(LENGTHS, widths) == least


def test_no_more_widths_than_needed():
    assert choose_widths([5, 6, 40], 512) == [8, 40]
    assert choose_widths([5], 512) == [8]


def test_widths_without_texts():
    with pytest.raises(ValueError, match="at least one text"):
        choose_widths([], 512)


def test_text_wider_than_every_width():
    with pytest.raises(ValueError, match="60 tokens, max_length=59"):
        choose_widths([5, 60], 59)


# Rows.


def test_collate_lays_texts_into_rows():
    rows = collate(toy.encoded([6, 4, 3]), [2, 0], 7, pad_id=9)
    assert {array.dtype.name for array in rows.values()} == {"int32"}
    first, second = rows["token_ids"].tolist()
    assert (first[0], first[2], first[3:]) == (1, 2, [9, 9, 9, 9])
    assert (second[0], second[5], second[6:]) == (1, 2, [9])
    assert rows["padding_mask"].tolist() == [
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 0],
    ]
    assert rows["segment_ids"].tolist() == [[0] * 7, [0, 0, 0, 0, 1, 1, 0]]
    assert rows["first_positions"].tolist() == [0, 7]


def test_row_narrower_than_its_text():
    with pytest.raises(ValueError, match="6 tokens, width=5"):
        collate(toy.encoded([6]), [0], 5, pad_id=0)


# Batches.


def rows_of(batches):
    """The token ids of every row, without padding, in the order of the batches."""
    rows = []
    for index in range(len(batches)):
        inputs = batches[index][0]
        for ids, mask in zip(inputs["token_ids"], inputs["padding_mask"], strict=True):
            rows.append(ids[mask == 1].tolist())
    return rows


def texts_of(encoded):
    return [
        encoded.token_ids[start:end].tolist()
        for start, end in itertools.pairwise(encoded.row_splits)
    ]


def sizes(batches):
    return [len(batches[index][0]["token_ids"]) for index in range(len(batches))]


def widths(batches):
    return [batches[index][0]["token_ids"].shape[1] for index in range(len(batches))]


@pytest.mark.parametrize("shuffle", [False, True])
def test_order_says_which_text_is_where(shuffle):
    encoded = toy.encoded(LENGTHS)
    batches = TextBatches(encoded, batch_size=8, shuffle=shuffle, seed=3)
    texts = texts_of(encoded)
    assert sorted(batches.order) == list(range(75))
    assert rows_of(batches) == [texts[index] for index in batches.order]
    restored = batches.restore(np.array([[len(row)] for row in rows_of(batches)]))
    assert restored[:, 0].tolist() == [len(text) for text in texts]


@pytest.mark.parametrize("shuffle", [False, True])
def test_exactly_batch_size_texts_but_in_the_last(shuffle):
    batches = TextBatches(toy.encoded(LENGTHS), batch_size=8, shuffle=shuffle)
    assert len(batches) == 10
    assert sizes(batches) == [8] * 9 + [3]


@pytest.mark.parametrize("shuffle", [False, True])
def test_batch_has_the_narrowest_width_of_few(shuffle):
    batches = TextBatches(
        toy.encoded(LENGTHS), batch_size=8, shuffle=shuffle, widths=[64, 16, 32]
    )
    assert batches.widths == [16, 32, 64]
    found = widths(batches)
    for index, width in enumerate(found):
        longest = batches[index][0]["padding_mask"].sum(axis=1).max()
        assert width == min(w for w in (16, 32, 64) if w >= longest)
    assert len(set(found)) > 1


def test_texts_of_a_pool_are_grouped_by_width():
    lengths = np.random.default_rng(0).permutation(np.repeat([6, 30], 500))
    batches = TextBatches(toy.encoded(lengths), batch_size=10, shuffle=True, seed=0)
    assert sorted(widths(batches)).count(32) <= 50 + 4  # one mixed batch a pool


def test_longest_texts_come_first_where_order_is_free():
    batches = TextBatches(toy.encoded(LENGTHS), batch_size=8, widths=[64])
    lengths = [len(row) for row in rows_of(batches)]
    assert lengths == sorted(lengths, reverse=True)


def test_first_two_batches_differ_in_width_where_any_do():
    lengths = [40] * 24 + [5] * 8
    assert widths(TextBatches(toy.encoded(lengths), batch_size=8)) == [40, 8, 40, 40]
    for seed in range(5):
        batches = TextBatches(
            toy.encoded(lengths * 8), batch_size=8, shuffle=True, seed=seed
        )
        assert len(set(widths(batches))) == len(set(widths(batches)[:2])) == 2


def test_epochs_differ_and_depend_on_the_seed_alone():
    encoded = toy.encoded(LENGTHS)
    orders = []
    for _ in range(2):
        batches = TextBatches(encoded, batch_size=8, shuffle=True, seed=5)
        for _ in range(3):
            batches.on_epoch_begin()
            orders.append(
                [batches[i] and batches._batches[i].tolist() for i in range(10)]
            )
            batches.on_epoch_end()
    assert orders[:3] == orders[3:]
    assert orders[0] != orders[1] != orders[2]
    other = TextBatches(encoded, batch_size=8, shuffle=True, seed=6)
    assert np.concatenate(orders[0]).tolist() != other.order.tolist()


def test_looking_at_a_batch_does_not_use_up_an_epoch():
    batches = TextBatches(toy.encoded(LENGTHS), batch_size=60, shuffle=True, seed=5)
    order = batches.order.tolist()
    batches[0], batches[1]  # as Keras does on TensorFlow before it begins
    batches.on_epoch_begin()
    batches[0]
    batches.on_epoch_end()
    batches.on_epoch_begin()
    assert batches.order.tolist() == order


def test_a_run_can_be_continued():
    arguments = {"batch_size": 8, "shuffle": True, "seed": 5}
    batches = TextBatches(toy.encoded(LENGTHS), **arguments)
    first = batches.order.tolist()
    batches.epoch = 1
    assert batches.order.tolist() != first
    batches.epoch = 0
    assert batches.order.tolist() == first


def test_seed_comes_from_keras():
    encoded = toy.encoded(LENGTHS)
    orders = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        orders.append(TextBatches(encoded, batch_size=8, shuffle=True).order.tolist())
    assert orders[0] == orders[1] != orders[2]


def test_kept_shape_repeats_a_text_that_is_restored_once():
    batches = TextBatches(toy.encoded(LENGTHS), batch_size=8, keep_shape=True)
    assert sizes(batches) == [8] * 10
    lengths = np.array([len(row) for row in rows_of(batches)])
    assert batches.restore(lengths).tolist() == LENGTHS.tolist()


def test_targets_may_be_structured():
    y = {"a": np.arange(75), "b": np.arange(150).reshape(75, 2)}
    batches = TextBatches(toy.encoded(LENGTHS), y, batch_size=8)
    _, found = batches[3]
    expected = batches.order[24:32]
    assert found["a"].tolist() == expected.tolist()
    assert found["b"][:, 0].tolist() == (2 * expected).tolist()


def test_batches_travel_to_another_process():
    batches = TextBatches(toy.encoded(LENGTHS), batch_size=8, shuffle=True)
    copy = pickle.loads(pickle.dumps(batches))
    assert rows_of(copy) == rows_of(batches)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"y": np.zeros(74)}, "`y` must.*74 entries for 75 texts"),
        (
            {"y": np.zeros(75), "sample_weight": np.zeros(3)},
            "`sample_weight` must.*3 entries for 75 texts",
        ),
        ({"sample_weight": np.zeros(75)}, "Weights need targets"),
        ({"widths": [16, 32]}, r"\d\d tokens, widths=\[16, 32\]"),
        ({"batch_size": 0}, "positive. Received: 0"),
        ({"y": np.zeros(75), "keep_shape": True}, "Received: keep_shape=True"),
    ],
)
def test_bad_batches(arguments, told):
    with pytest.raises(ValueError, match=told):
        TextBatches(toy.encoded(LENGTHS), **arguments)


def test_batches_of_nothing():
    for widths in (None, [16]):
        with pytest.raises(ValueError, match="at least one text"):
            TextBatches(toy.encoded([5]).select([]), widths=widths)


# Keras.


def plain(batches, encoded, y, sample_weight=None):
    """The same batches as plain arrays of one width, for Keras to cut."""
    size, order = batches.batch_size, batches.order
    arrays = collate(encoded, order, 64, 0)
    arrays["first_positions"] %= size * 64
    weights = None if sample_weight is None else sample_weight[order]
    return {
        "x": arrays,
        "y": y[order],
        "sample_weight": weights,
        "batch_size": size,
        "shuffle": False,
        "verbose": 0,
    }


@pytest.mark.parametrize("weighting", ["none", "sample", "class"])
def test_fit_is_that_over_plain_arrays(weighting):
    encoded = toy.encoded(LENGTHS[:64])
    y, weights = toy.targets(64)
    weights = weights if weighting == "sample" else None
    class_weight = {0: 0.2, 1: 1.0, 2: 3.0} if weighting == "class" else None
    batches = TextBatches(encoded, y, weights, batch_size=8, widths=[32, 64])
    one, other = toy.model(), toy.model()
    told = one.fit(
        batches, shuffle=False, epochs=2, class_weight=class_weight, verbose=0
    )
    expected = other.fit(
        **plain(batches, encoded, y, weights), epochs=2, class_weight=class_weight
    )
    assert told.history["loss"] == pytest.approx(expected.history["loss"], abs=1e-5)
    for ours, theirs in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_reported_loss_is_the_mean_over_texts():
    encoded = toy.encoded(LENGTHS)
    y, _ = toy.targets(75)
    model = toy.model(weighted_metrics=["accuracy"])
    batches = TextBatches(encoded, y, batch_size=32)
    loss, accuracy = model.evaluate(batches, verbose=0)
    arrays = collate(encoded, np.arange(75), 64, 0)
    logits = keras.ops.convert_to_numpy(model(arrays))
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert loss == pytest.approx(-logs[np.arange(75), y].mean(), abs=1e-5)
    assert accuracy == pytest.approx((logits.argmax(axis=1) == y).mean(), abs=1e-6)


@pytest.mark.parametrize("keep_shape", [False, True])
def test_predictions_are_restored_to_the_order_of_the_texts(keep_shape):
    encoded = toy.encoded(LENGTHS)
    model = toy.model()
    batches = TextBatches(encoded, batch_size=8, keep_shape=keep_shape)
    restored = batches.restore(model.predict(batches, verbose=0))
    expected = model(collate(encoded, np.arange(75), 64, 0))
    np.testing.assert_allclose(
        restored, keras.ops.convert_to_numpy(expected), atol=1e-5
    )


def test_shuffled_fit_sees_every_text_each_epoch_on_every_backend():
    encoded = toy.encoded(LENGTHS)
    seen = []

    class Spy(TextBatches):
        def on_epoch_end(self):
            seen.append((self.epoch, self.order.tolist()))

    y, _ = toy.targets(75)
    batches = Spy(encoded, y, batch_size=40, shuffle=True, seed=1)
    toy.model().fit(batches, epochs=3, shuffle=False, verbose=0)
    expected = []
    for epoch in range(3):
        batches.epoch = epoch
        expected.append((epoch, batches.order.tolist()))
    # Keras also ends an epoch before the first.
    assert seen[-3:] == expected
    assert {epoch for epoch, _ in seen[:-3]} <= {0}


@pytest.mark.parametrize("lengths", [[30] * 16 + [5] * 16, [5] * 16 + [30] * 16])
def test_validation_and_training_of_two_widths(lengths):
    encoded = toy.encoded(lengths)
    y, _ = toy.targets(32)
    history = toy.model().fit(
        TextBatches(encoded, y, batch_size=8, shuffle=True),
        validation_data=TextBatches(encoded, y, batch_size=8),
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    assert len(history.history["val_loss"]) == 2
