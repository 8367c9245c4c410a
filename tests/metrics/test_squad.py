"""Scores of SQuAD against cases worked out by hand from the official scripts."""

import itertools

import numpy as np
import pytest

from kbert.metrics import squad


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("The  Cat", "cat"),
        ("a an the", ""),
        ("theatre another", "theatre another"),
        ("U.S.A.", "usa"),
        ("it's 3.5%", "its 35"),
        ("the-end", "theend"),  # punctuation goes first, then the articles
        ("x the, y", "x y"),
        (" 1\u00a02\n3\t", "1 2 3"),
        ("“quoted”", "“quoted”"),  # not ASCII
        ("É", "é"),
        ("", ""),
    ],
)
def test_normalisation(text, normalised):
    assert squad.normalize_answer(text) == normalised


@pytest.mark.parametrize(
    ("predicted", "gold", "exact", "f1"),
    [
        ("the May", "may!", 1.0, 1.0),
        ("in May", "May", 0.0, 2 / 3),
        ("May May", "May", 0.0, 2 / 3),  # a word counts as often as both have it
        ("May May June", "May May", 0.0, 0.8),
        ("June", "May", 0.0, 0.0),
        ("", "May", 0.0, 0.0),
        ("a", "the", 1.0, 0.0),  # so does evaluate-v1.1.py
    ],
)
def test_an_answer_by_version_1(predicted, gold, exact, f1):
    assert squad.exact_match(predicted, gold) == exact
    assert squad.f1(predicted, gold) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [("", "", 1.0), ("a", "the", 1.0), ("May", "", 0.0), ("", "May", 0.0)],
)
def test_an_answer_without_words_by_version_2(predicted, gold, f1):
    assert squad.f1(predicted, gold, version="2.0") == f1


def test_the_closest_gold_answer_counts():
    exact, f1 = squad.answer_scores(["in May"], [["June", "May", "in the May"]])
    assert (exact.tolist(), f1.tolist()) == ([1.0], [1.0])


def test_scores_of_version_1():
    scores = squad.squad_scores(["May", "in May", "June"], [["May"], ["May"], ["May"]])
    assert scores == pytest.approx({"exact_match": 100 / 3, "f1": 500 / 9})


def test_scores_of_version_2():
    gold = [["May"], ["May"], [], []]
    scores = squad.squad_scores(["May", "", "", "June"], gold)
    assert scores == {
        "exact_match": 50.0,
        "f1": 50.0,
        "has_answer_exact_match": 50.0,
        "has_answer_f1": 50.0,
        "no_answer_exact_match": 50.0,
        "no_answer_f1": 50.0,
    }


def test_a_gold_answer_without_words_is_dropped_by_version_2():
    # evaluate-v2.0.py: answers that normalise to nothing do not count.
    exact, _ = squad.answer_scores(["", ""], [["the", "May"], []])
    assert exact.tolist() == [0.0, 1.0]


def test_nothing_to_score_is_refused():
    with pytest.raises(ValueError, match="1 predicted answers for 2 questions"):
        squad.squad_scores(["May"], [["May"], ["June"]])
    with pytest.raises(ValueError, match="0 predicted answers for 0 questions"):
        squad.squad_scores([], [])


# --- the threshold -------------------------------------------------------------------


def score_at(threshold, scores, has_answer, margins):
    """Percent with a threshold, by its definition."""
    given = margins <= threshold
    return 100 * np.where(has_answer, scores * given, ~given).mean()


def test_best_threshold_is_the_best_of_all():
    rng = np.random.default_rng(0)
    for _ in range(50):
        size = rng.integers(1, 9)
        scores = rng.choice([0.0, 0.5, 1.0], size)
        has_answer = rng.random(size) < 0.5
        margins = rng.integers(-3, 3, size).astype(float)  # with ties
        found = squad.best_threshold(scores, has_answer, margins)
        data = (scores, has_answer, margins)
        assert score_at(found.threshold, *data) == pytest.approx(found.score)
        tried = [score_at(t, *data) for t in np.arange(-4.0, 4.0)]
        assert found.score == pytest.approx(max(tried))


def test_threshold_of_the_official_script():
    # find_best_thresh of evaluate-v2.0.py by hand: 2 without an answer score 2 at
    # first; by margin: +1, -1, +0.5, -1.
    found = squad.best_threshold(
        np.array([1.0, 0.0, 0.5, 0.0]),
        np.array([True, False, True, False]),
        np.array([-2.0, -1.0, 0.5, 3.0]),
    )
    # The script takes -2.0, the margin itself; a digit less, and its answer is gone.
    assert found == squad.Threshold(75.0, -1.5)


def test_where_nothing_should_be_answered():
    found = squad.best_threshold(
        np.zeros(2), np.array([False, True]), np.array([1.0, 2])
    )
    assert found.score == 50.0 and found.threshold == 0.0


def test_the_best_threshold_bears_noise():
    """The same model elsewhere has other last digits."""
    rng = np.random.default_rng(1)
    scores, has_answer = rng.random(30), rng.random(30) < 0.6
    margins = rng.normal(size=30)
    found = squad.best_threshold(scores, has_answer, margins)
    noisy = margins + rng.normal(size=30) * 1e-6
    score = score_at(found.threshold, scores, has_answer, noisy)
    assert score == pytest.approx(found.score)


@pytest.mark.parametrize("margins", [[1.0], [np.nan, 1.0], [[1.0, 2.0]]])
def test_bad_margins_are_refused(margins):
    with pytest.raises(ValueError, match="must be numbers of the shape"):
        squad.best_threshold(np.ones(2), np.ones(2, bool), np.array(margins))


# --- against the official words, over everything small -------------------------------


def official_f1(predicted, gold):
    """F1 as the official scripts define it: from precision and recall."""
    predicted, gold = (squad.normalize_answer(t).split() for t in (predicted, gold))
    same = sum(min(predicted.count(w), gold.count(w)) for w in {*predicted, *gold})
    if not same:
        return 0.0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def test_f1_over_all_short_answers():
    words = ["may", "June", "the", "!", ""]
    texts = [" ".join(some) for some in itertools.product(words, repeat=3)]
    for predicted in texts[::3]:
        for gold in texts[::2]:
            expected = official_f1(predicted, gold)
            assert squad.f1(predicted, gold) == pytest.approx(expected, abs=1e-12)
