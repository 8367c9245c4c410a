import itertools
import pickle

import keras
import numpy as np
import pytest

from kbert.preprocessing.batching import TextBatches
from kbert.preprocessing.layouts import ORDERS, PackedRows, SingleRows
from tests.preprocessing import toy

RNG = np.random.default_rng(0)
LENGTHS = np.minimum(3 + RNG.geometric(0.07, 75), 60)
ONCE = [order for order in ORDERS if order != "alike"]  # each text once an epoch
LAYOUTS = {
    "single": lambda: SingleRows([64, 16, 32]),
    "packed": lambda: PackedRows(64),
    "packed, few shapes": lambda: PackedRows(64, shape_price=1000),
}


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]()


# Batches.


def batched(layout, order="free", lengths=LENGTHS, **arguments):
    arguments = {"batch_size": 8, "seed": 3, **arguments}
    return TextBatches(toy.encoded(lengths), order=order, layout=layout, **arguments)


def all_inputs(batches):
    return [batches[index][0] for index in range(len(batches))]


def texts_in(inputs):
    """The token ids of every text of a batch, in the order of its outputs."""
    ids, mask = inputs["token_ids"], inputs["padding_mask"]
    every_row = np.arange(len(mask)) * mask.shape[1]
    texts = []
    for first in inputs.get("first_positions", every_row):
        row = first // mask.shape[1]
        texts.append(ids[row][mask[row] == mask.flat[first]].tolist())
    return texts


def texts_of(batches):
    return sum(map(texts_in, all_inputs(batches)), [])


def texts_told(batches):
    """The same from the encoded texts and the order that the batches tell."""
    pairs = list(itertools.pairwise(batches.encoded.row_splits))
    return [
        batches.encoded.token_ids[slice(*pairs[text])].tolist()
        for text in batches.order_of_texts
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_order_says_which_text_is_where(layout, order):
    batches = batched(layout, order)
    assert set(batches.order_of_texts) == set(range(75))
    assert order == "alike" or len(batches.order_of_texts) == 75
    assert texts_of(batches) == texts_told(batches)
    restored = batches.restore(np.array([[len(text)] for text in texts_of(batches)]))
    assert restored[:, 0].tolist() == LENGTHS.tolist()


@pytest.mark.parametrize("order", ONCE)
def test_exactly_batch_size_texts_but_in_the_last(layout, order):
    batches = batched(layout, order)
    assert len(batches) == 10
    sizes = [len(texts_in(inputs)) for inputs in all_inputs(batches)]
    assert sizes == [8] * 9 + [3]


def test_given_order_is_kept(layout):
    assert batched(layout, "given").order_of_texts.tolist() == list(range(75))


def test_batches_alike_have_one_number_of_texts(layout):
    batches = batched(layout, "alike")
    sizes = {len(texts_in(inputs)) for inputs in all_inputs(batches)}
    assert len(sizes) == 1
    shapes = {inputs["token_ids"].shape for inputs in all_inputs(batches)}
    assert len(shapes) == 1 or isinstance(layout, SingleRows)


@pytest.mark.parametrize("order", ORDERS)
def test_shapes_and_share_are_those_of_the_batches(layout, order):
    batches = batched(layout, order, lengths=LENGTHS[:72])
    masks = [inputs["padding_mask"] for inputs in all_inputs(batches)]
    assert batches.shapes == sorted({mask.shape for mask in masks})
    used = sum(np.count_nonzero(mask) for mask in masks)
    assert batches.share_used == used / sum(mask.size for mask in masks)


@pytest.mark.parametrize("order", ORDERS)
def test_first_positions_tell_of_several_texts_a_row(layout, order):
    names = {"token_ids", "segment_ids", "padding_mask"}
    for inputs in all_inputs(batched(layout, order)):
        told = set() if isinstance(layout, SingleRows) else {"first_positions"}
        assert set(inputs) == names | told
        assert (inputs["padding_mask"].max() > 1) <= bool(told)


def test_rows_are_filled_with_the_pad_id(layout):
    for inputs in all_inputs(batched(layout, pad_id=99)):
        pad = inputs["padding_mask"] == 0
        assert set(inputs["token_ids"][pad]) <= {99}
        assert not inputs["segment_ids"][pad].any()


def test_one_text_a_row_in_a_few_widths_where_nobody_says():
    batches = batched(None)
    assert isinstance(batches.layout, SingleRows)
    assert len(batches.layout.widths) == 4
    assert batches.layout.widths[-1] == LENGTHS.max()  # 60, no multiple of 8


def test_epochs_differ_and_depend_on_the_seed_alone(layout):
    orders = []
    for _ in range(2):
        batches = batched(pickle.loads(pickle.dumps(layout)), "shuffled", seed=5)
        for _ in range(3):
            batches.on_epoch_begin()
            texts = [texts_in(batches[index][0]) for index in range(10)]
            orders.append((texts, batches.order_of_texts.tolist(), batches.shapes))
            batches.on_epoch_end()
    assert orders[:3] == orders[3:]
    assert orders[0][1] != orders[1][1] != orders[2][1]
    other = batched(layout, "shuffled", seed=6)
    assert orders[0][1] != other.order_of_texts.tolist()


def test_looking_at_a_batch_does_not_use_up_an_epoch(layout):
    batches = batched(layout, "shuffled", batch_size=60)
    order = batches.order_of_texts.tolist()
    batches[0], batches[1]  # as Keras does on TensorFlow before it begins
    batches.on_epoch_begin()
    batches[0]
    batches.on_epoch_end()
    batches.on_epoch_begin()
    assert batches.order_of_texts.tolist() == order


def test_a_run_can_be_continued(layout):
    batches = batched(layout, "shuffled")
    first = batches.order_of_texts.tolist()
    batches.epoch = 1
    assert batches.order_of_texts.tolist() != first
    batches.epoch = 0
    assert batches.order_of_texts.tolist() == first


@pytest.mark.parametrize("order", ["free", "given", "alike"])
def test_other_orders_are_the_same_each_epoch(layout, order):
    batches = batched(layout, order)
    first = texts_of(batches)
    for _ in range(2):
        batches.on_epoch_begin()
        assert texts_of(batches) == first
        batches.on_epoch_end()
    assert batches.epoch == 0


def test_seed_comes_from_keras(layout):
    orders = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        batches = batched(layout, "shuffled", seed=None)
        orders.append(batches.order_of_texts.tolist())
    assert orders[0] == orders[1] != orders[2]


def test_targets_may_be_structured(layout):
    y = {"a": np.arange(75), "b": np.arange(150).reshape(75, 2)}
    batches = batched(layout, y=y)
    _, found = batches[3]
    expected = batches.order_of_texts[24:32]
    assert found["a"].tolist() == expected.tolist()
    assert found["b"][:, 0].tolist() == (2 * expected).tolist()


def test_batches_travel_to_another_process(layout):
    batches = batched(layout, "shuffled")
    copy = pickle.loads(pickle.dumps(batches))
    assert texts_of(copy) == texts_of(batches)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"y": np.zeros(74)}, "`y` must.*74 entries for 75 texts"),
        (
            {"y": np.zeros(75), "sample_weight": np.zeros(3)},
            "`sample_weight` must.*3 entries for 75 texts",
        ),
        ({"sample_weight": np.zeros(75)}, "Weights need targets"),
        ({"layout": SingleRows([16, 32])}, "60 tokens.*32"),
        ({"layout": PackedRows(32)}, r"\d\d tokens, width=32"),
        ({"batch_size": 0}, "positive. Received: 0"),
        ({"y": np.zeros(75), "order": "alike"}, "Received: order='alike'"),
        ({"order": "sorted"}, "Received: 'sorted'"),
    ],
)
def test_bad_batches(arguments, told):
    with pytest.raises(ValueError, match=told):
        TextBatches(toy.encoded(LENGTHS), **arguments)


@pytest.mark.parametrize("layout", [None, SingleRows([16]), PackedRows(16)])
def test_batches_of_nothing(layout):
    with pytest.raises(ValueError, match="at least one text"):
        TextBatches(toy.encoded([5]).select([]), layout=layout)


# Keras.


@pytest.mark.parametrize("weighting", ["none", "sample", "class"])
def test_fit_is_that_over_plain_arrays(layout, weighting):
    encoded = toy.encoded(LENGTHS[:64])
    y, weights = toy.targets(64)
    weights = weights if weighting == "sample" else None
    class_weight = {0: 0.2, 1: 1.0, 2: 3.0} if weighting == "class" else None
    batches = TextBatches(encoded, y, weights, batch_size=8, layout=layout)
    order = batches.order_of_texts
    one, other = toy.model(), toy.model()
    told = one.fit(
        batches, shuffle=False, epochs=2, class_weight=class_weight, verbose=0
    )
    expected = other.fit(
        toy.plain(encoded, order, 64),
        y[order],
        sample_weight=None if weights is None else weights[order],
        class_weight=class_weight,
        batch_size=8,
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    assert told.history["loss"] == pytest.approx(expected.history["loss"], abs=1e-5)
    for ours, theirs in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def logits_of(model, encoded):
    every = toy.plain(encoded, np.arange(len(encoded)), 64)
    return keras.ops.convert_to_numpy(model(every))


@pytest.mark.parametrize("weighted", [False, True])
def test_reported_loss_is_the_mean_over_texts(layout, weighted):
    encoded = toy.encoded(LENGTHS)
    y, weights = toy.targets(75)
    model = toy.model(weighted_metrics=["accuracy"])
    batches = TextBatches(
        encoded, y, weights if weighted else None, batch_size=32, layout=layout
    )
    loss, accuracy = model.evaluate(batches, verbose=0)
    logits = logits_of(model, encoded)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    losses, right = -logs[np.arange(75), y], logits.argmax(axis=1) == y
    weights = weights if weighted else np.ones(75)
    assert loss == pytest.approx((losses * weights).mean(), abs=1e-5)
    assert accuracy == pytest.approx(np.average(right, weights=weights), abs=1e-6)


def test_predictions_are_restored_to_the_order_of_the_texts(layout):
    model = toy.model()
    expected = logits_of(model, toy.encoded(LENGTHS))
    for order in ORDERS:
        batches = batched(layout, order, batch_size=16)
        restored = batches.restore(model.predict(batches, verbose=0))
        np.testing.assert_allclose(restored, expected, atol=1e-5)


def test_shuffled_fit_sees_every_text_each_epoch_on_every_backend(layout):
    encoded = toy.encoded(LENGTHS)
    seen = []

    class Spy(TextBatches):
        def on_epoch_end(self):
            seen.append((self.epoch, self.order_of_texts.tolist()))

    y, _ = toy.targets(75)
    batches = Spy(encoded, y, batch_size=40, order="shuffled", layout=layout, seed=1)
    toy.model().fit(batches, epochs=3, shuffle=False, verbose=0)
    expected = []
    for epoch in range(3):
        batches.epoch = epoch
        expected.append((epoch, batches.order_of_texts.tolist()))
    # Keras also ends an epoch before the first.
    assert seen[-3:] == expected
    assert {epoch for epoch, _ in seen[:-3]} <= {0}


@pytest.mark.parametrize("order", ["shuffled", "given"])
@pytest.mark.parametrize("lengths", [[30] * 16 + [5] * 16, [5] * 16 + [30] * 16])
def test_validation_and_training_of_two_shapes(layout, lengths, order):
    encoded = toy.encoded(lengths)
    y, _ = toy.targets(32)
    history = toy.model().fit(
        TextBatches(encoded, y, batch_size=8, order=order, layout=layout),
        validation_data=TextBatches(encoded, y, batch_size=8, layout=layout),
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    assert len(history.history["val_loss"]) == 2
