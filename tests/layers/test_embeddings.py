import numpy as np
import pytest
from keras import ops

from kbert.layers import BertEmbeddings
from kbert.layers.embeddings import positions
from tests import bert_reference
from tests.layer_checks import check_layer

KWARGS = {
    "vocabulary_size": 11,
    "hidden_dim": 6,
    "max_sequence_length": 9,
    "num_segments": 3,
    "dropout": 0.25,
    "layer_norm_epsilon": 1e-3,
    "initializer_range": 0.5,
}
TOKENS = np.array([[1, 4, 10, 0], [7, 4, 4, 2]], "int32")
SEGMENTS = np.array([[0, 1, 2, 0], [2, 0, 1, 1]], "int32")
MASK = np.array([[1, 1, 2, 0], [1, 1, 1, 1]], "int32")


def test_layer():
    check_layer(BertEmbeddings, KWARGS, (TOKENS, SEGMENTS, MASK), (2, 4, 6))


def test_equals_numpy_with_its_epsilon():
    layer = BertEmbeddings(**KWARGS)
    output = ops.convert_to_numpy(layer(TOKENS, SEGMENTS, MASK))
    weights = {
        f"embeddings/{v.path.split('/', 1)[1]}": v.numpy() for v in layer.weights
    }
    inputs = {"token_ids": TOKENS, "segment_ids": SEGMENTS, "padding_mask": MASK}
    for epsilon, equal in ((1e-3, True), (1e-12, False)):
        expected = bert_reference.embed(inputs, weights, epsilon)
        assert bool(np.abs(output - expected).max() < 1e-5) == equal


def test_tables_start_at_the_initialiser_range():
    layer = BertEmbeddings(3000, 64, initializer_range=0.5)
    layer.build((2, 4))
    values = layer.token_embedding.embeddings.numpy()
    assert abs(values.std() - 0.44) < 0.01  # truncated at two deviations
    # Keras on torch lets a value in a million through.
    assert (np.abs(values) > 1.0).mean() < 1e-4


def test_dropout_only_in_training():
    layer = BertEmbeddings(**{**KWARGS, "dropout": 0.5})
    first, again, training = (
        ops.convert_to_numpy(layer(TOKENS, SEGMENTS, MASK, training=training))
        for training in (False, False, True)
    )
    np.testing.assert_array_equal(first, again)
    assert (training == 0).any() and not (first == 0).any()


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("1111", "0123"),
        ("1100", "0123"),
        ("0011", "0123"),
        ("1011", "0123"),
        ("0000", "0123"),
        ("1122", "0101"),
        ("1222", "0012"),
        ("1230", "0000"),
        ("1200", "0001"),
        ("2221", "0120"),
        ("3311", "0101"),
    ],
)
def test_positions(numbers, expected):
    numbers = np.array([[int(digit) for digit in numbers]], "int32")
    found = ops.convert_to_numpy(positions(numbers))
    assert "".join(map(str, found[0])) == expected
    assert (bert_reference.positions(numbers) == found).all()


def test_positions_of_a_plain_row_beside_a_packed_one():
    numbers = np.array([[1, 1, 2, 2], [0, 1, 1, 0]], "int32")
    found = ops.convert_to_numpy(positions(numbers)).tolist()
    assert found == [[0, 1, 0, 1], [0, 1, 2, 3]]
