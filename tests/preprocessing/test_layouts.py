import itertools

import numpy as np
import pytest

from kbert.preprocessing.layouts import (
    ORDERS,
    PackedRows,
    SingleRows,
    choose_few,
    choose_layout,
    choose_widths,
)
from tests.preprocessing.placements import check_placement

RNG = np.random.default_rng(0)
LENGTHS = np.minimum(3 + RNG.geometric(0.07, 75), 60)
ONCE = [order for order in ORDERS if order != "alike"]  # each text once an epoch


# A few numbers.


def rounded_up(numbers, few):
    return sum(min(n for n in few if n >= number) for number in numbers)


@pytest.mark.parametrize("price", [0, 10, 60, 1e9])
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_few_numbers_cost_least(most, price):
    numbers = np.random.default_rng(most).geometric(0.15, 60)
    chosen = choose_few(numbers, most, price)
    assert chosen == sorted(set(chosen))
    assert chosen[-1] == numbers.max()
    assert all(type(number) is int for number in chosen)

    def cost(few):
        return rounded_up(numbers, few) + price * len(few)

    values = sorted(set(numbers.tolist()))
    possible = (
        some
        for size in range(1, most + 1)
        for some in itertools.combinations(values, size)
        if some[-1] == values[-1]
    )
    assert cost(chosen) == min(map(cost, possible))


def test_the_dearer_a_number_the_fewer_are_chosen():
    numbers = np.arange(1, 100)
    sizes = [len(choose_few(numbers, 4, price)) for price in (0, 600, 1500, 1e9)]
    assert sizes == [4, 3, 2, 1]


def test_no_more_numbers_than_there_are():
    assert choose_few([7]) == [7]
    assert choose_few([9, 4, 4, 9]) == [4, 9]


# Widths.


def padding(lengths, widths):
    return rounded_up(lengths, widths) - sum(lengths)


@pytest.mark.parametrize("max_width", [60, 64, 512])
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_widths_waste_least(most, max_width):
    widths = choose_widths(LENGTHS, max_width, most)
    assert len(widths) == most
    assert widths == sorted(set(widths))
    allowed = [w for w in range(8, max_width, 8)] + [max_width]
    assert set(widths) <= set(allowed)
    possible = itertools.combinations([w for w in allowed if w <= 64], most)
    fitting = [some for some in possible if some[-1] >= LENGTHS.max()]
    least = min(padding(LENGTHS, some) for some in fitting)
    assert padding(LENGTHS, widths) == least


def test_no_more_widths_than_needed():
    assert choose_widths([5, 6, 40], 512) == [8, 40]
    assert choose_widths([5], 512) == [8]


def test_a_width_is_chosen_where_it_saves_its_price():
    lengths = [8] * 10 + [40]  # 8 saves 320 positions
    assert choose_widths(lengths, 512, price=319) == [8, 40]
    assert choose_widths(lengths, 512, price=321) == [40]


@pytest.mark.parametrize("choose", [choose_widths, choose_layout])
def test_widths_without_texts(choose):
    arguments = {"batch_size": 8, "order": "free", "rows": "packed", "hidden_dim": 4}
    arguments = arguments if choose is choose_layout else {}
    with pytest.raises(ValueError, match="at least one text"):
        choose([], max_width=512, **arguments)
    with pytest.raises(ValueError, match="60 tokens, max_width=59"):
        choose([5, 60], max_width=59, **arguments)


# One text a row.


def plan(layout, lengths, order, batch_size=8, seed=0):
    rng = np.random.default_rng(seed)
    return layout.plan(np.asarray(lengths), batch_size, order, rng)


def texts_of(planned):
    return np.concatenate([texts for texts, _ in planned]).tolist()


def widths_of(planned):
    return [placement.width for _, placement in planned]


def row_counts_of(planned):
    return [placement.num_rows for _, placement in planned]


@pytest.mark.parametrize("order", ORDERS)
def test_single_rows_are_the_narrowest_of_few(order):
    layout = SingleRows([64, 16, 32])
    assert layout.widths == [16, 32, 64]
    planned = plan(layout, LENGTHS, order)
    for texts, placement in planned:
        assert placement.rows.tolist() == list(range(len(texts)))
        assert placement.num_rows == len(texts)
        assert set(placement.starts) == {0} and set(placement.numbers) == {1}
        longest = LENGTHS[texts].max()
        assert placement.width == min(w for w in (16, 32, 64) if w >= longest)
    assert len(set(widths_of(planned))) > 1


def test_single_rows_of_a_pool_are_grouped_by_width():
    lengths = np.random.default_rng(0).permutation(np.repeat([6, 30], 500))
    planned = plan(SingleRows([8, 32]), lengths, "shuffled", batch_size=10)
    assert widths_of(planned).count(32) <= 50 + 4  # one mixed batch a pool
    changes = np.count_nonzero(np.diff(widths_of(planned)))
    assert changes > 25  # and come in no order of their widths


def test_single_rows_begin_with_the_longest_texts_where_order_is_free():
    for order in ("free", "alike"):
        lengths = LENGTHS[texts_of(plan(SingleRows([64]), LENGTHS, order))].tolist()
        assert lengths == sorted(lengths, reverse=True)


def test_single_rows_alike_repeat_texts_in_the_last_batch():
    planned = plan(SingleRows([64]), LENGTHS, "alike")
    assert [len(texts) for texts, _ in planned] == [8] * 10
    assert set(texts_of(planned)) == set(range(75))
    assert texts_of(planned[:-1]) == list(dict.fromkeys(texts_of(planned)))[:72]


@pytest.mark.parametrize(
    ("shape_price", "batch_size", "size"), [(0, 8, 5), (9, 16, 8), (9, 6, 6), (9, 5, 5)]
)
def test_few_texts_alike_are_one_batch_of_about_their_number(
    shape_price, batch_size, size
):
    layout = SingleRows([64], shape_price)
    planned = plan(layout, LENGTHS[:5], "alike", batch_size)
    assert [len(texts) for texts, _ in planned] == [size]
    assert set(texts_of(planned)) == set(range(5))


def test_first_two_single_batches_differ_in_width_where_any_do():
    lengths = [40] * 24 + [5] * 8
    layout = SingleRows([8, 40])
    assert widths_of(plan(layout, lengths, "free")) == [40, 8, 40, 40]
    for seed in range(5):
        found = widths_of(plan(layout, lengths * 8, "shuffled", seed=seed))
        assert len(set(found)) == len(set(found[:2])) == 2


def test_given_single_batches_are_of_one_width_or_begin_with_two():
    # From the first two Keras concludes on TensorFlow which sizes may vary.
    found = widths_of(plan(SingleRows([8, 40]), [40] * 24 + [5] * 8, "given"))
    assert len(set(found)) == len(set(found[:2]))


# Several texts a row.


@pytest.mark.parametrize("shape_price", [0, 500])
@pytest.mark.parametrize("order", ONCE)
def test_packed_batches_hold_each_text_once(order, shape_price):
    planned = plan(PackedRows(64, shape_price), LENGTHS, order)
    assert [len(texts) for texts, _ in planned] == [8] * 9 + [3]
    assert sorted(texts_of(planned)) == list(range(75))
    assert set(widths_of(planned)) == {64}
    for texts, placement in planned:
        check_placement(placement, LENGTHS[texts])


@pytest.mark.parametrize("order", ONCE)
def test_packed_rows_are_as_few_as_a_batch_needs(order):
    for texts, placement in plan(PackedRows(64), LENGTHS, order):
        assert len(set(placement.rows)) == placement.num_rows
        # No row could be emptied into another.
        used = np.sort(np.bincount(placement.rows, LENGTHS[texts]))
        assert len(used) == 1 or used[:2].sum() > 64


def test_packed_batches_hold_about_as_much_where_order_is_free():
    planned = plan(PackedRows(64), LENGTHS, "free")
    tokens = [LENGTHS[texts].sum() for texts, _ in planned[:-1]]
    assert max(tokens) - min(tokens) < LENGTHS.max() - LENGTHS.min()
    last = planned[-1].texts
    assert LENGTHS[last].max() <= np.sort(LENGTHS)[3]  # the shortest are left over


@pytest.mark.parametrize("layout", [SingleRows([64]), PackedRows(64)])
def test_given_order_is_kept(layout):
    assert texts_of(plan(layout, LENGTHS, "given")) == list(range(75))


@pytest.mark.parametrize("shape_price", [0, 500])
@pytest.mark.parametrize("layout", [SingleRows, PackedRows])
def test_shuffled_order_depends_on_the_generator_alone(layout, shape_price):
    def made():
        return SingleRows([64]) if layout is SingleRows else layout(64, shape_price)

    first = plan(made(), LENGTHS, "shuffled", seed=1)
    again = plan(made(), LENGTHS, "shuffled", seed=1)
    assert texts_of(first) == texts_of(again)
    assert row_counts_of(first) == row_counts_of(again)
    assert texts_of(plan(made(), LENGTHS, "shuffled", seed=2)) != texts_of(first)


def test_dear_shapes_are_few_and_stay_so_in_later_epochs():
    lengths = np.minimum(3 + np.random.default_rng(0).geometric(0.07, 800), 60)

    def counts(layout):
        epochs = [plan(layout, lengths, "shuffled", 32, seed) for seed in range(10)]
        return [set(row_counts_of(planned)) for planned in epochs]

    cheap = counts(PackedRows(64))
    assert len(cheap[0]) > 3
    dear = counts(PackedRows(64, 1))
    assert len(dear[0]) == 3
    assert max(dear[0]) >= max(cheap[0])
    # Chosen from more batches than an epoch has, so that hardly another comes later.
    assert len(set.union(*dear)) <= 4
    assert len(set.union(*dear)) < len(set.union(*cheap))
    assert len(counts(PackedRows(64, 1e9))[0]) == 1


# Packed, and every batch alike.


@pytest.mark.parametrize("shape_price", [0, 500])
@pytest.mark.parametrize("narrow", [None, 8, 16, 32])
@pytest.mark.parametrize("count", [1, 2, 5, 40, 75])
def test_packed_batches_alike_have_one_shape_a_width(count, narrow, shape_price):
    lengths = LENGTHS[:count]
    layout = PackedRows(64, shape_price, narrow)
    planned = plan(layout, lengths, "alike", batch_size=16)
    shapes = {(placed.width, placed.num_rows, len(texts)) for texts, placed in planned}
    assert len(shapes) == len(set(widths_of(planned)))
    assert set(widths_of(planned)) <= {64, narrow or 64}
    assert len(set(widths_of(planned)[:2])) == len(shapes)
    for texts, placed in planned:
        assert (placed.width == 64) == (lengths[texts].max() > (narrow or 0))
    assert set(texts_of(planned)) == set(range(count))
    places = {}
    for batch, (texts, placement) in enumerate(planned):
        once = np.unique(texts, return_index=True)[1]
        part = placement.select(once, placement.rows[once], placement.num_rows)
        check_placement(part, lengths[texts[once]])
        found = (placement.rows, placement.starts, placement.numbers)
        for text, *place in zip(texts, *found, strict=True):
            # Repeated in its own place, or not at all.
            assert places.setdefault(text, (batch, *place)) == (batch, *place)


def test_packed_batches_alike_hold_about_batch_size_texts_and_waste_little():
    lengths = np.minimum(3 + np.random.default_rng(0).geometric(0.07, 800), 60)
    planned = plan(PackedRows(64), lengths, "alike", batch_size=32)
    assert len(planned) == pytest.approx(800 / 32, rel=0.1)
    assert lengths.sum() / (64 * sum(row_counts_of(planned))) > 0.95
    assert len(texts_of(planned)) < 1.3 * 800  # few are listed again


@pytest.mark.parametrize(("shape_price", "rows"), [(0, 5), (500, 8)])
def test_few_texts_alike_have_a_power_of_two_of_rows_where_shapes_are_dear(
    shape_price, rows
):
    planned = plan(PackedRows(64, shape_price), [40] * 5, "alike", batch_size=32)
    assert row_counts_of(planned) == [rows]
    assert len(planned[0].texts) == rows


def test_short_texts_lie_with_the_long_before_they_are_rows_of_their_own():
    lengths = np.array([50] * 4 + [14] * 9)
    planned = plan(PackedRows(64, narrow=16), lengths, "alike", batch_size=32)
    assert sorted(widths_of(planned)) == [16, 64]
    texts, wide = max(planned, key=lambda some: some.placement.width)
    assert wide.num_rows == 4
    assert len(texts) == 8


def test_text_wider_than_a_packed_row():
    for order in ORDERS:
        with pytest.raises(ValueError, match="40 tokens, width=32"):
            plan(PackedRows(32), [5, 40, 20], order)
