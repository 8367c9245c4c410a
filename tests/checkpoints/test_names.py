import numpy as np
import pytest

from kbert.checkpoints import names


@pytest.mark.parametrize("column", names.COLUMNS)
def test_a_name_stands_in_one_row(column):
    found = [getattr(row, column) for row in names.TABLE]
    found = [name for name in found if name is not None]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("column", names.COLUMNS[1:])
@pytest.mark.parametrize("row", names.TABLE, ids=lambda row: row.kbert)
def test_both_directions(row, column):
    ours = row.kbert.replace("{i}", "17")
    if getattr(row, column) is None:
        assert row.kbert.split("/")[0] in ("nsp", "spans") and column == "keras_hub"
        assert names.translate(ours, "kbert", column) is None
        return
    theirs = getattr(row, column).replace("{i}", "17")
    transform = row.transform(column)
    assert names.translate(ours, "kbert", column) == (theirs, transform)
    assert names.translate(theirs, column, "kbert") == (ours, transform)


@pytest.mark.parametrize(
    ("path", "hugging_face", "google"),
    [
        (
            "embeddings/token_embedding/embeddings",
            "bert.embeddings.word_embeddings.weight",
            "bert/embeddings/word_embeddings",
        ),
        (
            "embeddings/norm/beta",
            "bert.embeddings.LayerNorm.bias",
            "bert/embeddings/LayerNorm/beta",
        ),
        (
            "encoder_layer_3/attention/query/kernel",
            "bert.encoder.layer.3.attention.self.query.weight",
            "bert/encoder/layer_3/attention/self/query/kernel",
        ),
        (
            "encoder_layer_3/attention_norm/gamma",
            "bert.encoder.layer.3.attention.output.LayerNorm.weight",
            "bert/encoder/layer_3/attention/output/LayerNorm/gamma",
        ),
        ("pooler/dense/bias", "bert.pooler.dense.bias", "bert/pooler/dense/bias"),
        ("classifier/kernel", "classifier.weight", "output_weights"),
        ("spans/kernel", "qa_outputs.weight", "cls/squad/output_weights"),
        ("spans/bias", "qa_outputs.bias", "cls/squad/output_bias"),
        (
            "mlm/norm/gamma",
            "cls.predictions.transform.LayerNorm.weight",
            "cls/predictions/transform/LayerNorm/gamma",
        ),
        ("mlm/bias", "cls.predictions.bias", "cls/predictions/output_bias"),
        (
            "nsp/kernel",
            "cls.seq_relationship.weight",
            "cls/seq_relationship/output_weights",
        ),
    ],
)
def test_names_as_the_formats_spell_them(path, hugging_face, google):
    assert names.translate(path, "kbert", "hugging_face")[0] == hugging_face
    assert names.translate(path, "kbert", "google")[0] == google


def test_the_table_is_a_berts():
    # Five tensors of the embeddings, sixteen a layer, two a dense head, five the one of
    # masked tokens.
    heads = 4 * 2 + 5
    assert [len(part) for part in (names.ENCODER, names.HEADS)] == [5 + 16, heads]
    kernels = {row.kbert for row in names.TABLE if row.kbert.endswith("/kernel")}

    def transposed(column):
        return {
            row.kbert for row in names.TABLE if row.transform(column) == names.TRANSPOSE
        }

    assert transposed("kbert") == set()
    assert transposed("hugging_face") == kernels  # torch's Linear is (out, in)
    # run_classifier.py, run_pretraining.py and run_squad.py.
    written = {"classifier/kernel", "nsp/kernel", "spans/kernel"}
    assert transposed("google") == written


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
