import numpy as np
import pytest
import tensorflow as tf

from kbert.preprocessing.graph_packing import pack_graph
from tests.preprocessing import reference
from tests.preprocessing.structures import assert_same

IDS = {"cls_id": reference.CLS, "sep_id": reference.SEP, "pad_id": reference.PAD}
FIRSTS = reference.random_lists(60, 11, seed=0)
SECONDS = reference.random_lists(60, 9, seed=1)
RAGGED = (
    tf.ragged.constant(FIRSTS, dtype=tf.int32),
    tf.ragged.constant(SECONDS, dtype=tf.int32),
)


def as_graph(function):
    spec = tf.RaggedTensorSpec([None, None], tf.int32)
    return tf.function(function, input_signature=[spec, spec])


@pytest.mark.parametrize("long_text", ["truncate", "head_tail"])
@pytest.mark.parametrize("length", [3, 4, 9, 30])
def test_graph_equals_slow_reference(length, long_text):
    graph = as_graph(
        lambda first, second: pack_graph(
            first,
            second,
            **IDS,
            max_length=512,
            sequence_length=length,
            long_text=long_text,
        )
    )
    expected = reference.pack_dense(FIRSTS, SECONDS, length, length, long_text)
    assert_same(graph(*RAGGED), expected)


def test_width_is_that_of_the_longest_where_none_is_given():
    longest = max(len(reference.pack_one(ids, None, 9)[0]) for ids in FIRSTS[:5])
    packed = pack_graph(RAGGED[0][:5], **IDS, max_length=9)
    assert_same(packed, reference.pack_dense(FIRSTS[:5], None, 9, longest))


def test_no_text_at_all():
    packed = pack_graph(RAGGED[0][:0], **IDS, max_length=9)
    assert packed["token_ids"].shape == (0, 0)


def test_only_core_ops():
    graph = as_graph(lambda a, b: pack_graph(a, b, **IDS, max_length=9))
    ops = {op.type for op in graph.get_concrete_function().graph.get_operations()}
    assert not [name for name in ops if "Xla" in name or "TFText" in name]


def test_texts_of_a_pair_differ_in_number():
    graph = as_graph(lambda a, b: pack_graph(a, b, **IDS, max_length=9))
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs a second one"):
        graph(RAGGED[0], RAGGED[1][:-1])


def test_no_room():
    with pytest.raises(ValueError, match="sequence_length.*Received: 2"):
        pack_graph(*RAGGED, **IDS, max_length=9, sequence_length=2)
    with pytest.raises(ValueError, match="max_length.*Received: 1"):
        pack_graph(RAGGED[0], **IDS, max_length=1)


def test_int64_ids_are_taken():
    packed = pack_graph(tf.cast(RAGGED[0], tf.int64), **IDS, max_length=9)
    assert packed["token_ids"].dtype == tf.int32
    assert np.array(packed["padding_mask"]).max() == 1
