"""Features of tokens: the layers of table 7, packed or not, and inside other models."""

import keras
import numpy as np
import pytest

import kbert
from kbert.tasks.feature_extractor import TABLE_7
from tests import random_bert, tiny

TEXTS = ["a good film", "it was awful and very dull and we saw it", "film"]
LAYERS = 4


@pytest.fixture(scope="module")
def backbone():
    """An encoder of as many layers as the last four."""
    made = tiny.backbone(num_layers=LAYERS)
    random_bert.shake(made)
    return made


@pytest.fixture(scope="module")
def states(backbone):
    """{text: its L + 1 hidden states, each (tokens, H)}."""
    found = {}
    for text in TEXTS:
        values = backbone.hidden_states(tiny.preprocessor()([text]))
        found[text] = [keras.ops.convert_to_numpy(value)[0] for value in values]
    return found


def make(backbone, **arguments):
    return kbert.BertFeatureExtractor(backbone, tiny.preprocessor(), **arguments)


def of_paper(name, hidden):
    """The features of a text, by hand."""
    return {
        "embeddings": lambda: hidden[0],
        "second_to_last": lambda: hidden[-2],
        "last": lambda: hidden[-1],
        "weighted_sum_last_four": lambda: sum(hidden[-4:]) / 4,
        "concat_last_four": lambda: np.concatenate(hidden[:-5:-1], axis=-1),
        "weighted_sum_all": lambda: sum(hidden[1:]) / LAYERS,
    }[name]()


def test_the_six_combinations_of_the_paper(backbone, states):
    model = make(backbone)
    assert len(TABLE_7) == 6
    for name in TABLE_7:
        found = model.features(TEXTS, layers=name)
        for text, features in zip(TEXTS, found, strict=True):
            expected = of_paper(name, states[text])
            np.testing.assert_allclose(features.vectors, expected, atol=1e-5)
    assert found[0].pieces == ("[CLS]", "a", "good", "film", "[SEP]")


def test_layers_by_number_and_weights_of_a_sum(backbone, states):
    hidden = states[TEXTS[0]]
    (found,) = make(backbone).features(TEXTS[0], layers=[0, -1, 2])
    expected = np.concatenate([hidden[0], hidden[-1], hidden[2]], axis=-1)
    np.testing.assert_allclose(found.vectors, expected, atol=1e-5)
    mix = [1, 0.5, 0, -1]
    (found,) = make(backbone, layers="weighted_sum_all", mix=mix).features(TEXTS[0])
    expected = sum(share * state for share, state in zip(mix, hidden[1:], strict=True))
    np.testing.assert_allclose(found.vectors, expected, atol=1e-5)


def test_predict_and_datasets(backbone):
    model = make(backbone, layers=[-1])
    model.compile(rows="packed")
    packed = model.predict(TEXTS, verbose=0)
    assert packed.shape == (3, 12, 16) and not packed[0, 5:].any()
    model.compile(rows="single")
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), packed, atol=1e-5)
    ready = model.predict(tiny.preprocessor()(TEXTS), verbose=0)
    np.testing.assert_allclose(ready[0, :5], packed[0, :5], atol=1e-5)
    batches = model.predict(([text] for text in TEXTS), steps=3, verbose=0)
    np.testing.assert_allclose(batches, packed, atol=1e-5)


def test_a_keras_file_and_a_preset_keep_all(backbone, tmp_path):
    model = make(backbone, layers="weighted_sum_last_four", mix=[4, 3, 2, 1])
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    expected = model.predict(TEXTS, verbose=0)
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    assert again.trainable_weights == []
    preset = kbert.BertFeatureExtractor.from_preset(tmp_path / "preset")
    for other in (again, preset):
        assert other.settings() == model.settings()
        np.testing.assert_allclose(other.predict(TEXTS, verbose=0), expected, atol=1e-6)
    last = kbert.BertFeatureExtractor.from_preset(tmp_path / "preset", layers=[-1])
    assert last.settings() == {"layers": [-1], "mix": None}


def test_inside_a_model_of_ones_own():
    extractor = kbert.BertFeatureExtractor(
        tiny.backbone(dropout=0.5), tiny.preprocessor(), layers=[-1, -2]
    )
    preprocessor = tiny.preprocessor(sequence_length=8)
    inputs = {
        key: keras.Input((8,), dtype="int32", name=key) for key in preprocessor(["a"])
    }
    logits = keras.layers.Dense(2)(extractor(inputs)[:, 0])
    model = keras.Model(inputs, logits)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    texts, labels = tiny.sentiment(8)
    y = np.array([tiny.LABELS.index(label) for label in labels])
    before = extractor.backbone.get_weights()
    x = preprocessor(texts)
    trained, evaluated = (
        keras.ops.convert_to_numpy(extractor(x, training=mode))
        for mode in (True, False)
    )
    np.testing.assert_array_equal(trained, evaluated)  # fixed: no dropout
    first = model.train_on_batch(x, y)
    assert model.train_on_batch(x, y) < first
    for one, other in zip(before, extractor.backbone.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_layers_leave_what_is_not_frozen():
    model = make(tiny.backbone(), layers=[-1])
    model.features(TEXTS, layers=[0])
    assert model.backbone.trainable_weights == []
    model.backbone.trainable = True
    model.backbone.embeddings.trainable = False
    paths = [weight.path for weight in model.backbone.trainable_weights]
    model.features(TEXTS, layers=[0])
    assert [w.path for w in model.backbone.trainable_weights] == paths != []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": "first"}, "'concat_last_four'.*layers='first'"),
        ({"layers": []}, r"layers=\[\]"),
        ({"layers": 3}, "layers=3"),
        ({"layers": [5]}, "from -5 to 4.*Received: 5"),
        ({"layers": [-6]}, "from -5 to 4.*Received: -6"),
        ({"layers": [True]}, "Received: True"),
        ({"layers": [-1], "mix": [1.0]}, r"mix=\[1.0\]"),
        ({"layers": "weighted_sum_all", "mix": [1.0]}, r"4 numbers.*\[1.0\]"),
        ({"layers": "weighted_sum_all", "mix": 1.0}, "4 numbers.*Received: 1.0"),
        ({"layers": "weighted_sum_all", "mix": [1, 2, 3, "x"]}, "4 numbers.*'x'"),
    ],
)
def test_layers_that_are_none(backbone, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(backbone, **arguments)


def test_it_learns_nothing(backbone):
    model = make(backbone)
    with pytest.raises(ValueError, match="`features` or `predict`"):
        model.fit(TEXTS, [0, 1, 0], verbose=0)
    with pytest.raises(ValueError, match="`features` or `predict`"):
        model.evaluate(TEXTS, [0, 1, 0], verbose=0)
