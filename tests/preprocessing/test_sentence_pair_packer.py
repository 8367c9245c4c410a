import keras
import numpy as np
import pytest

from kbert.preprocessing.sentence_pair_packer import SentencePairPacker
from tests.layer_checks import check_arguments, check_config
from tests.preprocessing import reference
from tests.preprocessing.structures import assert_same, reloaded, to_numpy

IDS = {"cls_id": reference.CLS, "sep_id": reference.SEP}
FIRSTS = reference.random_lists(40, 11, seed=0)
SECONDS = reference.random_lists(40, 9, seed=1)
PAIR = (reference.padded(FIRSTS), reference.padded(SECONDS))


@pytest.mark.parametrize("long_text", ["truncate", "head_tail"])
@pytest.mark.parametrize("length", [3, 4, 9, 30])
def test_pair_equals_slow_reference(length, long_text):
    packer = SentencePairPacker(**IDS, sequence_length=length, long_text=long_text)
    expected = reference.pack_dense(FIRSTS, SECONDS, length, length, long_text)
    assert_same(packer(PAIR), expected)


def test_single_equals_slow_reference():
    packer = SentencePairPacker(**IDS, sequence_length=8)
    assert_same(packer(PAIR[0]), reference.pack_dense(FIRSTS, None, 8, 8))


def test_every_argument_survives(tmp_path):
    arguments = {
        "cls_id": 7,
        "sep_id": 8,
        "sequence_length": 9,
        "pad_id": 99,
        "long_text": "head_tail",
    }
    check_arguments(SentencePairPacker, arguments)
    check_config(SentencePairPacker, arguments)
    pair = tuple(
        np.where(ids == reference.PAD, np.int32(99), np.minimum(ids, 98))
        for ids in PAIR
    )
    symbolic = tuple(keras.Input((None,), dtype="int32") for _ in pair)
    packer = SentencePairPacker(**arguments)
    model = reloaded(keras.Model(symbolic, packer(symbolic)), tmp_path)
    outputs = to_numpy(model(pair))
    assert_same(outputs, packer(pair))
    is_text = outputs["padding_mask"] == 1
    assert (outputs["token_ids"][~is_text] == 99).all()
    assert (outputs["token_ids"][is_text] != 99).all()


def test_functional_model_with_free_sizes():
    inputs = (keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))
    packer = SentencePairPacker(**IDS, sequence_length=8)
    model = keras.Model(inputs, packer(inputs))
    assert model.output["token_ids"].shape == (None, 8)
    assert_same(model(PAIR), reference.pack_dense(FIRSTS, SECONDS, 8, 8))
    predicted = model.predict(PAIR, verbose=0, batch_size=16)
    assert_same(predicted, reference.pack_dense(FIRSTS, SECONDS, 8, 8))


def test_length_of_a_call_is_the_same_on_both_paths():
    packer = SentencePairPacker(**IDS, sequence_length=20)
    inputs = (keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))
    model = keras.Model(inputs, packer(inputs, sequence_length=6))
    expected = reference.pack_dense(FIRSTS, SECONDS, 6, 6)
    assert_same(packer(PAIR, sequence_length=6), expected)
    assert_same(model(PAIR), expected)


def test_ids_may_be_of_any_integer_type_and_hold_the_pad_inside():
    ids = np.array([[5, 0, 6, 0]], "int64")
    packed = to_numpy(SentencePairPacker(**IDS, sequence_length=6)(ids))
    assert packed["token_ids"].tolist() == [[1, 5, 0, 6, 2, 0]]


def test_three_segments():
    packer = SentencePairPacker(**IDS, sequence_length=9)
    with pytest.raises(ValueError, match="two segments.*Received: 3 segments"):
        packer((*PAIR, PAIR[0]))


def test_ids_of_another_rank():
    packer = SentencePairPacker(**IDS, sequence_length=9)
    with pytest.raises(ValueError, match=r"\(batch, length\).*shape \(3,\)"):
        packer(np.array([5, 6, 7]))


def test_ids_that_are_floats():
    packer = SentencePairPacker(**IDS, sequence_length=9)
    with pytest.raises(ValueError, match="integers. Received: dtype=float32"):
        packer(np.ones((2, 3), "float32"))


def test_no_room():
    with pytest.raises(ValueError, match="sequence_length.*at least 2.*Received: 1"):
        SentencePairPacker(**IDS, sequence_length=1)
    with pytest.raises(ValueError, match="sequence_length.*at least 3.*Received: 2"):
        SentencePairPacker(**IDS, sequence_length=9)(PAIR, sequence_length=2)


def test_unknown_long_text():
    with pytest.raises(ValueError, match="Received: 'tail'"):
        SentencePairPacker(**IDS, sequence_length=9, long_text="tail")
