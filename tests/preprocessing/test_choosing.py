"""How `choose_layout` weighs one text a row against several."""

import numpy as np
import pytest

from kbert.preprocessing.layouts import (
    ORDERS,
    PackedRows,
    SingleRows,
    check_order,
    check_rows,
    choose_layout,
    choose_widths,
)

RAGGED = np.minimum(3 + np.random.default_rng(0).geometric(0.07, 2000), 128)


def choose(
    lengths,
    rows="auto",
    batch_size=32,
    order="shuffled",
    max_width=512,
    hidden_dim=64,
    **price,
):
    return choose_layout(
        lengths,
        batch_size,
        order,
        rows=rows,
        max_width=max_width,
        hidden_dim=hidden_dim,
        **price,
    )


def test_layout_asked_for_is_chosen():
    for lengths in (RAGGED, [8] * 100, [5] * 1000 + [500]):
        single = choose(lengths, "single")
        assert isinstance(single, SingleRows)
        assert single.widths == sorted(set(lengths))
        alike = choose(lengths, "single", order="alike")
        assert alike.widths == choose_widths(lengths, 512)
        priced = choose(lengths, "single", shape_price=9.0)
        assert priced.widths == choose_widths(lengths, 512, price=9.0)
        assert isinstance(choose(lengths, "packed"), PackedRows)


def test_ragged_texts_are_packed_where_grouping_cannot_help():
    wide = {"hidden_dim": 1000}
    layout = choose(RAGGED, order="given", **wide)
    assert isinstance(layout, PackedRows)
    assert layout.width >= RAGGED.max()
    assert isinstance(choose(RAGGED, shape_price=5000.0, **wide), PackedRows)


@pytest.mark.parametrize("length", [8, 16, 30, 64, 128, 512])
def test_texts_of_one_length_are_not_packed(length):
    assert isinstance(choose([length] * 200), SingleRows)


def test_short_texts_are_not_packed_for_the_sake_of_a_long_one():
    # Three to a row of 16, where a width must be a multiple of 8.
    assert isinstance(choose([5] * 1000, shape_price=1.0), PackedRows)
    assert isinstance(choose([5] * 4000 + [500], shape_price=1.0), SingleRows)


def test_attention_over_wide_rows_is_weighed():
    # The fewest positions, five texts of 102 in 512, pay where the model is wide.
    five = {"lengths": [102] * 500, "batch_size": 100, "shape_price": 1.0}
    assert isinstance(choose(**five, hidden_dim=16), SingleRows)
    assert choose(**five, hidden_dim=100_000).width == 512


def test_long_texts_have_rows_of_their_own_where_all_is_predicted():
    outlier = {"lengths": [*RAGGED, 500], "rows": "packed", "hidden_dim": 384}
    layout = choose(**outlier, order="alike", shape_price=1.0)
    assert layout.width >= 500
    assert layout.narrow < 200
    assert choose(**outlier, order="alike", shape_price=1e9).narrow is None
    for order in ("shuffled", "given", "free"):
        assert choose(**outlier, order=order).narrow is None


@pytest.mark.parametrize("rows", ["auto", "packed", "single"])
def test_layout_knows_the_price_of_shapes(rows):
    assert choose(RAGGED, rows).shape_price == 0
    assert choose(RAGGED, rows, shape_price=7.0).shape_price == 7


def test_price_of_shapes_is_weighed():
    # 8 and 64 cost two prices, packed rows one.
    two = {"lengths": [8] * 100 + [64] * 100, "batch_size": 8, "hidden_dim": 100_000}
    assert choose(**two).widths == [8, 64]
    assert choose(**two, rows="single", shape_price=5500).widths == [8, 64]
    assert choose(**two, rows="single", shape_price=1e9).widths == [64]
    assert choose(**two, shape_price=5500).width == 64


@pytest.mark.parametrize("rows", ["auto", "packed", "single"])
@pytest.mark.parametrize("max_width", [102, 130, 500, 512])
def test_no_row_is_wider_than_the_model(rows, max_width):
    five = {"lengths": [102] * 500, "batch_size": 100, "hidden_dim": 100_000}
    layout = choose(**five, rows=rows, max_width=max_width, shape_price=1.0)
    single = isinstance(layout, SingleRows)
    width = layout.widths[-1] if single else layout.width
    assert 102 <= width <= max_width
    assert (width == 512) == (max_width == 512 and rows != "single")


def test_many_texts_are_judged_by_a_part_of_them():
    assert isinstance(choose([64] * 10_000), SingleRows)
    given = {"order": "given", "hidden_dim": 1000}
    many = choose(np.concatenate([RAGGED] * 5), **given)
    assert many.width == choose(RAGGED, **given).width


@pytest.mark.parametrize("rows", ["one", None, True])
def test_unknown_rows(rows):
    told = f"'auto', 'packed', 'single'.*Received: {rows!r}"
    with pytest.raises(ValueError, match=told):
        check_rows(rows)
    with pytest.raises(ValueError, match=told):
        choose([5], rows)


def test_unknown_order():
    for order in ORDERS:
        check_order(order)
    with pytest.raises(ValueError, match="'alike'.*Received: 'sorted'"):
        check_order("sorted")


def test_batch_without_texts():
    with pytest.raises(ValueError, match="positive. Received: 0"):
        choose([5], batch_size=0)
