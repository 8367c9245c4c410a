"""BertMultipleChoice: what it learns, takes, keeps and refuses."""

import keras
import numpy as np
import pytest
from keras import ops

import kbert
from kbert.layers.heads import RULED_OUT
from kbert.tasks import feeding
from tests import tiny


def examples(count=24, seed=0):
    """Prompts of 1 to 4 words, and two or three choices of which one praises."""
    rng = np.random.default_rng(seed)
    prompts = [
        " ".join(rng.choice(tiny.WORDS, rng.integers(1, 5))) for _ in range(count)
    ]
    choices, answers = [], []
    for index in range(count):
        others = ["bad", "awful film", "it was dull"][: 1 + index % 2]
        answers.append(int(rng.integers(len(others) + 1)))
        others.insert(answers[-1], str(rng.choice(["good", "great", "fine film"])))
        choices.append(others)
    return prompts, choices, answers


PROMPTS, CHOICES, ANSWERS = examples()
X = (PROMPTS, CHOICES)


def make(**arguments):
    return kbert.BertMultipleChoice(
        tiny.backbone(dropout=0.0, attention_dropout=0.0),
        arguments.pop("preprocessor", tiny.preprocessor()),
        **arguments,
    )


@pytest.fixture(scope="module")
def fitted():
    """A model that has learned, and the history of its training."""
    keras.utils.set_random_seed(1)
    model = make()
    model.compile(learning_rate=2e-2)
    history = model.fit(X, ANSWERS, batch_size=8, epochs=12, verbose=0)
    return model, history.history


@pytest.fixture(scope="module")
def logits(fitted):
    """Those of X."""
    return fitted[0].predict(X, verbose=0)


def one_by_one(model):
    """The logit of every choice, each a text of its own in a row of its own."""
    pairs = [(p, c) for p, row in zip(*X, strict=True) for c in row]
    arrays = model.preprocessor(tuple(map(list, zip(*pairs, strict=True))))
    rows = ops.convert_to_numpy(model(arrays, training=False))[:, 0]
    return np.split(rows, np.cumsum([len(row) for row in CHOICES])[:-1])


def test_it_learns(fitted, logits):
    model, history = fitted
    assert history["loss"][-1] < 0.3 * history["loss"][0]
    answers = model.choose(*X)
    assert [answer.index for answer in answers] == ANSWERS
    for answer, row, choices in zip(answers, logits, CHOICES, strict=True):
        assert answer.text == choices[answer.index]
        assert answer.probability == answer.probabilities[answer.index]
        assert sum(answer.probabilities) == pytest.approx(1, abs=1e-5)
        expected = np.exp(row[: len(choices)]) / np.exp(row[: len(choices)]).sum()
        np.testing.assert_allclose(answer.probabilities, expected, atol=1e-5)


def test_predict_is_choice_by_choice_in_order(fitted, logits):
    assert logits.shape == (24, 3)
    expected = np.full((24, 3), RULED_OUT, "float32")
    for row, found in zip(expected, one_by_one(fitted[0]), strict=True):
        row[: len(found)] = found
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_evaluate(fitted, logits):
    model, _ = fitted
    weights = np.linspace(0, 2, 24)
    right = np.arange(24) % 3 % 2  # other answers than it gives
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    each = -np.log(chances[np.arange(24), right])
    loss, accuracy = model.evaluate(
        X, right, batch_size=24, sample_weight=weights, verbose=0
    )
    assert loss == pytest.approx((each * weights).mean(), rel=1e-4)
    assert accuracy == pytest.approx((logits.argmax(-1) == right).mean())


def test_one_prompt(fitted):
    (answer,) = fitted[0].choose("we saw it", ["good film", "bad film", "dull"])
    assert (answer.index, answer.text) == (0, "good film")


def test_ready_arrays_are_what_texts_are(fitted):
    model, _ = fitted
    data = feeding.prepare(model, X, ANSWERS)
    inputs, y, _ = data.single_batch()
    names = ("token_ids", "segment_ids", "padding_mask")
    arrays = {name: inputs[name].reshape(24, 3, -1) for name in names}
    again, targets, _ = feeding.prepare(model, arrays, ANSWERS).single_batch()
    for name in inputs:
        np.testing.assert_array_equal(inputs[name], again[name])
    assert y.tolist() == targets.tolist() == ANSWERS


def test_a_dataset_predicts_in_order(fitted, logits):
    class OneBatch(tiny.RawBatches):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return X, ANSWERS

    found = fitted[0].predict(OneBatch(), verbose=0)
    np.testing.assert_allclose(found, logits, atol=1e-5)


def check_same(model, other):
    arrays = model.preprocessor((PROMPTS, [choices[0] for choices in CHOICES]))
    ours, theirs = (
        ops.convert_to_numpy(m(arrays, training=False)) for m in (model, other)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_files(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    check_same(again, model)
    model.save_weights(tmp_path / "model.weights.h5")
    other = make()
    other.load_weights(tmp_path / "model.weights.h5")
    check_same(other, model)
    model.save_to_preset(tmp_path / "preset")
    check_same(kbert.BertMultipleChoice.from_preset(tmp_path / "preset"), model)
    with pytest.warns(UserWarning, match="BertForMultipleChoice.*, not for"):
        kbert.BertClassifier.from_preset(tmp_path / "preset", num_classes=2)


def test_frozen_and_lora(tmp_path):
    model = make()
    model.freeze_backbone()
    assert len(model.trainable_weights) == 2
    model = make()
    model.enable_lora(2)
    for weight in model.trainable_weights:
        weight.assign(np.random.RandomState(0).normal(size=weight.shape))
    model.save_to_preset(tmp_path)
    check_same(kbert.BertMultipleChoice.from_preset(tmp_path), model)


@pytest.mark.parametrize(
    "x, y, message",
    [
        (["it"], [0], "without choices"),
        ((["it"], [[]]), [0], r"at least 2 choices. Received: \[\]"),
        ((["it"], ["good"]), [0], "'good' as those of prompt 0"),
        (X, ANSWERS[:3], "24 examples, 3 indices"),
        (X, [2] * 24, "2. Received: 2 for example 0"),
        (X, None, "`y` must hold a target"),
        ({"token_ids": np.ones((1, 3), int)}, [0], "padding_mask"),
        (
            {k: np.ones((1, 3), int) for k in ("token_ids", "padding_mask")},
            [0],
            r"\(examples, choices, length\)",
        ),
        (
            {k: np.full((1, 2, 3), 99) for k in ("token_ids", "padding_mask")},
            [0],
            "vocabulary_size=.*99",
        ),
    ],
)
def test_fit_refuses_bad_input_before_any_work(x, y, message):
    model = make()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(x, y, verbose=0)
    assert model.optimizer is None


def test_other_refusals(fitted, tmp_path, monkeypatch):
    model, _ = fitted
    with pytest.raises(ValueError, match="sample_weight.*{0: 2.0}"):
        model.fit(X, ANSWERS, class_weight={0: 2.0}, verbose=0)
    with pytest.raises(NotImplementedError, match="BertMultipleChoice.*model"):
        model.export(tmp_path / "model")
    packed = make()
    packed.compile(rows="packed")
    with pytest.raises(ValueError, match="one text a row.*'packed'"):
        packed.predict(X, verbose=0)
    monkeypatch.setattr(keras.distribution, "distribution", lambda: object())
    with pytest.raises(ValueError, match="one device.*a BertMultipleChoice"):
        model.predict(X, verbose=0)
