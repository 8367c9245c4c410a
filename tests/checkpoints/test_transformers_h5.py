import h5py
import numpy as np
import pytest

from kbert import presets
from kbert.checkpoints import folder, transformers_h5
from tests.checkpoints import foreign

HEADS = ("pooler", "classifier")
# Of TFBertForPreTraining, TFBertForQuestionAnswering and an old checkpoint's buffer.
OTHERS = {
    "mlm___cls/predictions/bias:0": "cls.predictions.bias",
    "mlm___cls/predictions/transform/dense/kernel:0": (
        "cls.predictions.transform.dense.weight"
    ),
    "mlm___cls/predictions/transform/LayerNorm/gamma:0": (
        "cls.predictions.transform.LayerNorm.weight"
    ),
    "nsp___cls/seq_relationship/kernel:0": "cls.seq_relationship.weight",
    "qa_outputs/bias:0": "qa_outputs.bias",
}


@pytest.fixture
def preset(tmp_path):
    """A folder that says nothing of its sizes, which these tests do not ask for."""
    (tmp_path / "config.json").write_text("{}")
    return presets.find_preset(tmp_path)


def write(preset, variables, **kwargs):
    arrays = {path: variable.value for path, variable in variables.items()}
    foreign.tf_model_h5(preset.folder / "tf_model.h5", arrays, **kwargs)


def load(preset, variables):
    return folder.load_preset(preset, variables, optional=())


@pytest.mark.parametrize(
    ("heads", "scope"),
    [
        ((), "tf_bert_for_masked_lm"),
        (("pooler",), "tf_bert_model_1"),
        (HEADS, "tf_bert_for_sequence_classification"),
    ],
)
def test_every_tensor_in_its_place(scope, heads, preset, model):
    one, other = model(heads), model(heads, seed=1)
    write(preset, one, model=scope)
    report = load(preset, other)
    assert (report.loaded, report.random, report.ignored) == (tuple(one), (), ())
    for path, variable in one.items():
        np.testing.assert_array_equal(other[path].value, variable.value)


def test_other_heads_are_ignored_by_name(preset, model):
    write(preset, model(), more={name: np.ones(2, "float32") for name in OTHERS})
    assert set(load(preset, model()).ignored) == set(OTHERS.values())


def test_embeddings_that_the_head_of_masked_words_shares(preset, model):
    write(preset, model(), more={"mlm___cls/predictions/bias:0": np.ones(11, "f4")})
    shared = f"mlm___cls/{WORDS.partition('/')[2]}"
    with h5py.File(preset.folder / "tf_model.h5", "a") as file:
        np.testing.assert_array_equal(file[shared], file[WORDS])
        file[shared][0, 0] += 1
    with pytest.raises(ValueError, match=f"two that differ: '{WORDS}'.*'{shared}'"):
        load(preset, model())


def test_float16_becomes_float32(preset, model):
    half = model()
    for variable in half.values():
        variable.value = variable.value.astype("float16")
    write(preset, half)
    variables = model(seed=1)
    load(preset, variables)
    for path, variable in half.items():
        np.testing.assert_array_equal(variables[path].value, variable.value)


def test_safetensors_are_preferred(preset, model):
    write(preset, model(seed=1))
    folder.write_weights(model(), preset.folder / "model.safetensors")
    (preset.folder / "flax_model.msgpack").write_bytes(b"")
    (preset.folder / "pytorch_model.bin").write_bytes(b"")
    assert load(preset, model()).source.endswith("model.safetensors")
    (preset.folder / "model.safetensors").unlink()
    assert load(preset, model()).source.endswith("tf_model.h5")


def changed(preset, variables, change):
    write(preset, variables)
    with h5py.File(preset.folder / "tf_model.h5", "a") as file:
        change(file)


WORDS = "bert/tf_bert_model/bert/embeddings/word_embeddings/weight:0"
BIAS = "bert/tf_bert_model/bert/pooler/dense/bias:0"


def replaced(**how):
    def change(file):
        del file[BIAS]
        file.create_dataset(BIAS, **how)

    return change


def linked(link):
    def change(file):
        del file[BIAS]
        file[BIAS] = link

    return change


def ring(file):
    file["bert/ring"] = file["bert"]


CHANGES = {
    "integers": (replaced(data=np.arange(4)), "Received: int64"),
    "words": (replaced(data=["a"] * 4), "Received: object"),
    "another shape": (replaced(data=np.ones(3, "float32")), r"Received: \(3,\)"),
    "a shape that is not there": (
        replaced(shape=(1 << 40,), dtype="float32", chunks=(1 << 20,)),
        "in 0 bytes",
    ),
    "compressed": (
        replaced(data=np.ones(1 << 20, "float32"), compression="gzip"),
        "uncompressed",
    ),
    "nothing": (replaced(data=h5py.Empty("float32")), "the shape None"),
    "outside": (
        replaced(shape=(4,), dtype="float32", external=[("/dev/zero", 0, 16)]),
        "whose data lie elsewhere",
    ),
    "a soft link": (linked(h5py.SoftLink("/bert")), "a SoftLink"),
    "an external link": (linked(h5py.ExternalLink("x.h5", "/")), "a ExternalLink"),
    "a type": (linked(np.dtype("float32")), "a Datatype"),
    "a ring": (ring, "nest its groups deeper"),
    "a twin": (
        lambda file: (
            file.move(BIAS, BIAS.replace("pooler/", "pooler_._"))
            or file.create_dataset(BIAS, data=np.ones(4, "float32"))
        ),
        "each tensor once. Received two for 'bert.pooler.dense.bias",
    ),
    "one dataset many times": (
        lambda file: file.update({f"x{n}": file[WORDS] for n in range(4000)}),
        "datasets of .* bytes in a file of",
    ),
    "absent": (lambda file: file.pop(BIAS), "Missing: .*pooler.dense.bias"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_refused(name, preset, model):
    change, told = CHANGES[name]
    changed(preset, model(), change)
    variables = model()
    with pytest.raises(ValueError, match=told) as error:
        load(preset, variables)
    assert str(preset.folder / "tf_model.h5") in str(error.value)
    assert {variable.assigned for variable in variables.values()} == {0}


@pytest.mark.parametrize("name", ["", "x", "x/y", "x/y/z"])
def test_names_of_nobody(name):
    assert "bert" not in transformers_h5.hugging_face_name(name)[0]


@pytest.mark.parametrize(("stored", "expected"), OTHERS.items())
def test_names_of_heads(stored, expected):
    path = f"{stored.split('/')[0]}/tf_bert/{stored}"
    assert transformers_h5.hugging_face_name(path)[0] == expected
