import numpy as np
import pandas as pd
import pytest

from kbert.preprocessing import labels
from kbert.preprocessing.labels import encode_labels, infer_names

NAMES = ["negative", "neutral", "positive"]
VALUES = ["positive", "negative", "positive"]


@pytest.mark.parametrize(
    "values",
    [
        VALUES,
        tuple(VALUES),
        np.array(VALUES),
        np.array(VALUES, dtype=object),
        np.array(VALUES)[:, None],
        [value.encode() for value in VALUES],
        pd.Series(VALUES, index=[4, 5, 6]),
        pd.Series(VALUES, dtype="category"),
        [2, 0, 2],
        [2.0, 0.0, 2.0],
        np.array([2, 0, 2], "uint8"),
        [np.int64(2), np.int64(0), np.int64(2)],
        np.array([[2], [0], [2]]),
        pd.Series([2, 0, 2], dtype="Int64"),
    ],
    ids=lambda values: f"{type(values).__name__} {values!r}"[:40],
)
def test_names_and_indices_become_indices(values):
    targets = encode_labels(values, NAMES, count=3)
    assert targets.dtype == np.int32
    assert targets.tolist() == [2, 0, 2]


def test_order_of_the_names_is_the_callers():
    assert encode_labels(VALUES, NAMES[::-1]).tolist() == [0, 2, 0]


def test_names_are_found_sorted():
    assert infer_names(VALUES) == ("negative", "positive")
    assert infer_names(np.array([1, 0, 2])) == ("0", "1", "2")
    assert encode_labels([1, 0, 2], infer_names([1, 0, 2])).tolist() == [1, 0, 2]


@pytest.mark.parametrize("values", [[1, 2, 3], [0, 4], [10, 11]])
def test_integers_that_are_no_indices_are_not_guessed(values):
    with pytest.raises(ValueError, match=rf"without gaps. Received: \[{values[0]}, "):
        infer_names(values)


@pytest.mark.parametrize(("values", "told"), [(["a", "a"], "'a'"), ([1], "1")])
def test_one_class_only(values, told):
    message = (
        f"at least two classes. Received: {len(values)} labels, all of them {told}"
    )
    with pytest.raises(ValueError, match=message):
        infer_names(values)


def test_one_class_only_among_known_ones():
    labels.check_several_classes(np.array([0, 2]), NAMES)
    with pytest.raises(ValueError, match="2 texts, all of them 'positive'"):
        labels.check_several_classes(np.array([2, 2]), NAMES)


def test_numbers_differ():
    with pytest.raises(ValueError, match="Received: 4 texts, 3 labels"):
        encode_labels(VALUES, NAMES, count=4)


def test_unknown_name():
    message = (
        r"one of \['negative', 'neutral', 'positive'\]. Received: 'good' as label 1"
    )
    with pytest.raises(ValueError, match=message):
        encode_labels(["positive", "good"], NAMES)


@pytest.mark.parametrize("value", [3, -2, 99])
def test_index_out_of_range(value):
    with pytest.raises(ValueError, match=rf"in \[0, 3\). Received: {value} as label 1"):
        encode_labels([0, value], NAMES)


@pytest.mark.parametrize("call", [infer_names, lambda y: encode_labels(y, NAMES)])
def test_hidden_labels_of_a_test_split(call):
    with pytest.raises(ValueError, match="nothing to .*evaluate.*-1 as label 1"):
        call([0, -1, 1])


def test_integers_are_ambiguous_where_names_are_numerals():
    with pytest.raises(ValueError, match="could mean class indices or the names"):
        encode_labels([1, 2], ["1", "2", "3"])
    assert encode_labels(["1", "2"], ["1", "2", "3"]).tolist() == [0, 1]
    assert encode_labels([1, 2], ["0", "1", "2"]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None as label 1"),
        (float("nan"), "nan as label 1"),
        (pd.NA, "<NA> as label 1"),
        (0.5, "regression.*0.5 as label 1"),
        (True, "booleans. Received: True as label 1"),
        ([0, 1, 0], r"argmax. Received: \[0, 1, 0\] as label 1"),
        (object, "class 'object'> as label 1"),
    ],
)
def test_label_of_another_kind(value, told):
    with pytest.raises(TypeError, match=told):
        encode_labels([0, value], NAMES)


def test_booleans_of_an_array():
    with pytest.raises(TypeError, match="booleans. Received: True as label 0"):
        encode_labels(np.array([True, False]), NAMES)


def test_one_hot_rows():
    with pytest.raises(TypeError, match=r"argmax. Received: \[1.0, 0.0, 0.0\]"):
        encode_labels(np.eye(3), NAMES)


def test_names_and_indices_together():
    with pytest.raises(TypeError, match=r"both, as in \['positive', 1\]"):
        encode_labels(["positive", 1], NAMES)


@pytest.mark.parametrize("values", ["positive", 5, {"a": 1}, None], ids=repr)
def test_no_list_of_labels(values):
    with pytest.raises(TypeError, match=f"must be a list. Received: {values!r}"):
        encode_labels(values, NAMES)


# Several labels a text.


@pytest.mark.parametrize(
    "rows",
    [
        [["c"], [], ["a", "b"]],
        [{"c"}, set(), ("b", "a")],
        pd.Series([["c"], [], ["a", "b"]]),
        [[0, 0, 1], [0, 0, 0], [1, 1, 0]],
        np.array([[0, 0, 1], [0, 0, 0], [1, 1, 0]]),
        np.array([[0, 0, 1], [0, 0, 0], [1, 1, 0]], bool),
        pd.DataFrame([[0.0, 0, 1], [0, 0, 0], [1, 1, 0]]),
    ],
    ids=lambda rows: f"{type(rows).__name__} {rows!r}"[:40],
)
def test_several_labels_a_text(rows):
    targets = encode_labels(rows, ["a", "b", "c"], problem="multi_label", count=3)
    assert targets.dtype == np.float32
    assert targets.tolist() == [[0, 0, 1], [0, 0, 0], [1, 1, 0]]


def test_several_labels_are_found():
    assert infer_names([["b"], [], ["a"]], problem="multi_label") == ("a", "b")
    assert infer_names([[0, 1], [1, 1]], problem="multi_label") == ("0", "1")


@pytest.mark.parametrize(
    ("rows", "error", "told"),
    [
        (["a", "b"], TypeError, "list of names.*'a' as label 0"),
        ([["a"], None], TypeError, "list of names.*None as label 1"),
        ([["a"], ["z"]], ValueError, "one of.*'z' as label 1"),
        ([[0, 1, 0], [0, 2, 0]], ValueError, r"0 and 1.*\[0, 2, 0\] as label 1"),
        ([[0, 1, 0], [0, 1]], ValueError, r"equal length.*\[0, 1\] as label 1"),
        ([[0.0, float("nan"), 0.0]], ValueError, "nan, 0.0.* as label 0"),
        ([[0, 1]], ValueError, r"a column for each.*shape \(1, 2\)"),
        ([["a", 1, 0]], ValueError, r"0 and 1.*\['a', 1, 0\]"),
    ],
)
def test_several_labels_of_another_kind(rows, error, told):
    with pytest.raises(error, match=told):
        encode_labels(rows, ["a", "b", "c"], problem="multi_label")


# Numbers.


@pytest.mark.parametrize(
    "values",
    [[1, 2.5], (1, 2.5), np.array([1, 2.5]), [[1], [2.5]], pd.Series([1, 2.5])],
)
def test_numbers_become_a_column(values):
    targets = encode_labels(values, problem="regression", count=2)
    assert targets.dtype == np.float32
    assert targets.tolist() == [[1], [2.5]]


def test_a_regression_may_be_negative():
    assert encode_labels([-1.0], problem="regression").tolist() == [[-1]]


@pytest.mark.parametrize(
    "value", ["2.5", None, float("nan"), float("inf"), True, [1, 2], pd.NA], ids=repr
)
def test_no_finite_number(value):
    with pytest.raises(TypeError, match="one finite number.* as label 1"):
        encode_labels([1.0, value], problem="regression")


def test_unknown_problem():
    with pytest.raises(ValueError, match="Received: 'binary'"):
        encode_labels([0, 1], NAMES, problem="binary")


# Names and weights.


def test_names_are_checked():
    assert labels.check_names(np.array(["a", "b"])) == ("a", "b")


@pytest.mark.parametrize(
    ("names", "error", "told"),
    [
        ("ab", TypeError, "a list of names. Received: 'ab'"),
        (5, TypeError, "Received: 5"),
        (["a", 1], TypeError, "Received: 1 as label 1"),
        (["a", ""], TypeError, "Received: '' as label 1"),
        (["a", "b", "a"], ValueError, "Received: 'a' twice"),
        (["a"], ValueError, r"at least 2 labels. Received: \['a'\]"),
    ],
)
def test_bad_names(names, error, told):
    with pytest.raises(error, match=told):
        labels.check_names(names)


def test_class_weight_by_name_and_index():
    weights = labels.encode_class_weight({"positive": 2, 0: 0.5}, NAMES)
    assert weights == {2: 2.0, 0: 0.5}
    assert labels.encode_class_weight({np.int64(1): 3}, NAMES) == {1: 3.0}


@pytest.mark.parametrize("key", ["good", 3, -1, 0.5, None])
def test_class_weight_of_an_unknown_class(key):
    with pytest.raises(ValueError, match=f"Received: {key!r}"):
        labels.encode_class_weight({key: 1.0}, NAMES)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf")])
def test_class_weight_out_of_range(weight):
    with pytest.raises(ValueError, match=f"class_weight.*Received: {float(weight)}"):
        labels.encode_class_weight({0: weight}, NAMES)


def test_sample_weights():
    weights = labels.check_weights([1, 0.5, 0], 3)
    assert weights.dtype == np.float32
    assert weights.tolist() == [1, 0.5, 0]


@pytest.mark.parametrize(
    ("weights", "told"),
    [([1, 2], r"shape \(2,\) for 3 texts"), ([1, -2, 1], "-2.0 at 1")],
)
def test_bad_sample_weights(weights, told):
    with pytest.raises(ValueError, match=f"sample_weight.*{told}"):
        labels.check_weights(weights, 3)
