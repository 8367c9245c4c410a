"""Reading checkpoints of Google's: what is taken, ignored and refused."""

import numpy as np
import pytest
import tensorflow as tf

from kbert import presets
from kbert.checkpoints import assigning, folder, google

WORDS = "bert/embeddings/word_embeddings"
QUERY = "bert/encoder/layer_1/attention/self/query/kernel"


def save(prefix, arrays):
    """Writes tensors as TensorFlow 1 does."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(arrays),
        shape_and_slices=[""] * len(arrays),
        tensors=[tf.constant(array) for array in arrays.values()],
    )


@pytest.fixture
def as_google(model, tmp_path):
    """Returns a function that saves a tiny model's tensors with changes, as a preset.

    The changes: None takes a tensor out.
    """

    def make(changes, heads=("pooler",)):
        arrays = {**assigning.dump(model(heads), google.GOOGLE), **changes}
        arrays = {name: array for name, array in arrays.items() if array is not None}
        save(tmp_path / "bert_model.ckpt", arrays)
        (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
        return presets.find_preset(tmp_path)

    return make


def test_what_tensorflow_1_left_in_training_is_ignored_by_name(model, tmp_path):
    tf1 = tf.compat.v1
    one, other = model(), model(seed=1)
    heads = {
        "cls/predictions/transform/dense/kernel": (4, 4),
        "cls/predictions/transform/dense/bias": (4,),
        "cls/predictions/transform/LayerNorm/gamma": (4,),
        "cls/predictions/transform/LayerNorm/beta": (4,),
        "cls/predictions/output_bias": (11,),
        "cls/seq_relationship/output_weights": (2, 4),
        "cls/seq_relationship/output_bias": (2,),
    }
    heads = {name: np.ones(shape, "float32") for name, shape in heads.items()}
    kept = {**assigning.dump(one, google.GOOGLE), **heads}
    slots = {
        f"{name}/{slot}": array
        for name, array in kept.items()
        for slot in ("adam_m", "adam_v")
    }
    extra = {**heads, **slots, "global_step": np.int64(1000)}
    with tf1.Graph().as_default(), tf1.Session() as session:
        for name, array in {**kept, **extra}.items():
            tf1.get_variable(name, initializer=array)
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, str(tmp_path / "bert_model.ckpt"))
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
    report = folder.load_preset(presets.find_preset(tmp_path), other)
    assert set(report.ignored) == set(extra)
    assert report.loaded == tuple(one)
    assert report.random == ()
    for path, variable in one.items():
        np.testing.assert_array_equal(other[path].value, variable.value)


@pytest.mark.parametrize("bias_dtype", ["float16", "float64", "bfloat16"])
def test_every_float_becomes_float32(as_google, model, bias_dtype):
    value = np.array([1.5, -2.0, 0.0, 0.25], "float32")
    stored = tf.cast(value, bias_dtype)
    variables = model()
    folder.load_preset(as_google({"bert/pooler/dense/bias": stored}), variables)
    np.testing.assert_array_equal(variables["pooler/dense/bias"].value, value)


def test_weights_that_are_no_floats_are_refused(as_google, model):
    preset = as_google({"bert/pooler/dense/bias": np.arange(4)})
    with pytest.raises(ValueError, match="Received: int64 for 'bert/pooler/dense/bias"):
        folder.load_preset(preset, model())


def refused(preset, variables, *received):
    """Asserts that loading fails before anything is assigned, and what it says."""
    with pytest.raises(ValueError) as error:
        folder.load_preset(preset, variables, optional=("pooler", "classifier"))
    for words in ("bert_model.ckpt", *received):
        assert words in str(error.value)
    assert {variable.assigned for variable in variables.values()} == {0}


def test_a_missing_tensor_is_refused(as_google, model):
    path = "encoder_layer_1/attention/query/kernel"
    refused(as_google({QUERY: None}), model(), QUERY, path)


@pytest.mark.parametrize(
    "name",
    [
        "bert/encoder/layer_2/output/dense/bias",  # a layer more than the model has
        "bert/encoder/layer_0/output/dense/scale",
        "bert/encoder/layer_0/output/dense/scale/adam_m",
        "cls/predictions/extra",
        "global_step_2",
    ],
)
def test_an_unknown_tensor_is_refused(as_google, model, name):
    refused(as_google({name: np.zeros(4)}), model(), repr(name), "bert_config.json")


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        (WORDS, (12, 4), "(11, 4)"),
        ("bert/encoder/layer_0/intermediate/dense/kernel", (6, 4), "(4, 6)"),
        ("output_weights", (4, 3), "(3, 4)"),
        ("output_bias", (2,), "(3,)"),
    ],
)
def test_a_wrong_shape_is_refused(as_google, model, name, shape, expected):
    heads = ("pooler", "classifier")
    preset = as_google({name: np.zeros(shape, "float32")}, heads)
    refused(preset, model(heads), repr(name), expected, f"Received: {shape}")


def test_a_head_that_is_absent_is_told(as_google, model):
    variables = model(("pooler", "classifier"))
    with pytest.warns(UserWarning, match=r"\['classifier/kernel', 'classifier/bias'\]"):
        folder.load_preset(as_google({}), variables, optional=["classifier"])


@pytest.mark.parametrize("end", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "absent"])
def test_a_damaged_file_is_refused(as_google, model, end, damage):
    preset = as_google({})
    path = preset.folder / f"bert_model.ckpt.{end}"
    data = bytearray(path.read_bytes())
    if damage == "absent":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 8
        path.write_bytes(data)
    if (end, damage) == ("index", "absent"):
        with pytest.raises(FileNotFoundError, match="must have a checkpoint"):
            folder.load_preset(preset, model())
    else:
        with pytest.raises(ValueError, match="bert_model.ckpt must be a whole check"):
            folder.load_preset(preset, model())


def test_several_checkpoints_are_refused(as_google, model):
    preset = as_google({})
    (preset.folder / "model.ckpt-7.index").write_text("")
    with pytest.raises(ValueError, match="one checkpoint. Received: .*model.ckpt-7"):
        folder.load_preset(preset, model())


def test_a_checkpoint_by_another_name(as_google, model):
    preset = as_google({})
    for path in list(preset.folder.glob("bert_model.ckpt.*")):
        path.rename(path.with_name(path.name.replace("bert_model", "model")))
    assert google.checkpoint_prefix(preset).name == "model.ckpt"
    folder.load_preset(preset, model())


def test_a_link_out_of_the_folder_is_refused(as_google, model, tmp_path_factory):
    preset = as_google({})
    path = preset.folder / "bert_model.ckpt.data-00000-of-00001"
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "data"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(ValueError, match="a link to .*elsewhere"):
        folder.load_preset(preset, model())


def test_a_checkpoint_of_objects_is_refused(model, tmp_path):
    checkpoint = tf.train.Checkpoint(x=tf.Variable(1.0))
    checkpoint.write(str(tmp_path / "bert_model.ckpt"))
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 11}')
    with pytest.raises(ValueError, match="Received: a checkpoint of objects"):
        folder.load_preset(presets.find_preset(tmp_path), model())


def test_the_classes_of_a_head(as_google):
    assert google.heads(as_google({})) == {"pooler": 4}
    found = google.heads(as_google({}, ("pooler", "classifier", "mlm", "nsp")))
    assert found == {"pooler": 4, "classifier": 3, "mlm": 11, "nsp": 2}
