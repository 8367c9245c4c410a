import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.preprocessing.preprocessor import BertPreprocessor
from tests.preprocessing.structures import assert_same, reloaded
from tests.preprocessing.test_preprocessor import FIRSTS, SECONDS, TOKENIZER

PAIR = (tf.constant(FIRSTS), tf.constant(SECONDS))


def mapped(dataset, preprocessor):
    """Return the batches of the mapped dataset, put together."""
    batches = list(dataset.map(preprocessor))
    assert all(tf.is_tensor(tensor) for tensor in batches[0].values())
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


@pytest.mark.parametrize("long_text", ["truncate", "head_tail"])
@pytest.mark.parametrize("length", [4, 6, 12])
def test_graph_equals_python(length, long_text):
    preprocessor = BertPreprocessor(TOKENIZER, length, long_text=long_text)
    single = tf.data.Dataset.from_tensor_slices(FIRSTS).batch(2)
    pair = tf.data.Dataset.from_tensor_slices({"first": FIRSTS, "second": SECONDS})
    assert_same(mapped(single, preprocessor), preprocessor(FIRSTS))
    assert_same(mapped(pair.batch(2), preprocessor), preprocessor((FIRSTS, SECONDS)))


def test_unbatched_dataset():
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    singles = tf.data.Dataset.from_tensor_slices(FIRSTS).map(preprocessor)
    assert singles.element_spec["token_ids"].shape == (6,)
    assert_same(next(iter(singles.batch(5))), preprocessor(FIRSTS))


def test_pair_within_a_larger_map():
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    dataset = tf.data.Dataset.from_tensors((PAIR, [0, 1, 0, 1, 0]))
    ((x, _),) = dataset.map(lambda x, y: (preprocessor(x), y))
    assert_same(x, preprocessor((FIRSTS, SECONDS)))


def test_width_of_the_batch_in_the_graph():
    preprocessor = BertPreprocessor(TOKENIZER, max_sequence_length=7)
    dataset = tf.data.Dataset.from_tensors(FIRSTS[2:]).map(preprocessor)
    assert_same(next(iter(dataset)), preprocessor(FIRSTS[2:]))


@pytest.mark.parametrize("x", [PAIR[0], PAIR, {"first": PAIR[0], "second": PAIR[1]}])
def test_eager_tensors_come_back_as_tensors(x):
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    packed = preprocessor(x)
    assert all(tf.is_tensor(tensor) for tensor in packed.values())
    second = None if x is PAIR[0] else SECONDS
    assert_same(packed, preprocessor(FIRSTS if second is None else (FIRSTS, second)))


def test_eager_scalar():
    packed = BertPreprocessor(TOKENIZER, 6)(tf.constant("a film"))
    assert packed["token_ids"].numpy().tolist() == [1, 5, 7, 2, 0, 0]


def test_eager_tensor_to_encode():
    encoded = BertPreprocessor(TOKENIZER).encode(tf.constant(FIRSTS))
    assert len(encoded) == 5


def test_first_call_inside_a_graph_leaves_a_usable_layer():
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    for _ in range(2):  # a new graph each time
        graph = tf.function(lambda x: preprocessor(x))
        assert_same(graph(PAIR[0]), preprocessor(FIRSTS))


def test_functional_model_on_text(tmp_path):
    texts = (keras.Input((), dtype="string"), keras.Input((), dtype="string"))
    preprocessor = BertPreprocessor(TOKENIZER, 6, long_text="head_tail")
    model = keras.Model(texts, preprocessor(texts))
    expected = preprocessor((FIRSTS, SECONDS))
    assert_same(model(PAIR), expected)
    assert_same(model.predict(PAIR, verbose=0, batch_size=2), expected)
    copy = reloaded(model, tmp_path)
    assert_same(copy.predict(PAIR, verbose=0, batch_size=2), expected)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (tf.TensorSpec([None, 1], tf.string), None, r"rank 1.*\(None, 1\)"),
        (tf.TensorSpec(None, tf.string), None, "rank 1.*unknown"),
        (tf.TensorSpec([3], tf.string), tf.TensorSpec([], tf.string), "both"),
    ],
)
def test_other_ranks(first, second, told):
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    x = first if second is None else {"first": first, "second": second}
    with pytest.raises(ValueError, match=told):
        tf.function(lambda x: preprocessor(x)).get_concrete_function(x)


def test_matrix_of_eager_strings():
    with pytest.raises(ValueError, match=r"one-dimensional.*shape \(1, 2\)"):
        BertPreprocessor(TOKENIZER)(tf.constant([["a", "b"]]))


def test_tensor_of_numbers():
    with pytest.raises(TypeError, match="SentencePairPacker.*float32"):
        BertPreprocessor(TOKENIZER)(tf.zeros([2, 3]))


def test_texts_of_a_pair_differ_in_number_in_the_graph():
    preprocessor = BertPreprocessor(TOKENIZER, 6)
    graph = tf.function(lambda x: preprocessor(x))
    pair = (tf.TensorSpec([None], tf.string),) * 2
    function = graph.get_concrete_function(pair)
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs a second one"):
        function(PAIR[0], PAIR[1][:-1])


def test_labels_are_not_lost_by_mapping_a_labelled_dataset():
    dataset = tf.data.Dataset.from_tensors((PAIR[0], [0, 1, 0, 1, 0]))
    with pytest.raises(TypeError, match="3 were given"):
        dataset.map(BertPreprocessor(TOKENIZER, 6))
