"""The best spans of windows, by all spans there are."""

import math

import numpy as np
import pytest

import kbert
from kbert.preprocessing import spans
from kbert.preprocessing.best_spans import Found, Span, best_spans, choose

WORDS = "a b c d e f g h i j k l".split()
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
TOKENIZER = kbert.BertTokenizer(PIECES)
CONTEXTS = ["a b c d e f g h i j k l", "c b a", ""]
SETTINGS = {"n_best_size": 20, "max_answer_length": 4}


@pytest.fixture
def windows():
    return spans.make_windows(
        ["a b"] * 3, CONTEXTS, TOKENIZER, max_length=11, doc_stride=3
    )


def logits(windows, seed=0):
    """Random logits of starts and ends, in which every position takes part."""
    return np.random.default_rng(seed).normal(size=(2, len(windows), 11))


def all_spans(windows, start, end, example, longest):
    """Every span in the window of its start's most context: score and characters."""
    found = {}
    for number, window in enumerate(windows.of_example(example)):
        begin, count = windows.begins[window], windows.counts[window]
        for i in range(begin, begin + count):
            for j in range(i, min(i + longest, begin + count)):
                first = windows.starts[window] + i - begin
                if windows.owners[example][first] == number:
                    characters = windows.characters_of(example, first, first + j - i)
                    score = start[window, i] + end[window, j]
                    found[characters] = max(score, found.get(characters, -math.inf))
    return sorted(((s, c) for c, s in found.items()), reverse=True)


@pytest.mark.parametrize("seed", range(5))
def test_best_of_all_spans(windows, seed):
    start, end = logits(windows, seed)
    found = list(best_spans(windows, start, end, **SETTINGS))
    assert len(found) == 3
    for example, (null_score, kept) in enumerate(found):
        expected = all_spans(windows, start, end, example, 4)[:20]
        assert [(s.start, s.end) for s in kept] == [where for _, where in expected]
        assert [s.score for s in kept] == pytest.approx([s for s, _ in expected])
        assert [s.text for s in kept] == [
            CONTEXTS[example][a:b] for _, (a, b) in expected
        ]
        own = list(windows.of_example(example))
        assert null_score == pytest.approx((start + end)[own, 0].min())


def test_probabilities_are_a_softmax_with_no_answer(windows):
    start, end = logits(windows)
    null_score, kept = next(best_spans(windows, start, end, **SETTINGS))
    scores = np.array([null_score, *(s.score for s in kept)])
    expected = np.exp(scores) / np.exp(scores).sum()
    assert [s.probability for s in kept] == pytest.approx(expected[1:])


def test_what_is_no_context_never_wins(windows):
    # CASES: the best logits fall on the question, [CLS], [SEP].
    start, end = logits(windows)
    for window in range(len(windows)):
        begin = windows.begins[window]
        start[window, :begin] = end[window, :begin] = 99
        start[window, begin + windows.counts[window] :] = 99
        end[window, begin + windows.counts[window] :] = 99
    found = list(best_spans(windows, start, end, n_best_size=2, max_answer_length=4))
    for (_, kept), context in zip(found[:2], CONTEXTS, strict=False):
        assert kept and all(s.score < 90 and s.text in context for s in kept)


def test_an_empty_context_has_no_span(windows):
    start, end = logits(windows)
    null_score, kept = list(best_spans(windows, start, end, **SETTINGS))[2]
    assert kept == () and null_score == pytest.approx(start[-1, 0] + end[-1, 0])


def test_one_text_is_kept_once():
    windows = spans.make_windows(
        ["b"], ["a a a"], TOKENIZER, max_length=8, doc_stride=3
    )
    start = np.zeros((1, 8))
    start[0, 4] = 1.0  # the second "a"
    _, kept = next(best_spans(windows, start, start, **SETTINGS))
    assert [s.text for s in kept].count("a") == 1
    assert kept[0][:3] == ("a", 2, 3)


@pytest.mark.parametrize(
    ("threshold", "text"), [(None, "x"), (2.5, "x"), (2.0, "x"), (1.9, ""), (-9.0, "")]
)
def test_no_answer_by_a_threshold(threshold, text):
    found = Found(3.0, (Span("x", 4, 5, 1.0, 0.1),))
    answer = choose(found, threshold)
    assert answer.text == text
    assert (answer.start, answer.end) == ((4, 5) if text else (None, None))
    assert (answer.score, answer.null_score) == (1.0, 3.0)
    assert answer.alternatives == found.spans


@pytest.mark.parametrize("threshold", [None, 0.0])
def test_no_span_is_no_answer(threshold):
    answer = choose(Found(3.0, ()), threshold)
    assert (answer.text, answer.start, answer.score) == ("", None, -math.inf)
