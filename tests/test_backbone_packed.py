"""Packed rows compute what one text a row computes, outputs and gradients."""

import keras
import numpy as np
import pytest

from kbert.preprocessing import rows
from tests import random_bert
from tests.preprocessing import toy

# Five texts, as long as 3, 2, 3, 5 and 4, in rows of eight.
PACKED = np.array(
    [[1, 1, 1, 2, 2, 3, 3, 3], [1, 1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]]
)
# Another way to lay them: other neighbours, gaps, numbers that do not count up.
ELSEWHERE = np.array(
    [[0, 4, 4, 4, 4, 3, 3, 3], [5, 5, 5, 5, 5, 2, 2, 0], [0, 0, 0, 9, 9, 9, 0, 0]]
)
WHERE_PACKED = [(0, 0, 3), (0, 3, 2), (0, 5, 3), (1, 0, 5), (2, 0, 4)]
WHERE_ELSE = [(2, 3, 3), (1, 5, 2), (0, 5, 3), (1, 0, 5), (0, 1, 4)]
PLAIN = np.array([[1] * n + [0] * (8 - n) for n in (3, 2, 3, 5, 4)])
WHERE_PLAIN = [(row, 0, n) for row, n in enumerate((3, 2, 3, 5, 4))]
LAYOUTS = {"packed": (PACKED, WHERE_PACKED), "elsewhere": (ELSEWHERE, WHERE_ELSE)}


def lay(numbers, where, seed):
    """Returns inputs with the same five texts at `where`, and random ids elsewhere."""
    texts = np.random.RandomState(3)
    values = random_bert.inputs(numbers, seed=seed)
    for row, start, length in where:
        for key, top in (("token_ids", 23), ("segment_ids", 3)):
            values[key][row, start : start + length] = texts.randint(0, top, length)
    flat = [row * 8 + start for row, start, _ in where]
    return values | {"first_positions": np.array(flat, "int32")}


def task(**sizes):
    """Returns a model with four inputs and two numbers a text."""
    backbone = random_bert.make(dropout=0.0, attention_dropout=0.0, **sizes)
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key)
        for key in ("token_ids", "segment_ids", "padding_mask")
    }
    first = keras.Input((), dtype="int32", name="first_positions")
    pooled = backbone.pooled(inputs, first)
    outputs = keras.layers.Dense(2, name="classifier")(pooled)
    model = keras.Model({**inputs, "first_positions": first}, outputs)
    random_bert.shake(model, seed=4)
    return model, backbone


def test_what_is_pooled_is_the_pooled_output():
    model, backbone = task()
    values = lay(PLAIN, WHERE_PLAIN, seed=1)
    outputs = random_bert.as_array(model(values))
    values.pop("first_positions")
    _, pooled = random_bert.run(backbone, values)
    expected = random_bert.as_array(model.get_layer("classifier")(pooled))
    np.testing.assert_allclose(outputs, expected, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_equal_one_text_a_row(layout):
    model, backbone = task()
    numbers, where = LAYOUTS[layout]
    plain, packed = lay(PLAIN, WHERE_PLAIN, seed=1), lay(numbers, where, seed=2)
    np.testing.assert_allclose(
        random_bert.as_array(model(packed)),
        random_bert.as_array(model(plain)),
        atol=1e-5,
    )
    for values in (plain, packed):
        values.pop("first_positions")
    one, _ = random_bert.run(backbone, plain)
    several, _ = random_bert.run(backbone, packed)
    for (row, start, length), (other, at, _) in zip(where, WHERE_PLAIN, strict=True):
        np.testing.assert_allclose(
            several[row, start : start + length],
            one[other, at : at + length],
            atol=1e-5,
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_equal_one_text_a_row(layout):
    targets = np.random.RandomState(5).normal(size=(5, 2)).astype("float32")
    numbers, where = LAYOUTS[layout]
    found = [
        random_bert.trained_once(task()[0], values, targets)
        for values in (lay(PLAIN, WHERE_PLAIN, seed=1), lay(numbers, where, seed=2))
    ]
    assert set(found[0]) == set(found[1])
    for path, gradient in found[0].items():
        np.testing.assert_allclose(found[1][path], gradient, atol=1e-5)
        if not path.endswith("key/bias"):  # which a softmax does not see
            assert np.abs(gradient).max() > 1e-4, path


def test_lengths_from_3_to_512():
    random = np.random.RandomState(7)
    lengths = np.array([512, 3, 3, 511, *random.randint(3, 513, 8)])
    encoded = toy.encoded(lengths)  # every third a pair
    texts = np.arange(len(lengths))
    targets = random.normal(size=(len(lengths), 2)).astype("float32")
    outputs, gradients = [], []
    packed = rows.best_fit(lengths, 512)
    assert packed.num_rows < len(lengths)
    for placement in (packed, rows.one_a_row(len(lengths), 512)):
        values = rows.lay(encoded, texts, placement, pad_id=0)
        model, _ = task(vocabulary_size=100, max_sequence_length=512)
        outputs.append(random_bert.as_array(model(values)))
        gradients.append(random_bert.trained_once(model, values, targets))
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-5)
    for path, gradient in gradients[1].items():
        np.testing.assert_allclose(gradients[0][path], gradient, atol=1e-5)


@pytest.mark.parametrize("text", range(5))
def test_neighbours_and_padding_change_nothing(text):
    model, _ = task()
    first = lay(PACKED, WHERE_PACKED, seed=1)
    second = {key: value.copy() for key, value in first.items()}
    row, start, length = WHERE_PACKED[text]
    own = np.zeros(PACKED.shape, bool)
    own[row, start : start + length] = True
    for key, top in (("token_ids", 23), ("segment_ids", 3)):
        second[key] = np.where(own, first[key], (first[key] + 1) % top)
    before, after = (random_bert.as_array(model(v)) for v in (first, second))
    np.testing.assert_allclose(after[text], before[text], atol=1e-6)
    others = np.arange(5) != text
    assert np.abs(after - before)[others].max(axis=1).min() > 1e-4


def test_a_plain_mask_is_the_special_case():
    model, _ = task()
    values = lay(PLAIN, WHERE_PLAIN, seed=1)
    plain = random_bert.as_array(model(values))
    values["padding_mask"] = values["padding_mask"] * 7  # a number above 1, one text
    np.testing.assert_allclose(random_bert.as_array(model(values)), plain, atol=1e-5)
