"""Embeddings of texts: pooling, similarity, and learning from pairs."""

import keras
import numpy as np
import pytest

import kbert
from tests import tiny

TOPICS = ["good", "great", "fine", "bad", "awful", "dull", "film", "saw"]
FIRSTS = [f"the {topic} was it" for topic in TOPICS]
SECONDS = [f"a very very {topic} and" for topic in TOPICS]
PAIRS = (FIRSTS, SECONDS)
TEXTS = ["a good film", "it was awful and very dull and we saw it", "film", "not bad"]


def make(dropout=0.0, **arguments):
    return kbert.BertEmbedder(
        tiny.backbone(dropout=dropout, attention_dropout=dropout),
        arguments.pop("preprocessor", tiny.preprocessor()),
        **arguments,
    )


@pytest.fixture(scope="module")
def trained():
    """An embedder that has learned which texts belong together."""
    keras.utils.set_random_seed(1)
    model = make()
    model.compile(learning_rate=5e-2)
    model.fit(PAIRS, batch_size=8, epochs=12, verbose=0)
    return model


def test_it_learns(trained):
    loss, accuracy = trained.evaluate(PAIRS, batch_size=8, verbose=0)
    before, _ = make().evaluate(PAIRS, batch_size=8, verbose=0)
    assert accuracy == 1 and loss < before / 2
    nearest = trained.similarity(FIRSTS, SECONDS).argmax(axis=1)
    assert nearest.tolist() == list(range(len(TOPICS)))


def test_similarity(trained):
    vectors = trained.embed(TEXTS)
    assert vectors.shape == (4, 16) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    expected = vectors @ vectors[:2].T
    found = trained.similarity(TEXTS, TEXTS[:2])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    again = trained.similarity(3 * vectors, vectors[:2])
    np.testing.assert_allclose(again, expected, atol=1e-6)
    assert trained.similarity(TEXTS[0], TEXTS[0]) == pytest.approx(1, abs=1e-6)
    with pytest.raises(ValueError, match=r"\(N, 16\). Received: \(4, 3\)"):
        trained.similarity(vectors, vectors[:, :3])


@pytest.mark.parametrize(
    ("pooling", "special_tokens"), [("mean", False), ("max", True), ("cls", True)]
)
def test_embeddings_are_what_pooling_makes_of_the_encoder(pooling, special_tokens):
    model = make(pooling=pooling, normalize=False, special_tokens=special_tokens)
    model.compile(rows="packed")
    packed = model.embed(TEXTS)
    # The third is one word, which is all that counts without [CLS] and [SEP].
    for text, found in zip(TEXTS, packed, strict=True):
        inputs = model.preprocessor([text])
        states = keras.ops.convert_to_numpy(model.backbone(inputs)["sequence_output"])
        counted = states[0] if special_tokens else states[0, 1:-1]
        how = {"mean": np.mean, "max": np.max, "cls": lambda x, axis: x[0]}[pooling]
        np.testing.assert_allclose(found, how(counted, axis=0), atol=1e-5)


def test_packed_pairs_teach_as_single_ones_do():
    losses, weights = [], []
    for rows in ("packed", "single"):
        keras.utils.set_random_seed(3)
        model = make(symmetric=True)
        model.compile(keras.optimizers.SGD(0.1), rows=rows)
        fitted = model.fit(PAIRS, batch_size=4, epochs=2, shuffle=False, verbose=0)
        losses.append(fitted.history["loss"])
        weights.append(model.backbone.get_weights())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_every_kind_of_pairs_gives_the_same_loss(trained):
    expected = trained.test_on_batch(PAIRS)
    texts = [trained.preprocessor.encode(part) for part in PAIRS]
    width = max(each.lengths.max() for each in texts)
    whole = kbert.BertPreprocessor(
        trained.preprocessor.tokenizer, int(width), max_sequence_length=32
    )
    parts = [whole(part) for part in PAIRS]
    ready = {key: np.stack([part[key] for part in parts], axis=1) for key in parts[0]}
    found = {
        "a dictionary": {"first": FIRSTS, "second": SECONDS},
        "ready arrays": ready,
    }
    for x in found.values():
        np.testing.assert_allclose(trained.test_on_batch(x), expected, rtol=1e-4)
    longer = [f"{text} {'not ' * 20}" for text in FIRSTS]  # too long to lie together
    both = trained.evaluate((longer, SECONDS), batch_size=8, verbose=0)
    one = trained.test_on_batch((longer, SECONDS))
    np.testing.assert_allclose(both, one, rtol=1e-4)


class Batches(keras.utils.PyDataset):
    """Two batches of pairs, or of texts."""

    def __init__(self, *columns):
        super().__init__()
        self.columns = columns

    def __len__(self):
        return 2

    def __getitem__(self, index):
        some = [column[4 * index : 4 * index + 4] for column in self.columns]
        return (tuple(some),) if some[1:] else (some[0],)


def test_datasets(trained):
    expected = trained.evaluate(PAIRS, batch_size=8, verbose=0)
    found = trained.evaluate(Batches(*PAIRS), verbose=0)
    assert found[1] == expected[1] == 1 and found[0] < expected[0]  # fewer negatives
    vectors = trained.predict(Batches(FIRSTS), verbose=0)
    np.testing.assert_allclose(vectors, trained.embed(FIRSTS), atol=1e-5)
    model = make()
    model.fit(Batches(*PAIRS), epochs=2, verbose=0)
    assert model.optimizer.iterations == 4


def test_weights_of_pairs_and_held_out_ones():
    model = make()
    weights = np.array([1, 0, 0, 0, 0, 0, 0, 1], "float32")
    whole = model.test_on_batch(PAIRS, sample_weight=np.ones(8))[0]
    some = model.test_on_batch(PAIRS, sample_weight=weights)[0]
    assert some < whole
    history = model.fit(PAIRS, validation_split=0.25, verbose=0).history
    expected = model.test_on_batch(([*FIRSTS[6:]], [*SECONDS[6:]]))[0]
    assert history["val_loss"][0] == pytest.approx(expected, rel=1e-4)


# --- files ---------------------------------------------------------------------------

OWN = {
    "pooling": "max",
    "normalize": False,
    "special_tokens": False,
    "temperature": 0.5,
    "symmetric": True,
}


def test_a_keras_file_keeps_all(tmp_path):
    model = make(**OWN)
    model.enable_lora(2)
    model.backbone.encoder_layers[0].attention.query.lora_kernel_b.assign_add(
        np.ones((2, 16), "float32")
    )
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.embed(TEXTS), model.embed(TEXTS), atol=1e-6)
    assert again.get_config() == model.get_config()
    assert {key: getattr(again, key) for key in OWN} == OWN
    trainable = [weight.path for weight in model.trainable_weights]
    assert [weight.path for weight in again.trainable_weights] == trainable
    assert trainable and all("lora" in path for path in trainable)
    model.save_to_preset(tmp_path / "merged")
    merged = kbert.BertEmbedder.from_preset(tmp_path / "merged")
    np.testing.assert_allclose(merged.embed(TEXTS), model.embed(TEXTS), atol=1e-5)


@pytest.mark.parametrize("own", [{}, OWN], ids=["defaults", "all others"])
def test_a_preset_keeps_all(own, tmp_path):
    model = make(preprocessor=tiny.preprocessor(sequence_length=9), **own)
    model.save_to_preset(tmp_path)
    again = kbert.BertEmbedder.from_preset(tmp_path)
    np.testing.assert_allclose(again.embed(TEXTS), model.embed(TEXTS), atol=1e-6)
    assert again.settings() == model.settings()
    assert again.preprocessor.sequence_length == 9
    # A pooling that sentence-transformers has not is told in kbert.json alone.
    assert (tmp_path / "modules.json").exists() == (not own)
    other = kbert.BertEmbedder.from_preset(tmp_path, pooling="cls", normalize=True)
    expected = {**model.settings(), "pooling": "cls", "normalize": True}
    assert other.settings() == expected


def test_freezing_leaves_nothing_to_learn():
    model = make()
    assert not any(
        weight.path.startswith("pooler") for weight in model.trainable_weights
    )
    model.freeze_backbone()
    assert model.trainable_weights == []


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PAIRS, [1] * 8), "no `y`. Received: a y of type list"),
        ((FIRSTS,), "x=.firsts, seconds.*Received: single texts"),
        (((FIRSTS, SECONDS[:3]),), "Received: 8 texts first and 3 texts second"),
        ((PAIRS, None, 1, 1, 0, None, 0.0, None, True, {0: 2.0}), "{0: 2.0}"),
    ],
)
def test_what_fit_refuses(arguments, message):
    model = make()
    with pytest.raises(ValueError, match=message):
        model.fit(*arguments)
    assert model.optimizer is None


def test_what_else_is_refused(trained):
    with pytest.raises(ValueError, match="`similarity`. Received: a pair"):
        trained.predict(PAIRS)
    three = {
        "token_ids": np.full((1, 3, 2), 5),
        "padding_mask": np.ones((1, 3, 2), int),
    }
    with pytest.raises(ValueError, match=r"\(N, 2, S\). Received: 3 texts"):
        trained.test_on_batch(three)
    with pytest.raises(ValueError, match="temperature=0"):
        make(temperature=0)
    with pytest.raises(ValueError, match="pooling='sum'"):
        make(pooling="sum")
