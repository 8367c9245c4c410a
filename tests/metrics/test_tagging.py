import json
import pathlib

import numpy as np
import pytest

from kbert.metrics import tagging

GOLDENS = pathlib.Path(__file__).parents[1] / "goldens" / "tagging_seqeval.json"
CASES = json.loads(GOLDENS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_entities_and_scores_are_those_of_seqeval(case):
    for tags, expected in zip(case["truth"], case["entities"], strict=True):
        ours = [[c.type, c.begin, c.end - 1] for c in tagging.chunks(tags)]
        assert ours == expected
    found = tagging.entity_scores(case["truth"], case["predicted"])
    report = case["report"]
    ours = {**found.by_type, "micro avg": found.overall}
    assert set(ours) == set(report) - {"macro avg", "weighted avg"}
    for name, scores in ours.items():
        expected = report[name]
        assert scores == pytest.approx(
            [expected[k] for k in ("precision", "recall", "f1-score", "support")],
            abs=1e-12,
        )


@pytest.mark.parametrize(
    "tags, expected",
    [
        # IOB1: an entity begins with I, and with B only behind one of its type.
        ("I-A I-A B-A O I-B", [("A", 0, 2), ("A", 2, 3), ("B", 4, 5)]),
        # BILOU is IOBES in other letters.
        ("B-A I-A L-A U-A O U-B", [("A", 0, 3), ("A", 3, 4), ("B", 5, 6)]),
        ("S-A S-A B-A E-A", [("A", 0, 1), ("A", 1, 2), ("A", 2, 4)]),
        ("I-A I-B", [("A", 0, 1), ("B", 1, 2)]),
        # Labels of old models for pieces and padding are outside of entities.
        ("B-A X [PAD]", [("A", 0, 1)]),
        ("O O", []),
        ("", []),
    ],
)
def test_entities_by_hand(tags, expected):
    assert tagging.chunks(tags.split()) == expected


def test_half_an_entity_is_none():
    scores = tagging.entity_scores(
        [["B-A", "I-A", "O"], ["B-A"]], [["B-A", "O", "O"], ["B-A"]]
    )
    assert scores.overall == (0.5, 0.5, 0.5, 2)
    assert scores.by_type == {"A": (0.5, 0.5, 0.5, 2)}


def test_scores_without_entities_are_zero():
    assert tagging.entity_scores([["O"]], [["O"]]).overall == (0, 0, 0, 0)


def test_an_entity_ends_with_its_text():
    assert tagging.entity_scores([["B-A"], ["I-A"]], [["B-A"], ["I-A"]]).overall == (
        *(1, 1, 1),
        2,
    )


def test_tables_say_what_the_rule_says():
    labels = ["O", "B-A", "I-A", "E-A", "S-B", "I-B", "X"]
    begins, ends, types = tagging.transitions(labels)
    tags = [tagging.parse_tag(label) for label in [*labels, "O"]]
    for i, a in enumerate(tags):
        for j, b in enumerate(tags):
            assert begins[i, j] == tagging.begins(a, b)
            assert ends[i, j] == tagging.ends(a, b)
            assert (types[i] == types[j]) == (a.type == b.type)
    assert np.array_equal(begins.shape, (8, 8))


def test_tags_that_do_not_stand_beside_each_other():
    with pytest.raises(ValueError, match="Received: 1 and 2 texts"):
        tagging.entity_scores([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="Received: 1 and 2 tags of text 1"):
        tagging.entity_scores([["O"], ["O"]], [["O"], ["O", "O"]])
