"""Checkpoints of tf-models, by the names of objects: taken, ignored and refused."""

import numpy as np
import pytest

from kbert import presets
from kbert.bundles import objects
from kbert.checkpoints import folder
from tests.bundles import writer
from tests.checkpoints import foreign

VALUE = foreign.VALUE
QUERY = "encoder/layer_with_weights-4/_attention_layer/_query_dense/bias"


@pytest.fixture
def preset(tmp_path):
    config = '{"vocab_size": 11, "num_attention_heads": 2}'
    (tmp_path / "bert_config.json").write_text(config)
    return tmp_path


def write(preset, variables, root="encoder", heads=2, more=None):
    arrays = {path: variable.value for path, variable in variables.items()}
    prefix = preset / "bert_model.ckpt"
    foreign.tf2_checkpoint(prefix, arrays, heads, root, more)
    return presets.find_preset(preset)


@pytest.mark.parametrize("root", ["encoder", "model"])
def test_what_stands_beside_the_encoder_is_ignored_by_name(preset, model, root):
    names = [
        "global_step",
        "optimizer/iter",
        "masked_lm/dense/kernel",
        "next_sentence.pooler_dense/bias",
        "keras_api/metrics/0/total",
        f"{root}/layer_with_weights-0/embeddings/.OPTIMIZER_SLOT/optimizer/m",
    ]
    more = {f"{name}{VALUE}": np.float32([1]) for name in names}
    variables = model(seed=1)
    report = folder.load_preset(write(preset, model(), root, more=more), variables)
    assert set(report.ignored) == {*names, "save_counter"}
    assert (report.loaded, report.random) == (tuple(variables), ())
    for path, variable in model().items():
        np.testing.assert_array_equal(variables[path].value, variable.value)


def test_another_number_of_heads_is_refused(preset, model):
    found = write(preset, model(), heads=4)
    with pytest.raises(ValueError, match=r"must have 2 heads.*Received: the shape \("):
        folder.load_preset(found, model())


@pytest.mark.parametrize(
    ("name", "received"),
    [
        ("encoder/layer_with_weights-1/kernel", "no place for"),
        ("encoder/layer_with_weights-9/_output_dense/bias", "no place for"),
        ("encoder/layer_with_weights-4/_gate/bias", "no place for"),
        ("model/layer_with_weights-4/_output_dense/bias", "each tensor once"),
    ],
)
def test_a_tensor_of_nobody_is_refused(preset, model, name, received):
    found = write(preset, model(), more={f"{name}{VALUE}": np.float32([1])})
    with pytest.raises(ValueError, match=received) as error:
        folder.load_preset(found, model())
    assert str(preset / "bert_model.ckpt") in str(error.value)


@pytest.mark.parametrize(
    ("graph", "received"),
    [
        (writer.string(b"\xff"), "a number without an end"),
        (writer.string(writer.message((1, b"\x12\x7f"))), "a message that is none"),
        (writer.string(writer.message((1, 3))), "a number where a message must be"),
        (b"", "a number without an end"),
        (b"\x7f", "a string of 127 bytes"),
    ],
)
def test_a_damaged_graph_is_refused(preset, model, graph, received):
    pair = (writer.GRAPH.encode(), writer.entry(writer.STRING, (), 0, graph))
    index = writer.table([writer.HEADER, pair])
    (preset / "bert_model.ckpt.index").write_bytes(index)
    (preset / "bert_model.ckpt.data-00000-of-00001").write_bytes(graph)
    with pytest.raises(ValueError, match=received):
        folder.load_preset(presets.find_preset(preset), model())


def test_a_graph_that_is_no_string(preset, model):
    arrays = {writer.GRAPH: np.float32([1])}
    writer.write(preset / "bert_model.ckpt", arrays)
    with pytest.raises(ValueError, match="must be a string. Received: float32"):
        folder.load_preset(presets.find_preset(preset), model())


LAYER = "bert/encoder/layer_7/"
KERAS = {
    # 2020 and later
    "position_embedding/position_embeddings:0": "bert/embeddings/position_embeddings",
    "transformer/layer_7/self_attention/attention_output/kernel": (
        f"{LAYER}attention/output/dense/kernel"
    ),
    "transformer/layer_7/output_layer_norm/beta": f"{LAYER}output/LayerNorm/beta",
    "cls/predictions/output_bias/bias": "cls/predictions/output_bias",
    "bert/cls/predictions/transform/dense/kernel": (
        "cls/predictions/transform/dense/kernel"
    ),
    # 2019
    "bert_model/word_embeddings/embeddings:0": "bert/embeddings/word_embeddings",
    "bert_model/embedding_postprocessor/type_embeddings": (
        "bert/embeddings/token_type_embeddings"
    ),
    "bert_model/embedding_postprocessor/layer_norm/gamma": (
        "bert/embeddings/LayerNorm/gamma"
    ),
    "bert_model/encoder/layer_7/self_attention/key/bias": (
        f"{LAYER}attention/self/key/bias"
    ),
    "bert_model/encoder/layer_7/self_attention_output/kernel": (
        f"{LAYER}attention/output/dense/kernel"
    ),
    "bert_model/pooler_transform/bias": "bert/pooler/dense/bias",
    # of nobody
    "transformer/layer_7/gate/kernel": None,
    "transformer/layer_x/output/kernel": None,
    "kernel": None,
    "": None,
}


@pytest.mark.parametrize(("name", "expected"), KERAS.items())
def test_names_of_keras(name, expected):
    assert objects.from_keras(name) == expected


@pytest.mark.parametrize("part", ["_attention_output_dense", "_output_dense"])
def test_names_of_attributes_in_older_versions(part):
    name = objects.from_attributes(f"model/layer_with_weights-4/{part}/bias")
    dense = {"_output_dense": "output/dense"}.get(part, "attention/output/dense")
    assert name == f"bert/encoder/layer_0/{dense}/bias"
