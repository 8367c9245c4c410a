import json
import os
import re
import struct

import numpy as np
import pytest
import safetensors.numpy

from kbert import presets
from kbert.checkpoints import folder
from kbert.config import BertConfig

WORDS = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.1.attention.self.query.weight"


def file_of(path, entries):
    """Writes a safetensors file from (name, dtype, shape, bytes)."""
    header, data = {}, b""
    for name, dtype, shape, content in entries:
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    encoded = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)
    return path


def values(variables):
    return {path: variable.value.copy() for path, variable in variables.items()}


def assert_untouched(variables):
    assert {variable.assigned for variable in variables.values()} == {0}


def load(variables, arrays, **kwargs):
    return folder.load_into(variables, arrays, source="here", **kwargs)


def refused(variables, arrays, *received, **kwargs):
    """Asserts that loading fails before anything is assigned, and what it says."""
    with pytest.raises(ValueError) as error:
        load(variables, arrays, **kwargs)
    for words in ("here", *received):
        assert words in str(error.value)
    assert_untouched(variables)


# --- loading -----------------------------------------------------------------------


@pytest.mark.parametrize("heads", [(), ("pooler",), ("pooler", "classifier")])
def test_a_dumped_model_loads_into_another(model, heads):
    one, other = model(heads), model(heads, seed=1)
    report = load(other, folder.dump(one))
    assert report == folder.LoadReport("here", tuple(one), (), ())
    for path, expected in values(one).items():
        np.testing.assert_array_equal(other[path].value, expected)
        assert other[path].assigned == 1


def test_a_kernel_is_transposed(model):
    variables = model()
    stored = folder.dump(variables)["encoder.layer.0.intermediate.dense.weight"]
    assert stored.shape == (6, 4)
    kernel = variables["encoder_layer_0/intermediate/kernel"].value
    np.testing.assert_array_equal(stored, kernel.T)


def test_prefix_only_where_there_is_a_head(model):
    assert "pooler.dense.bias" in folder.dump(model())
    with_head = folder.dump(model(("pooler", "classifier")))
    assert {"bert.pooler.dense.bias", "classifier.bias"} < set(with_head)


def test_bare_names_load_into_a_model_with_a_head(model):
    variables = model(("pooler", "classifier"))
    with pytest.warns(UserWarning, match=r"\['classifier/kernel', 'classifier/bias'\]"):
        report = load(variables, folder.dump(model()), optional=["classifier"])
    assert report.random == ("classifier/kernel", "classifier/bias")
    assert variables["classifier/kernel"].assigned == 0
    assert variables["pooler/dense/kernel"].assigned == 1


def test_old_names_of_layer_norm(model):
    arrays = {
        re.sub("(LayerNorm.)weight$", r"\1gamma", name): array
        for name, array in folder.dump(model()).items()
    }
    arrays = {
        re.sub("(LayerNorm.)bias$", r"\1beta", name): array
        for name, array in arrays.items()
    }
    assert "embeddings.LayerNorm.gamma" in arrays
    assert "embeddings.LayerNorm.bias" not in arrays
    other = model(seed=1)
    assert load(other, arrays).ignored == ()
    expected = model()["encoder_layer_1/output_norm/beta"].value
    np.testing.assert_array_equal(
        other["encoder_layer_1/output_norm/beta"].value, expected
    )


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_other_heads_and_buffers_are_ignored_by_name(model, prefix):
    arrays = {f"{prefix}{name}": array for name, array in folder.dump(model()).items()}
    extra = [
        f"{prefix}embeddings.position_ids",
        "cls.predictions.transform.LayerNorm.gamma",
        "cls.seq_relationship.weight",
        "classifier.weight",
    ]
    arrays.update({name: np.zeros(1) for name in extra})
    assert load(model(), arrays).ignored == tuple(extra)
    pooler = (f"{prefix}pooler.dense.weight", f"{prefix}pooler.dense.bias")
    assert set(load(model(()), arrays).ignored) == {*extra, *pooler}


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.2.output.dense.bias",  # a layer more than the model has
        "bert.encoder.layer.01.output.dense.bias",
        "encoder.layer.0.output.dense.scale",
        "module.embeddings.word_embeddings.weight",
        "classifier.out_proj.weight",
    ],
)
def test_an_unknown_tensor_is_refused(model, name):
    arrays = {**folder.dump(model()), name: np.zeros(4)}
    refused(model(), arrays, repr(name))


def test_a_missing_tensor_is_refused(model):
    arrays = folder.dump(model(("pooler", "classifier")))
    del arrays[QUERY]
    path = "encoder_layer_1/attention/query/kernel"
    refused(model(), arrays, QUERY, path, optional=["pooler", "classifier"])


def test_a_head_may_be_absent_only_whole_and_only_where_allowed(model):
    heads = ("pooler", "classifier")
    arrays = folder.dump(model(heads))
    del arrays["classifier.bias"]
    refused(model(heads), arrays, "['classifier.bias']", optional=["classifier"])
    del arrays["classifier.weight"]
    refused(model(heads), arrays, "classifier.weight", optional=["pooler"])
    refused(model(heads), {}, "word_embeddings", optional=["embeddings", *heads])


@pytest.mark.parametrize("twin", ["embeddings.word_embeddings.weight", None])
def test_a_tensor_that_is_there_twice_is_refused(model, twin):
    arrays = folder.dump(model(("pooler", "classifier")))
    if twin is None:
        twin, name = (f"bert.embeddings.LayerNorm.{end}" for end in ("gamma", "weight"))
    else:
        name = WORDS
    arrays[twin] = arrays[name]
    refused(model(), arrays, repr(name), repr(twin))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (WORDS, (12, 4)),
        (QUERY, (4, 5)),
        ("bert.encoder.layer.0.intermediate.dense.weight", (4, 6)),  # not transposed
        ("classifier.bias", (2,)),
        ("bert.embeddings.LayerNorm.bias", (4, 1)),
    ],
)
def test_a_wrong_shape_is_refused_before_anything_is_assigned(model, name, shape):
    heads = ("pooler", "classifier")
    arrays = folder.dump(model(heads))
    expected = arrays[name].shape
    arrays[name] = np.zeros(shape)
    refused(model(heads), arrays, repr(name), str(expected), f"Received: {shape}")


def test_a_variable_without_a_row(model):
    variables = model()
    variables["encoder_layer_0/gate/kernel"] = variables["pooler/dense/kernel"]
    with pytest.raises(ValueError, match="Received: 'encoder_layer_0/gate/kernel'"):
        load(variables, {})
    with pytest.raises(ValueError, match="Received: 'encoder_layer_0/gate/kernel'"):
        folder.dump(variables)


# --- files -------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [(), ("pooler", "classifier")])
def test_write_and_read(model, tmp_path, heads):
    path = tmp_path / "model.safetensors"
    folder.write_weights(model(heads), path)
    arrays = folder.read_weights(path)
    expected = folder.dump(model(heads))
    assert set(arrays) == set(expected)
    for name, array in expected.items():
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(np.asarray(arrays[name]), array)
        assert not np.asarray(arrays[name]).flags.writeable
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"format": "pt"}


NUMBERS = np.array([[1.5, -2.0, 0.0], [65504.0, 1e-3, -0.25]], "float32")


def encoded(dtype):
    if dtype == "BF16":
        return (NUMBERS.view("uint32") >> 16).astype("<u2").tobytes()
    return NUMBERS.astype({"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("F64", 0), ("F32", 0), ("F16", 1e-3), ("BF16", 2**-7)]
)
def test_every_float_becomes_float32(tmp_path, dtype, rtol):
    # The first tensor is three bytes long, so that the second is not aligned.
    path = file_of(
        tmp_path / "x.safetensors",
        [("u", "U8", [3], b"abc"), ("x", dtype, [2, 3], encoded(dtype))],
    )
    array = np.asarray(folder.read_weights(path)["x"])
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, NUMBERS, rtol=rtol)


def test_bfloat16_is_exact(tmp_path):
    path = tmp_path / "x.safetensors"
    file_of(path, [("x", "BF16", [3], b"\x80\x3f\xc0\x7f\x80\xff")])
    expected = np.array([1.0, np.nan, -np.inf], "float32")
    np.testing.assert_array_equal(np.asarray(folder.read_weights(path)["x"]), expected)


def test_weights_that_are_no_floats_are_refused(tmp_path, model):
    entries = [("x", "I64", [1], bytes(8)), ("y", "F8_E4M3", [2], b"ab")]
    arrays = folder.read_weights(file_of(tmp_path / "x.safetensors", entries))
    with pytest.raises(ValueError, match="Received: I64 for 'x' in .*x.safetensors"):
        np.asarray(arrays["x"])
    with pytest.raises(ValueError, match="Received: F8_E4M3 for 'y'"):
        np.asarray(arrays["y"])


def test_a_buffer_of_integers_is_not_read(tmp_path, model):
    path = tmp_path / "x.safetensors"
    arrays = {**folder.dump(model()), "embeddings.position_ids": np.arange(8)}
    safetensors.numpy.save_file(arrays, path)
    report = load(model(seed=1), folder.read_weights(path))
    assert report.ignored == ("embeddings.position_ids",)


@pytest.mark.parametrize("kept", [0, 5, 8, 100, -1])
def test_a_truncated_file_is_refused(tmp_path, model, kept):
    path = tmp_path / "model.safetensors"
    folder.write_weights(model(), path)
    content = path.read_bytes()[:kept]
    path.write_bytes(content)
    match = f"model.safetensors must be .* Received: {len(content)} bytes"
    with pytest.raises(ValueError, match=match):
        folder.read_weights(path)


def test_a_replaced_file_is_read_as_it_was_opened(tmp_path, model):
    path = tmp_path / "model.safetensors"
    folder.write_weights(model(), path)
    arrays = folder.read_weights(path)
    folder.write_weights(model(("pooler", "classifier")), tmp_path / "new")
    (tmp_path / "new").replace(path)
    for name, expected in folder.dump(model()).items():
        np.testing.assert_array_equal(np.asarray(arrays[name]), expected)


def shards(folder_path, arrays):
    """Writes the arrays as two files with an index; returns its path and content."""
    listed = {}
    for number, part in enumerate((list(arrays)[:7], list(arrays)[7:]), 1):
        filename = f"model-0000{number}-of-00002.safetensors"
        safetensors.numpy.save_file(
            {name: arrays[name] for name in part}, folder_path / filename
        )
        listed.update(dict.fromkeys(part, filename))
    return folder_path / "model.safetensors.index.json", listed


def test_several_files_with_an_index(tmp_path, model):
    arrays = folder.dump(model())
    path, listed = shards(tmp_path, arrays)
    path.write_text(json.dumps({"metadata": {}, "weight_map": listed}))
    read = folder.read_weights(path)
    assert set(read) == set(arrays)
    assert load(model(seed=1), read).loaded == tuple(model())


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"pooler.dense.bias": "../model.safetensors"}, "'../model.safetensors'"),
        ({"pooler.dense.bias": "/model.safetensors"}, "'/model.safetensors'"),
        ({"pooler.dense.bias": 3}, "3"),
        ({"pooler.dense.bias": None}, "None"),
        ({"absent": "model-00001-of-00002.safetensors"}, r"\['absent'\]"),
        (
            {"pooler.dense.bias": "model-00001-of-00002.safetensors"},
            "'pooler.dense.bias' in model-00002-of-00002.safetensors, which it places",
        ),
    ],
)
def test_an_index_that_lies_is_refused(tmp_path, model, change, received):
    path, listed = shards(tmp_path, folder.dump(model()))
    path.write_text(json.dumps({"weight_map": {**listed, **change}}))
    with pytest.raises(ValueError, match=received):
        folder.read_weights(path)


def test_an_index_without_a_map_is_refused(tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text('{"weight_map": ["a"]}')
    with pytest.raises(ValueError, match=r"weight_map an object. Received: \['a'\]"):
        folder.read_weights(path)


# --- a preset ----------------------------------------------------------------------


def saved(folder_path, variables):
    files = {"model.safetensors": lambda path: folder.write_weights(variables, path)}
    presets.write_preset(folder_path, files, {})
    return presets.find_preset(folder_path)


def test_load_preset(model, tmp_path):
    preset = saved(tmp_path / "model", model())
    variables = model(seed=1)
    report = folder.load_preset(preset, variables)
    assert report.source == str(preset.folder / "model.safetensors")
    assert report.loaded == tuple(variables)


def test_load_preset_of_another_task_leaves_the_head_random(model, tmp_path):
    preset = saved(tmp_path / "model", model(()))
    with pytest.warns(UserWarning, match=r"no weights for \['pooler/dense/kernel'"):
        report = folder.load_preset(preset, model())
    assert report.random == ("pooler/dense/kernel", "pooler/dense/bias")


def test_load_preset_compares_the_hash_first(model, tmp_path):
    preset = saved(tmp_path / "model", model())
    path = preset.path("model.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # a whole file, but another weight
    path.write_bytes(content)
    stamp = preset.path("kbert.json").stat().st_mtime_ns
    os.utime(path, ns=(stamp, stamp))
    variables = model(seed=1)
    with pytest.raises(ValueError, match="model.safetensors is not the file"):
        folder.load_preset(preset, variables)
    assert_untouched(variables)


# --- vocabulary --------------------------------------------------------------------


def test_a_vocabulary_may_be_smaller_than_the_embedding_but_not_larger():
    config = BertConfig(vocabulary_size=50)
    folder.check_vocabulary(50, config)
    folder.check_vocabulary(7, config)
    with pytest.raises(ValueError, match="Received: 51 pieces and vocabulary_size=50"):
        folder.check_vocabulary(51, config)
