"""Answers as people write them, and what is none."""

import numpy as np
import pytest

from kbert.data.squad import Answer
from kbert.preprocessing.gold_answers import read_answers

MAY = Answer("May", 3)


@pytest.mark.parametrize(
    "y",
    [
        [MAY, []],
        [("May", 3), ()],
        [[("May", 3)], []],
        ([["May", 3]], []),
        [{"text": "May", "answer_start": 3}, []],
        [[{"text": "May", "answer_start": 3}], []],
        [
            {"text": ["May"], "answer_start": [3]},
            {"text": [], "answer_start": []},
        ],
        {"text": ["May", ""], "answer_start": [3, -1]},
        {"text": np.array([b"May", b""]), "answer_start": np.array([3, -1])},
        {"text": [["May"], []], "answer_start": [[3], []]},
    ],
)
def test_ways_to_write_answers(y):
    assert read_answers(y, 2) == [[MAY], []]


def test_several_answers():
    y = [[("May", np.int64(3)), ("in May", 0)]]
    assert read_answers(y, 1) == [[MAY, Answer("in May", 0)]]
    columns = {"text": [["May", "in May"]], "answer_start": [[3, 0]]}
    assert read_answers(columns, 1) == [[MAY, Answer("in May", 0)]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([MAY], "2 questions, answers to 1"),
        ("May", "must be a list.*'May'"),
        (3, "must be a list.*'3'"),
        ([MAY, "May"], r"\[\] says.*'May' for question 1"),
        ([MAY, None], "'None' for question 1"),
        ([MAY, ["May", 3]], "'May' for question 1"),
        ([MAY, ("May",)], "for question 1"),
        ([MAY, ("May", "3")], "start '3' for question 1"),
        ([MAY, ("May", 3.0)], "start 3.0 for question 1"),
        ([MAY, ("May", True)], "start True"),
        ([MAY, ("May", -1)], "'May' with the start -1 for question 1"),
        ([MAY, (" ", 3)], "' ' with the start 3 for question 1"),
        ([MAY, {"text": "May"}], r"keys \['answer_start', 'text'\].*question 1"),
        ([MAY, {"text": ["a"], "answer_start": []}], "1 texts and 0 starts for quest"),
        ({"text": ["a"], "answer_start": [1, 2]}, "1 texts and 2 starts for all"),
        ({"text": ["a", "b"], "answer_start": [1, -2]}, "'b' with the start -2"),
    ],
)
def test_what_is_no_answer_is_refused(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_answers(y, 2)
