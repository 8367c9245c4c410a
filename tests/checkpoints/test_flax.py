import sys

import msgpack
import numpy as np
import pytest

from kbert import presets
from kbert.checkpoints import folder
from tests.checkpoints import foreign

HEADS = ("pooler", "classifier")
MLM = {
    "cls": {
        "predictions": {
            "bias": foreign.packed(np.ones(11, "float32")),
            "transform": {
                "dense": {"kernel": foreign.packed(np.ones((4, 4), "float32"))},
                "LayerNorm": {"scale": foreign.packed(np.ones(4, "float32"))},
            },
        }
    }
}


@pytest.fixture
def preset(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    return presets.find_preset(tmp_path)


def values(variables):
    return {path: variable.value for path, variable in variables.items()}


def load(preset, variables):
    return folder.load_preset(preset, variables, optional=())


@pytest.mark.parametrize("heads", [(), ("pooler",), HEADS])
def test_every_tensor_in_its_place(model, heads, preset):
    one, other = model(heads), model(heads, seed=1)
    foreign.flax_msgpack(preset.folder / "flax_model.msgpack", values(one))
    report = load(preset, other)
    assert (report.loaded, report.random, report.ignored) == (tuple(one), (), ())
    for path, variable in one.items():
        np.testing.assert_array_equal(other[path].value, variable.value)


def test_other_heads_are_ignored_by_name(model, preset):
    foreign.flax_msgpack(preset.folder / "flax_model.msgpack", values(model()), MLM)
    assert set(load(preset, model()).ignored) == {
        "cls.predictions.bias",
        "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.LayerNorm.weight",
    }


BIAS = np.float32([1.5, -2.0, 0.0, 0.25])


def with_bias(preset, variables, value):
    """Writes the file with another value for the pooler's bias."""
    tree = foreign.flax_tree(values(variables))
    tree["pooler"]["dense"]["bias"] = value
    path = preset.folder / "flax_model.msgpack"
    path.write_bytes(msgpack.packb(tree))
    return preset


@pytest.mark.parametrize(
    "value",
    [
        foreign.packed(BIAS.astype("float16")),
        foreign.packed(BIAS.astype("float64")),
        foreign.packed((BIAS.view("<u4") >> 16).astype("<u2"), "bfloat16"),
        foreign.chunked(BIAS, 3),
        foreign.chunked(BIAS, 4),
    ],
)
def test_every_float_and_chunks(value, model, preset):
    variables = model()
    load(with_bias(preset, model(), value), variables)
    np.testing.assert_array_equal(variables["pooler/dense/bias"].value, BIAS)


def extension(*parts, code=1):
    return msgpack.ExtType(code, msgpack.packb(parts, use_bin_type=True))


CASES = {
    "integers": (foreign.packed(np.arange(4)), "Received: int64 for 'pooler/dense"),
    "another shape": (foreign.packed(BIAS[:3]), r"shape \(4,\).*Received: \(3,\)"),
    "more shape than bytes": (extension((1 << 40,), "float32", b""), "0 bytes for flo"),
    "below zero": (extension((-4,), "float32", b""), r"of the shape \[-4\]"),
    "no shape": (extension(4, "float32", bytes(16)), "of the shape 4"),
    "a word as shape": (extension(("4",), "float32", bytes(16)), r"shape \['4'\]"),
    "no dtype": (extension((4,), "object", bytes(16)), "an array of 'object'"),
    "a list as dtype": (extension((4,), ["f"], bytes(16)), "lists|unhashable"),
    "four parts": (extension((4,), "float32", bytes(16), 1), "too many values"),
    "lists in lists": (extension([[[[]]]], "float32", b""), "an array of lists"),
    "no array": (msgpack.ExtType(1, b"\xc1"), "FormatError"),
    "a complex number": (extension(1.0, 2.0, code=2), "an extension of type 2"),
    "a number": (3, "a int under 'pooler/dense/bias'"),
    "nothing": (None, "a NoneType under"),
    "bytes": (b"abc", "exceeds max_bin_len"),
    "a list": ([1], "exceeds max_array_len"),
    "a long word": ("x" * 201, "exceeds max_str_len"),
    "no chunks": ({"__msgpack_chunked_array__": True}, "no array in chunks"),
    "chunks of nothing": (
        {**foreign.chunked(BIAS, 4), "chunks": {}},
        "no array in chunks",
    ),
    "chunks that are words": (
        {**foreign.chunked(BIAS, 4), "chunks": {"0": "x"}},
        "no array in chunks",
    ),
    "chunks of less": (
        {**foreign.chunked(BIAS, 4), "shape": {"0": 1 << 40}},
        "4 numbers for the shape",
    ),
    "a key with a path": ({"../x": foreign.packed(BIAS)}, "the key '../x'"),
    "a key that is a number": ({3: foreign.packed(BIAS)}, "is not allowed for map key"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused(name, model, preset):
    value, told = CASES[name]
    variables = model()
    with pytest.raises(ValueError, match=told) as error:
        load(with_bias(preset, model(), value), variables)
    assert str(preset.folder / "flax_model.msgpack") in str(error.value)
    assert {variable.assigned for variable in variables.values()} == {0}


TWICE = msgpack.packb("x") + msgpack.packb(1)
FILES = {
    "empty": (b"", "0 bytes"),
    "a list": (b"\x90", "a list where maps must be"),
    "a number": (b"\x01", "a int where maps"),
    "no msgpack": (b"\xc1", "FormatError"),
    "a key twice": (b"\x82" + TWICE * 2, "there twice"),
    "maps without an end": (b"\x81\xa1x" * 100_000, "StackError|OutOfData"),
    "a map of 2**32": (b"\xdf\xff\xff\xff\xff", "exceeds max_map_len"),
    "an extension of 2**32": (
        b"\x81\xa1x\xc9\xff\xff\xff\xff\x01",
        "exceeds max_ext_len",
    ),
    "an extension of 2**30": (b"\x81\xa1x\xc9\x40\0\0\0\x01", "OutOfData"),
    "many maps": (
        msgpack.packb({str(i): dict.fromkeys(map(str, range(99))) for i in range(999)}),
        "too many entries",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_refused(name, model, preset):
    content, told = FILES[name]
    (preset.folder / "flax_model.msgpack").write_bytes(content)
    with pytest.raises(ValueError, match=f"flax_model.msgpack.*{told}"):
        load(preset, model())


@pytest.mark.parametrize("change", [lambda data: data[:-5], lambda data: data + b"\0"])
def test_a_lost_end_and_one_too_many(change, model, preset):
    path = preset.folder / "flax_model.msgpack"
    foreign.flax_msgpack(path, values(model()))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match="must be whole msgpack"):
        load(preset, model())


def test_without_msgpack(monkeypatch, model, preset):
    foreign.flax_msgpack(preset.folder / "flax_model.msgpack", values(model()))
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-kbert\[flax\]'"):
        load(preset, model())
