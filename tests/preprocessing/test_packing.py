import numpy as np
import pytest

from kbert.preprocessing import packing
from kbert.preprocessing.packing import EncodedTexts, pack
from tests.preprocessing import reference

IDS = {"cls_id": reference.CLS, "sep_id": reference.SEP}


def unpacked(encoded):
    """Return ids and segment ids of every text as lists."""
    texts = []
    for row in range(len(encoded)):
        ids = encoded.token_ids[encoded.row_splits[row] : encoded.row_splits[row + 1]]
        start = encoded.second_starts[row]
        segments = [0] * start + [1] * (len(ids) - start)
        texts.append((ids.tolist(), segments))
    return texts


@pytest.mark.parametrize("long_text", packing.LONG_TEXT)
@pytest.mark.parametrize("max_length", [3, 4, 5, 6, 7, 12, 21])
@pytest.mark.parametrize("pair", [False, True])
def test_pack_equals_slow_reference(pair, max_length, long_text):
    firsts = reference.random_lists(300, 15, seed=0)
    seconds = reference.random_lists(300, 15, seed=1) if pair else None
    encoded = pack(firsts, seconds, **IDS, max_length=max_length, long_text=long_text)
    expected = [
        reference.pack_one(first, second, max_length, long_text)
        for first, second in zip(firsts, seconds or [None] * 300, strict=True)
    ]
    assert unpacked(encoded) == [(ids, segments) for ids, segments, _ in expected]
    assert encoded.num_truncated == sum(lost for *_, lost in expected)
    assert encoded.lengths.max() <= max_length


def test_dtypes():
    encoded = pack([[5], [6, 7]], [[8], []], **IDS, max_length=9)
    assert encoded.token_ids.dtype == np.int32
    assert encoded.row_splits.dtype == np.int64
    assert encoded.second_starts.dtype == np.int32
    assert encoded.lengths.tolist() == [5, 4]


def test_empty_second_text_is_a_single_text():
    single = pack([[5, 6]], **IDS, max_length=8)
    pair = pack([[5, 6]], [[]], **IDS, max_length=8)
    assert unpacked(pair) == unpacked(single) == [([1, 5, 6, 2], [0, 0, 0, 0])]


def test_empty_first_text_keeps_its_second():
    encoded = pack([[]], [[5]], **IDS, max_length=8)
    assert unpacked(encoded) == [([1, 2, 5, 2], [0, 0, 1, 1])]


@pytest.mark.parametrize("count", [packing._CHUNK, packing._CHUNK + 1])
def test_chunks_join_without_a_seam(count):
    lists = reference.random_lists(count, 4, seed=2)
    encoded = pack(lists, lists[::-1], **IDS, max_length=7)
    expected = [
        reference.pack_one(first, second, 7)
        for first, second in zip(lists, lists[::-1], strict=True)
    ]
    assert unpacked(encoded) == [(ids, segments) for ids, segments, _ in expected]
    assert encoded.num_truncated == sum(lost for *_, lost in expected)


def test_no_texts():
    assert len(pack([], **IDS, max_length=8)) == 0


def test_head_tail_of_512_is_that_of_sun_et_al():
    text = list(range(3, 1003))
    encoded = pack([text], **IDS, max_length=512, long_text="head_tail")
    kept = encoded.token_ids[1:-1].tolist()
    assert kept == text[:128] + text[-382:]


def test_select_takes_texts_in_the_order_asked():
    encoded = pack([[5], [6, 7], [], [8]], [[9], [], [3], []], **IDS, max_length=9)
    selected = encoded.select([3, 0, 0])
    everything = unpacked(encoded)
    assert unpacked(selected) == [everything[3], everything[0], everything[0]]


def test_select_nothing():
    assert unpacked(pack([[5]], **IDS, max_length=9).select([])) == []


def test_concatenate_sums_truncations():
    part = pack([[5, 6, 7]], **IDS, max_length=4)
    joined = EncodedTexts.concatenate([part, part])
    assert unpacked(joined) == 2 * unpacked(part)
    assert joined.num_truncated == 2


def test_texts_of_a_pair_differ_in_number():
    with pytest.raises(ValueError, match="2 first and 1 second"):
        pack([[5], [6]], [[7]], **IDS, max_length=9)


def test_unknown_long_text():
    with pytest.raises(ValueError, match="must be one of.*Received: 'tail'"):
        pack([[5]], **IDS, max_length=9, long_text="tail")


@pytest.mark.parametrize(("second", "max_length"), [(None, 1), ([[6]], 2), (None, -3)])
def test_no_room_for_special_tokens(second, max_length):
    with pytest.raises(ValueError, match=rf"special tokens.*Received: {max_length}\."):
        pack([[5]], second, **IDS, max_length=max_length)


@pytest.mark.parametrize("max_length", [True, 8.0, "8"])
def test_length_is_no_integer(max_length):
    with pytest.raises(ValueError, match=f"an integer. Received: {max_length!r}"):
        pack([[5]], **IDS, max_length=max_length)
