"""BertTokenClassifier: what it learns, takes, keeps and refuses."""

import keras
import numpy as np
import pytest
from keras import ops

import kbert
from kbert.metrics import tagging
from kbert.preprocessing.layouts import PackedRows
from kbert.tasks import feeding, word_feed
from tests import tiny

LABELS = ["O", "B-GOOD", "I-GOOD", "B-BAD"]
GOOD, BAD = {"good", "great", "fine"}, {"bad", "awful", "dull"}


def sentences(count=24, seed=0):
    """Words of 1 to 6 words, and their tags: neighbours that praise are one entity."""
    rng = np.random.default_rng(seed)
    words = [list(rng.choice(tiny.WORDS, rng.integers(1, 7))) for _ in range(count)]
    words[0][0], words[1][0] = "good", "bad"
    tags = []
    for text in words:
        row = []
        for word in text:
            inside = row and row[-1].endswith("-GOOD")
            good = "I-GOOD" if inside else "B-GOOD"
            row.append(good if word in GOOD else "B-BAD" if word in BAD else "O")
        tags.append(row)
    return words, tags


WORDS, TAGS = sentences()


def make(dropout=0.0, **arguments):
    return kbert.BertTokenClassifier(
        tiny.backbone(dropout=dropout, attention_dropout=dropout),
        arguments.pop("preprocessor", tiny.preprocessor()),
        **{"labels": LABELS, **arguments},
    )


@pytest.fixture(scope="module")
def fitted():
    """A tagger that has learned, and the history of its training."""
    keras.utils.set_random_seed(1)
    model = make()
    model.compile(learning_rate=3e-2)
    history = model.fit(
        WORDS,
        TAGS,
        batch_size=8,
        epochs=14,
        validation_data=(WORDS, TAGS),
        validation_freq=14,
        verbose=0,
    )
    return model, history.history


@pytest.fixture(scope="module")
def tagger(fitted):
    return fitted[0]


@pytest.fixture(scope="module")
def logits(tagger):
    """Those of WORDS."""
    return tagger.predict(WORDS, verbose=0)


def chances(rows):
    return np.exp(rows) / np.exp(rows).sum(-1, keepdims=True)


# Answers


def test_it_learns(fitted):
    model, history = fitted
    assert model.tag_words(WORDS) == TAGS
    assert history["loss"][-1] < 0.2 * history["loss"][0]
    scores = [history[f"val_{key}"] for key in ("precision", "recall", "f1")]
    assert scores == [[1.0]] * 3
    assert history["val_accuracy"] == [1.0]


def test_entities_of_given_words(tagger, logits):
    found = tagger.tag(WORDS)
    pieces = tagger.preprocessor.tokenizer(WORDS)
    for index, (words, tags) in enumerate(zip(WORDS, TAGS, strict=True)):
        assert [(e.label, *e.words) for e in found[index]] == tagging.chunks(tags)
        starts = 1 + np.cumsum([0, *map(len, pieces[index])])
        for entity in found[index]:
            text = " ".join(words)
            assert text[entity.start : entity.end] == entity.text
            assert entity.text == " ".join(words[slice(*entity.words)])
            rows = chances(logits[index, starts[slice(*entity.words)]])
            assert entity.score == pytest.approx(rows.max(-1).mean(), abs=1e-5)
    assert any(e.words[1] - e.words[0] > 1 for entities in found for e in entities)


def test_entities_of_a_text_have_spans_in_it(tagger):
    # The same pieces as those of WORDS: capitals, and more blanks than one.
    texts = ["  ".join(words).upper() for words in WORDS]
    found = tagger.tag([*texts, ""])
    assert found.pop() == []  # a text without words
    for text, entities, tags in zip(texts, found, TAGS, strict=True):
        assert [(e.label, *e.words) for e in entities] == tagging.chunks(tags)
        assert all(text[e.start : e.end] == e.text for e in entities)


def test_words_that_vanish_stay_in_line(tagger):
    (found,) = tagger.tag_words([["good", "\ufe0f", "bad"]])
    assert (len(found), found[0], found[2]) == (3, "B-GOOD", "B-BAD")


def test_predict_gives_each_text_its_rows_in_order(tagger, logits):
    pieces = tagger.preprocessor.tokenizer(WORDS)
    lengths = [sum(map(len, words)) + 2 for words in pieces]
    assert logits.shape == (24, max(lengths), 4)
    arrays, _ = as_arrays(tagger)
    inside = arrays["padding_mask"] == 1
    expected = np.array(ops.convert_to_numpy(tagger(arrays, training=False)))
    np.testing.assert_allclose(logits[inside], expected[inside], atol=1e-5)
    assert not logits[~inside].any()


def test_rows_are_of_one_width_where_two_would_cost_less(tagger, logits, monkeypatch):
    in_two = PackedRows(32, narrow=16)
    monkeypatch.setattr(word_feed, "layout_for", lambda *_: in_two)
    found = tagger.predict(WORDS, verbose=0)
    np.testing.assert_allclose(found, logits, atol=1e-5)


def test_a_long_text_lies_in_windows(tagger):
    words = [word for text in WORDS for word in text]
    expected = [tag for text in TAGS for tag in text]
    tags = tagger.tag_words([words, ["good"]])
    assert tags[1] == ["B-GOOD"] and len(tags[0]) == len(words) > 60
    kinds = [[tag.split("-")[-1] for tag in row] for row in (tags[0], expected)]
    same = [a == b for a, b in zip(*kinds, strict=True)]
    assert np.mean(same) > 0.8


def test_labels_that_are_no_entities():
    model = make(labels=["NOUN", "VERB"])
    assert [metric.name for metric in model.default_metrics()] == ["accuracy"]
    (entities,) = model.tag("a film")
    assert [e.text for e in entities] == ["a", "film"]
    assert {e.label for e in entities} <= {"NOUN", "VERB"}


class OneBatch(tiny.RawBatches):
    """A dataset of one batch."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.columns


def test_a_dataset_predicts_in_order(tagger, logits):
    found = tagger.predict(OneBatch(WORDS, TAGS), verbose=0)
    part = logits[:, : found.shape[1]]
    np.testing.assert_allclose(found, part, atol=1e-5)


# Scores


def as_arrays(model):
    """WORDS as ready arrays with their targets, as transformers has them."""
    arrays = model.preprocessor([" ".join(words) for words in WORDS])
    targets = np.full(arrays["token_ids"].shape, -100)
    for text, (words, tags) in enumerate(zip(WORDS, TAGS, strict=True)):
        lengths = [len(ids) for ids in model.preprocessor.tokenizer(words)]
        starts = 1 + np.cumsum([0, *lengths[:-1]])
        targets[text, starts] = [LABELS.index(tag) for tag in tags]
    return arrays, targets


@pytest.mark.parametrize("rows", ["packed", "single"])
def test_evaluate_counts_words_and_whole_entities(tagger, logits, rows):
    tagger.compile(rows=rows)
    # Half of the tags are other ones than the model gives.
    rng = np.random.default_rng(0)
    truth = [[t if rng.random() < 0.5 else rng.choice(LABELS) for t in r] for r in TAGS]
    reported = tagger.evaluate(WORDS, truth, batch_size=24, verbose=0, return_dict=True)
    expected = tagging.entity_scores(truth, TAGS).overall
    for name in ("precision", "recall", "f1"):
        assert reported[name] == pytest.approx(getattr(expected, name), abs=1e-6)
    same = [
        a == b
        for t, r in zip(truth, TAGS, strict=True)
        for a, b in zip(t, r, strict=True)
    ]
    assert reported["accuracy"] == pytest.approx(np.mean(same), abs=1e-6)
    indices = np.concatenate([[LABELS.index(t) for t in row] for row in truth])
    scored = as_arrays(tagger)[1] >= 0
    each = -np.log(chances(logits[scored]))[np.arange(len(indices)), indices]
    assert reported["loss"] == pytest.approx(each.mean(), rel=1e-4)


def test_weights_weigh_words(tagger, logits):
    _, targets = as_arrays(tagger)
    scored = targets >= 0
    each = -np.log(chances(logits[scored]))
    each = each[np.arange(scored.sum()), targets[scored]]
    by_text = np.linspace(0, 2, 24)
    text = np.nonzero(scored)[0]
    by_tag = np.array([1, 1, 3, 0.5])[targets[scored]]
    tagger.compile(keras.optimizers.SGD(0.0), metrics=[])
    of_tags = {"I-GOOD": 3.0, 3: 0.5}
    for weights, sample_weight, class_weight in (
        (by_text[text], by_text, None),
        (by_tag, None, of_tags),
        (by_tag * by_text[text], by_text, of_tags),
    ):
        loss = tagger.train_on_batch(WORDS, TAGS, sample_weight, class_weight)
        assert loss == pytest.approx((each * weights).sum() / len(each), rel=1e-3)
        tagger.reset_metrics()


def test_class_weights_of_every_kind_of_data(tagger):
    arrays, targets = as_arrays(tagger)
    by_tag = np.array([1, 2, 3, 0.5], "float32")
    expected = np.where(targets >= 0, by_tag[np.maximum(targets, 0)], 0)
    for x, y, weights in (
        (arrays, targets, None),
        (arrays, targets, np.full(24, 2.0)),
        (WORDS, TAGS, np.full(24, 2.0)),
    ):
        data = word_feed.weighted(feeding.prepare(tagger, x, y, weights), by_tag)
        factor = 1.0 if weights is None else 2.0
        np.testing.assert_allclose(data.single_batch()[2], factor * expected)
    stream = feeding.prepare(tagger, tiny.RawBatches(WORDS, TAGS))
    _, laid, weights = word_feed.weighted(stream, by_tag).dataset[0]
    np.testing.assert_allclose(weights, np.where(laid >= 0, by_tag[laid], 0))


# Keeping


def check_same(model, tagger):
    arrays, _ = as_arrays(tagger)
    ours, expected = (
        ops.convert_to_numpy(m(arrays, training=False)) for m in (model, tagger)
    )
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_keras_file_and_weights_file(tagger, tmp_path):
    tagger.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == tagger.get_config()
    assert again.labels == tuple(LABELS)
    check_same(again, tagger)
    tagger.save_weights(tmp_path / "model.weights.h5")
    other = make()
    other.load_weights(tmp_path / "model.weights.h5")
    check_same(other, tagger)


def test_preset_keeps_everything(tagger, tmp_path):
    tagger.save_to_preset(tmp_path)
    again = kbert.BertTokenClassifier.from_preset(tmp_path)
    assert (again.labels, again.dropout) == (tuple(LABELS), tagger.dropout)
    assert not any("pooler" in w.path for w in again.trainable_weights)
    check_same(again, tagger)
    with pytest.warns(UserWarning, match="for .*B-BAD.*not for .*'X'.*is random"):
        other = kbert.BertTokenClassifier.from_preset(tmp_path, labels=["O", "X"])
    assert other.labels == ("O", "X")
    assert kbert.BertTokenClassifier.from_preset(tmp_path, load_weights=False)


def test_another_head_is_not_taken_for_this_one(tagger, tmp_path):
    tiny.classifier(labels=LABELS).save_to_preset(tmp_path / "classifier")
    with pytest.warns(UserWarning, match="BertForSequenceClassification.*not for"):
        kbert.BertTokenClassifier.from_preset(tmp_path / "classifier", labels=LABELS)
    tagger.save_to_preset(tmp_path / "tagger")
    with pytest.warns(UserWarning) as told:
        model = kbert.BertClassifier.from_preset(tmp_path / "tagger", labels=LABELS)
    messages = " ".join(str(warning.message) for warning in told)
    assert "BertForTokenClassification" in messages and "pooler" in messages
    kernels = [np.array(m.head.kernel) for m in (model, tagger)]
    assert np.abs(kernels[0] - kernels[1]).max() > 0.1


def test_frozen_and_lora(tmp_path):
    model = make()
    model.freeze_backbone()
    paths = ["classifier/kernel", "classifier/bias"]
    assert [w.path for w in model.trainable_weights] == paths
    model = make()
    model.enable_lora(2)
    paths = {w.path for w in model.trainable_weights}
    assert not any("pooler" in path for path in paths) and len(paths) == 6
    for weight in model.trainable_weights:
        weight.assign(np.random.RandomState(0).normal(size=weight.shape))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert {w.path for w in again.trainable_weights} == paths
    model.save_to_preset(tmp_path / "preset")
    check_same(kbert.BertTokenClassifier.from_preset(tmp_path / "preset"), model)


# Refusals


@pytest.mark.parametrize(
    "x, y, message",
    [
        ([], [], "at least one"),
        ([["it"], []], [["O"], []], "at least one word"),
        (WORDS, TAGS[:3], "24 texts, 3 lists"),
        ([["it", "was"]], [["O"]], "2 words and 1 tags in text 0"),
        ([["it", "was"]], [["O", "B-CAT"]], "'B-CAT' as the tag of word 1"),
        (WORDS, None, "`y` must hold a target"),
        ([["it", "was"]], [["O", "O"]], "at least two tags"),
        ((["it"], ["was"]), [["O"]], "tuple"),
        (["it", ""], [["O"], []], "0 words and 0 tags in text 1"),
    ],
)
def test_fit_refuses_bad_input_before_any_work(x, y, message):
    model = make()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(x, y, verbose=0)
    assert model.optimizer is None


def test_other_refusals(tagger, tmp_path):
    with pytest.raises(ValueError, match="one a token"):
        tagger.evaluate(
            {"token_ids": np.ones((1, 3), int), "padding_mask": np.ones((1, 3), int)},
            [0],
            verbose=0,
        )
    with pytest.raises(ValueError, match="'B-CAT'"):
        tagger.fit(WORDS, TAGS, class_weight={"B-CAT": 1.0}, verbose=0)
    with pytest.raises(ValueError, match="24 texts"):
        tagger.fit(WORDS, TAGS, sample_weight=[1.0], verbose=0)
    with pytest.raises(NotImplementedError, match="BertTokenClassifier.*model"):
        tagger.export(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="BertTokenClassifier without one"):
        make(preprocessor=None).tag("it")
    with pytest.raises(ValueError, match="at least 2. Received: num_classes=1"):
        make(labels=None, num_classes=1)
    with pytest.raises(ValueError, match="takes a dictionary of arrays"):
        tagger(["it"])
