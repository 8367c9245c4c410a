"""Question answering, from raw text to a person's answer."""

import keras
import numpy as np
import pytest

import kbert
from kbert.data.squad import Answer
from tests import tiny

QUESTIONS, CONTEXTS, ANSWERS = tiny.questions(impossible=True)
X, Y = (QUESTIONS, CONTEXTS), ANSWERS
HAS = [bool(answers) for answers in ANSWERS]
READY = {
    "token_ids": np.array([[2, 5, 3, 6, 7, 3, 0, 0]], "int32"),
    "segment_ids": np.array([[0, 0, 0, 1, 1, 1, 0, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1, 1, 0, 0]], "int32"),
}


@pytest.fixture(scope="module")
def trained():
    """An answerer that has learned to find what is said, and where nothing is."""
    keras.utils.set_random_seed(1)
    model = tiny.answerer(dropout=0.0)
    model.compile(learning_rate=2e-2)
    model.fit(X, Y, batch_size=16, epochs=15, verbose=0)
    return model


def test_it_learns_and_answers(trained):
    answers = trained.answer(QUESTIONS, CONTEXTS)
    right = [
        answer.text == (gold[0].text if gold else "")
        for answer, gold in zip(answers, ANSWERS, strict=True)
    ]
    assert np.mean(right) > 0.9
    for answer, context in zip(answers, CONTEXTS, strict=True):
        if answer.text:
            assert context[answer.start : answer.end] == answer.text
        assert (answer.null_score > answer.score) == (answer.text == "")
        assert 1 <= len(answer.alternatives) <= 20


def test_training_on_questions_without_answers_sets_a_threshold(trained):
    assert trained.null_threshold == 0.0
    assert tiny.answerer().null_threshold is None


def test_evaluate(trained):
    found = trained.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(found)[:4] == ["loss", "accuracy", "exact_match", "f1"]
    answers = trained.answer(*X)
    gold = [{a.text for a in answers} or {""} for answers in ANSWERS]
    exact = [a.text in texts for a, texts in zip(answers, gold, strict=True)]
    assert found["exact_match"] == pytest.approx(100 * np.mean(exact))
    assert found["has_answer_exact_match"] == pytest.approx(
        100 * np.mean(np.array(exact)[HAS])
    )
    assert found["loss"] < 0.5 and found["accuracy"] > 0.9


def test_loss_equals_numpy(trained):
    y = trained.read(X, Y, None, training=False).y
    logits = np.stack(trained.predict(X, verbose=0)[:2], axis=1)  # (W, 2, S)
    highest = logits.max(axis=-1)
    total = np.exp(logits - highest[..., None]).sum(axis=-1)
    right = np.take_along_axis(logits, y[..., None], axis=-1)[..., 0]
    losses = np.log(total) + highest - right  # (W, 2)
    found = trained.evaluate(X, Y, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(losses.mean(), rel=1e-4)
    assert found["accuracy"] == pytest.approx((logits.argmax(axis=-1) == y).mean())
    weight = np.arange(1.0, len(CONTEXTS) + 1)
    expected = (losses * weight[trained.windows(X).examples][:, None]).mean()
    found = trained.evaluate(X, Y, sample_weight=weight, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected, rel=1e-4)
    texts = trained.read(X, Y, weight, training=True)
    assert texts.sample_weight.shape == (len(y), 1)


def test_predict(trained):
    logits = trained.predict(X, verbose=0)
    windows = trained.windows(X)
    assert len(windows) > len(CONTEXTS)  # some contexts are long
    np.testing.assert_array_equal(logits.examples, windows.examples)
    inputs = trained.read(X, None, None, training=False).single_batch()[0]
    ready = trained.predict(inputs, verbose=0)
    width = ready.start.shape[1]
    np.testing.assert_allclose(logits.start[:, :width], ready.start, atol=1e-4)
    np.testing.assert_allclose(logits.end[:, :width], ready.end, atol=1e-4)
    for window, begin in enumerate(windows.begins):
        inside = np.zeros(logits.start.shape[1], bool)
        inside[0] = True
        inside[begin : begin + windows.counts[window]] = True
        np.testing.assert_array_equal(logits.start[window] > -1e9, inside)
        np.testing.assert_array_equal(logits.end[window] > -1e9, inside)
    assert ready.examples.tolist() == list(range(len(windows)))


def test_tuned_threshold(trained):
    before = trained.null_threshold
    try:
        found = trained.tune_null_threshold(X, Y)
        assert trained.null_threshold == found.threshold
        scores = trained.evaluate(X, Y, verbose=0, return_dict=True)
        assert scores["f1"] == pytest.approx(found.score)
        trained.null_threshold = -99.0
        loss, accuracy, exact, f1, *_ = trained.evaluate(X, Y, verbose=0)
        assert f1 == exact == pytest.approx(100 * (1 - np.mean(HAS)))
        assert f1 < found.score
    finally:
        trained.null_threshold = before
    answered = [i for i, has in enumerate(HAS) if has]
    x = tuple([part[i] for i in answered] for part in X)
    with pytest.raises(ValueError, match=f"{len(answered)} questions, {len(answered)}"):
        trained.tune_null_threshold(x, [Y[i] for i in answered])


def test_without_a_threshold_it_answers_always(trained):
    trained.null_threshold = None
    try:
        assert all(answer.text for answer in trained.answer(*X))
        scores = trained.evaluate(X, Y, verbose=0, return_dict=True)
    finally:
        trained.null_threshold = 0.0
    assert scores["no_answer_f1"] > 90  # 2.0 is seen in the data
    (nothing,) = trained.answer("was it", "")
    assert (nothing.text, nothing.start, nothing.alternatives) == ("", None, ())


def test_weights_of_ready_rows_are_of_start_and_end():
    model = tiny.answerer(dropout=0.0)
    both = {key: np.repeat(rows, 2, axis=0) for key, rows in READY.items()}
    y, weight = np.array([[3, 4], [4, 4]]), np.array([2.0, 0.0])
    weighted = model.test_on_batch(both, y, sample_weight=weight)[0]
    model.reset_metrics()
    alone = model.test_on_batch(READY, y[:1])[0]
    assert float(weighted) == pytest.approx(float(alone), rel=1e-4)


def test_validation_keeps_a_question_whole(trained):
    texts = trained.read(X, Y, None, training=True)
    first, last = texts.split(0.25)
    assert set(first.examples) == set(range(18))
    assert set(last.examples) == set(range(18, 24))
    assert len(first.y) == len(first.encoded) and len(last.y) == len(last.encoded)


def test_batches_of_a_stream(trained):
    class Stream(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            part = slice(8 * index, 8 * index + 8)
            return (QUESTIONS[part], CONTEXTS[part]), Y[part]

    _, accuracy = trained.evaluate(Stream(), verbose=0)
    assert accuracy > 0.9
    found = trained.predict(Stream(), verbose=0)
    expected = trained.predict(X, verbose=0)
    np.testing.assert_array_equal(found.examples, expected.examples)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (CONTEXTS, Y, "x=.questions, contexts.*Received: single texts"),
        ((QUESTIONS, CONTEXTS[:3]), Y, "24 texts first and 3 texts second"),
        (([], []), [], "at least one"),
        (([None], ["a"]), [[]], "None as first text 0"),
        (X, Y[:3], "24 questions, answers to 3"),
        (X, None, "`y` must hold"),
        (X, ["good"] * 24, "'good' for question 0"),
        ((["was it"], ["a film"]), [("film", 99)], "1 questions without"),
        ((["good " * 14], ["a film"]), [("film", 2)], "question 0 of 14 tokens"),
        (READY, [[4, 3]], r"\[4, 3\] in row 0"),
        (READY, [[-1, 3]], r"\[-1, 3\] in row 0"),
        (READY, [[3, 8]], "8 positions of its row. Received: position 8 in row 0"),
        (READY, [3], r"int64 \(1,\)"),
        (READY, [[3.0, 4.0]], "float64"),
    ],
)
@pytest.mark.filterwarnings("ignore:1 of 1 questions are left out")
def test_bad_input_is_refused_before_any_work(trained, x, y, message):
    optimizer, epochs = trained.optimizer, trained.null_threshold
    with pytest.raises((ValueError, TypeError), match=message):
        trained.fit(x, y, verbose=0)
    assert (trained.optimizer, trained.null_threshold) == (optimizer, epochs)


def test_answers_elsewhere_are_left_out_and_told(trained):
    moved = [[Answer("good", 0)], *Y[1:]]
    with pytest.warns(UserWarning, match=r"1 of 24 questions are left out.*number 0\)"):
        texts = trained.read(X, moved, None, training=False)
    assert 0 not in texts.examples and 1 in texts.examples
    with pytest.warns(UserWarning, match="left out"):
        found = trained.evaluate(X, moved, verbose=0, return_dict=True)
    assert np.isfinite(found["loss"]) and "f1" in found


def test_answers_that_no_window_holds_are_told(trained):
    question, context = "was it", " ".join(["a"] * 30)
    with pytest.warns(UserWarning, match="1 of 1 answers are longer than what two"):
        texts = trained.read(
            ([question], [context]), [(context, 0)], None, training=True
        )
    assert not texts.y.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"doc_stride": 0}, "`doc_stride` must be.*Received: 0"),
        ({"n_best_size": None}, "`n_best_size` must be.*None"),
        ({"max_answer_length": 2.5}, "`max_answer_length`.*2.5"),
        ({"null_threshold": float("nan")}, "`null_threshold`.*nan"),
        ({"null_threshold": "0"}, "`null_threshold`.*'0'"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny.answerer(**arguments)


def test_one_segment_is_refused():
    with pytest.raises(ValueError, match="num_segments=1"):
        kbert.BertQuestionAnswerer(tiny.backbone(num_segments=1))


def test_what_a_task_of_spans_has_not(trained, tmp_path):
    with pytest.raises(ValueError, match="class_weight={1: 2.0}"):
        trained.fit(X, Y, class_weight={1: 2.0}, verbose=0)
    with pytest.raises(NotImplementedError, match="BertQuestionAnswerer.*served"):
        trained.export(tmp_path / "served")
    with pytest.raises(ValueError, match="single texts"):
        trained.predict(CONTEXTS)
    packed = tiny.answerer()
    packed.compile(rows="packed")
    with pytest.raises(ValueError, match="reads one text a row"):
        packed.fit(X, Y, verbose=0)
    with pytest.raises(ValueError, match="Text needs a preprocessor"):
        kbert.BertQuestionAnswerer(tiny.backbone()).answer("was it", "good")
