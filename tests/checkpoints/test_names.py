import numpy as np
import pytest

from kbert.checkpoints import names


@pytest.mark.parametrize("column", ["kbert", "hugging_face"])
def test_a_name_stands_in_one_row(column):
    found = [getattr(row, column) for row in names.TABLE]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("row", names.TABLE, ids=lambda row: row.kbert)
def test_both_directions(row):
    ours, theirs = (name.replace("{i}", "17") for name in row[:2])
    assert names.translate(ours, "kbert", "hugging_face") == (theirs, row.transform)
    assert names.translate(theirs, "hugging_face", "kbert") == (ours, row.transform)


def test_the_table_is_a_berts():
    # Five tensors of the embeddings, sixteen a layer, two a dense head.
    assert [len(part) for part in (names.ENCODER, names.HEADS)] == [5 + 16, 2 + 2]
    transposed = [row for row in names.TABLE if row.transform == names.TRANSPOSE]
    assert {row.kbert.split("/")[-1] for row in transposed} == {"kernel"}
    assert sum(row.kbert.endswith("kernel") for row in names.TABLE) == len(transposed)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "embeddings/norm",
        "encoder_layer_x/output/bias",
        "encoder_layer_/output/bias",
    ],
)
def test_names_of_nobody(name):
    assert names.translate(name, "kbert", "hugging_face") is None


def test_heads():
    assert names.head_of("classifier/kernel") == "classifier"
    assert names.head_of("encoder_layer_0/output/bias") is None
    assert names.head_of("embeddings/norm/beta") is None


def test_transposing_is_its_own_inverse():
    array = np.arange(6.0).reshape(2, 3)
    twice = names.apply(names.TRANSPOSE, names.apply(names.TRANSPOSE, array))
    np.testing.assert_array_equal(twice, array)
    assert names.apply(names.NONE, array) is array
