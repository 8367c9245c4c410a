import collections

import keras
import numpy as np
import pandas as pd
import pytest

from kbert.preprocessing.raw_text import is_raw, read_raw, split_pair

TEXTS = ["one", "zwei", "три"]
SERIES = pd.Series(TEXTS, index=[7, 8, 9])
BATCHES = {
    "list": TEXTS,
    "unicode array": np.array(TEXTS),
    "object array": np.array(TEXTS, dtype=object),
    "string array": np.array(TEXTS, dtype=np.dtypes.StringDType()),
    "bytes": [text.encode() for text in TEXTS],
    "array of bytes": np.array([text.encode() for text in TEXTS]),
    "numpy strings": [np.str_(text) for text in TEXTS],
    "series": SERIES,
    "series of objects": SERIES.astype(object),
    "series of strings": SERIES.astype("string"),
    "series of categories": SERIES.astype("category"),
    "index": pd.Index(TEXTS),
    "deque": collections.deque(TEXTS),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_every_kind_of_batch(kind):
    texts = read_raw(BATCHES[kind])
    assert texts == (TEXTS, None, False)
    assert {type(text) for text in texts.first} == {str}


@pytest.mark.parametrize("kind", BATCHES)
def test_every_kind_of_batch_is_raw(kind):
    assert is_raw(BATCHES[kind])
    assert is_raw((BATCHES[kind], BATCHES[kind]))


@pytest.mark.parametrize("kind", BATCHES)
def test_every_kind_of_pair(kind):
    expected = (TEXTS, TEXTS, False)
    assert read_raw((BATCHES[kind], TEXTS)) == expected
    assert read_raw({"first": TEXTS, "second": BATCHES[kind]}) == expected


@pytest.mark.parametrize(
    "one", ["один", "один".encode(), np.str_("один"), np.array("один")]
)
def test_one_text(one):
    assert read_raw(one) == (["один"], None, True)
    assert read_raw({"first": one, "second": "b"}) == (["один"], ["b"], True)
    assert is_raw(one)


@pytest.mark.parametrize(
    "ready",
    [
        {"token_ids": [[2, 3]]},
        np.zeros((2, 3), "int32"),
        (np.zeros(3), np.zeros(3)),
        [[2, 3], [4, 5]],
        [1, 2],
        pd.Series([1, 2]),
        pd.Series([1.5, 2], dtype="Float64"),
        5,
        None,
        (text for text in TEXTS),
    ],
    ids=repr,
)
def test_what_is_no_text_is_not_raw(ready):
    assert not is_raw(ready)


@pytest.mark.parametrize(
    "bad", [[], [None], [None, "a"], [1, "a"], [("a", "b")], np.array([])]
)
def test_bad_text_is_raw_so_that_it_is_refused_as_text(bad):
    assert is_raw(bad) == (not isinstance(bad, np.ndarray))


def test_tensors_of_numbers_are_not_raw():
    assert not is_raw(keras.ops.ones((2, 3)))
    assert not is_raw(keras.Input((3,), dtype="int32"))
    assert is_raw(keras.Input((), dtype="string"))


@pytest.mark.parametrize("empty", [[], np.array([], dtype=object), pd.Series([])])
def test_no_text_at_all(empty):
    with pytest.raises(ValueError, match="at least one text. Received: none"):
        read_raw(empty)
    with pytest.raises(ValueError, match="at least one second text"):
        read_raw((["a"], empty))


MISSING = [None, float("nan"), np.nan, pd.NA, pd.NaT, np.float64("nan")]


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_missing_text_is_named_by_its_index(missing):
    with pytest.raises(TypeError, match="drop missing ones.* as text 1"):
        read_raw(["a", missing])
    with pytest.raises(TypeError, match="drop missing ones.* as second text 1"):
        read_raw((["a", "b"], ["c", missing]))


@pytest.mark.parametrize("dtype", ["str", "string", "object", "category"])
def test_missing_text_of_a_column_is_named_by_its_place(dtype):
    column = pd.Series(["a", None, "b"], index=[5, 6, 7], dtype=dtype)
    assert is_raw(column)
    with pytest.raises(TypeError, match="drop missing ones.* as text 1"):
        read_raw(column)


@pytest.mark.parametrize("item", [3, 2.5, True, object, {"a": 1}], ids=repr)
def test_text_of_another_type_is_named_by_its_index(item):
    with pytest.raises(TypeError, match=f"type {type(item).__name__} as text 1"):
        read_raw(["a", item])


def test_bytes_that_are_not_utf8_are_named_by_place():
    with pytest.raises(ValueError, match="text 1 with byte 0xe9 at position 3"):
        read_raw(["a", b"caf\xe9"])
    with pytest.raises(ValueError, match="first text 0 with byte 0xe9 at position 3"):
        read_raw({"first": b"caf\xe9", "second": "b"})


@pytest.mark.parametrize(
    "rows", [[("a", "b"), ("c", "d")], [["a", "b"]], [np.array(["a", "b"])]]
)
def test_rows_of_pairs(rows):
    with pytest.raises(TypeError, match=r"\(firsts, seconds\).*'b'.* as text 0"):
        read_raw(rows)


@pytest.mark.parametrize(
    "matrix",
    [np.array([["a", "b"]]), pd.DataFrame({"a": ["x"], "b": ["y"]})],
    ids=["array", "frame"],
)
def test_columns_of_pairs(matrix):
    with pytest.raises(ValueError, match=r"one-dimensional.*shape \(1, 2\)"):
        read_raw(matrix)


@pytest.mark.parametrize("strings", [("a", "b"), ("a",), ("a", "b", "c"), (b"a", "b")])
def test_tuple_of_strings_could_mean_two_things(strings):
    with pytest.raises(ValueError, match="could mean.*'a', 'b'|could mean.*'a'"):
        read_raw(strings)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_tuple_is_a_pair(count):
    with pytest.raises(ValueError, match=f"two segments.*a tuple of {count}"):
        read_raw((["a"],) * count)


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ((["a", "b"], ["c"]), "2 texts first and 1 texts second"),
        ((["a"], "b"), "1 texts first and one string second"),
        ({"first": "a", "second": ["b"]}, "one string first and 1 texts second"),
    ],
)
def test_texts_of_a_pair_differ_in_number(pair, told):
    with pytest.raises(ValueError, match=f"needs a second one. Received: {told}"):
        read_raw(pair)


@pytest.mark.parametrize(
    "keys", [{"second": ["a"]}, {"first": ["a"], "label": [1]}, {"text": ["a"]}, {}]
)
def test_dictionary_with_other_keys(keys):
    with pytest.raises(ValueError, match=r'keys "first".*Received: \[') as told:
        split_pair(keys)
    assert str(sorted(keys)) in str(told.value)


@pytest.mark.parametrize("x", [5, None, {"a"}, object()], ids=repr)
def test_no_collection_of_texts(x):
    with pytest.raises(TypeError, match=f"type {type(x).__name__}"):
        read_raw(x)


def test_generator_has_no_length():
    with pytest.raises(TypeError, match=r"have a length.*generator; pass list\(x\)"):
        read_raw(text for text in TEXTS)
