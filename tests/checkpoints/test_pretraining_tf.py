"""The heads of pre-training in Google's own code and in KerasHub's, and back."""

import dataclasses
import importlib.util

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import kbert
from kbert.checkpoints import assigning, google, keras_hub
from kbert.tasks import saving
from tests import random_bert, tiny
from tests.checkpoints import cassette, google_bert

TOKENIZER = kbert.BertTokenizer(tiny.VOCABULARY)
SIZES = {
    "vocabulary_size": len(tiny.VOCABULARY),
    "layer_norm_epsilon": 1e-12,
    "num_layers": 1,
    "num_segments": 2,
}


def made(task=kbert.BertPretrainer, **arguments):
    preprocessor = kbert.BertPreprocessor(TOKENIZER, max_sequence_length=8)
    sizes = {**SIZES, **arguments.pop("sizes", {})}
    model = task(random_bert.make(**sizes), preprocessor, **arguments)
    random_bert.shake(model)
    return model


def inputs():
    x = random_bert.inputs()
    x["segment_ids"] %= 2
    # Every slot is taken: Google's code computes at column 0 too.
    x["mask_positions"] = np.array([[1, 7], [2, 4], [1, 1]], "int32")
    return x


def flat(x):
    rows = np.arange(len(x["mask_positions"]))[:, None] * x["token_ids"].shape[1]
    return {**x, "mask_positions": (rows + x["mask_positions"]).reshape(-1)}


def written(path, model, writer=google.write_checkpoint):
    told = writer(
        path,
        saving.merged_weights(model),
        model.backbone.config,
        TOKENIZER,
        model.preset_metadata().get("head"),
    )
    return path, told


def check_equal(again, model):
    ours, theirs = (saving.merged_weights(each) for each in (again, model))
    assert set(ours) == set(theirs)
    for path, array in theirs.items():
        np.testing.assert_array_equal(ours[path], array)


def test_googles_code_computes_the_same(tmp_path):
    model, x = made(), inputs()
    path, _ = written(tmp_path / "uncased", model)
    computed, names = google_bert.outputs(path, x)
    assert names == set(assigning.dump(saving.merged_weights(model), google.GOOGLE))
    found = model(flat(x), training=False)
    for name in ("mlm", "nsp"):
        log_probabilities = ops.convert_to_numpy(ops.log_softmax(found[name]))
        np.testing.assert_allclose(log_probabilities, computed[name], atol=1e-5)
    check_equal(kbert.BertPretrainer.from_preset(path), model)


@pytest.mark.parametrize("heads", ["mlm", "nsp"])
def test_a_checkpoint_of_googles_with_one_head(tmp_path, heads):
    model = made()
    weights = saving.merged_weights(model)
    weights = {
        path: array
        for path, array in weights.items()
        if not path.startswith(("mlm/", "nsp/")) or path.startswith(heads)
    }
    google.write_checkpoint(tmp_path / "x", weights, model.backbone.config, TOKENIZER)
    other = {"mlm": "nsp", "nsp": "mlm"}[heads]
    with pytest.warns(UserWarning, match=f"{other}/.*stay random"):
        again = kbert.BertPretrainer.from_preset(tmp_path / "x")
    for path in weights:
        ours = saving.merged_weights(again)[path]
        np.testing.assert_array_equal(ours, weights[path])


def test_slots_of_the_heads_are_ignored_and_unused_heads_told(tmp_path, capfd):
    model = made()
    path, _ = written(tmp_path / "uncased", model)
    prefix = str(path / "bert_model.ckpt")
    reader = tf.train.load_checkpoint(prefix)
    arrays = {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }
    slots = {f"{name}/adam_m": array for name, array in arrays.items()}
    arrays |= {**slots, "global_step": np.int64(7)}
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(arrays),
        shape_and_slices=[""] * len(arrays),
        tensors=[tf.constant(array) for array in arrays.values()],
    )
    check_equal(kbert.BertPretrainer.from_preset(path), model)
    assert capfd.readouterr().err == ""
    kbert.BertMaskedLM.from_preset(path)
    told = capfd.readouterr().err
    assert "cls/seq_relationship/output_bias" in told and "adam_m" not in told


def test_a_head_that_google_would_compute_otherwise_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match="as the encoder.*Received: a head with.*1e-05"
    ):
        written(tmp_path / "x", made(head_epsilon=1e-5))
    assert list(tmp_path.iterdir()) == []


def test_real_weights_answer_the_same_in_googles_code(tmp_path):
    model = kbert.BertMaskedLM.from_preset(cassette.folder())
    # Google's gelu is the tanh form, which is to be said.
    backbone = kbert.BertBackbone.from_architecture(
        dataclasses.replace(model.backbone.config, activation="gelu_tanh")
    )
    google_like = kbert.BertMaskedLM(backbone, model.preprocessor)
    for ours, theirs in zip(google_like.weights, model.weights, strict=True):
        ours.assign(theirs)
    weights = saving.merged_weights(google_like)
    weights |= {  # Google's code wants the pooler and the other head in the file
        path: np.zeros(shape, "float32")
        for path, shape in {
            "pooler/dense/kernel": (128, 128),
            "pooler/dense/bias": (128,),
            "nsp/kernel": (128, 2),
            "nsp/bias": (2,),
        }.items()
    }
    tokenizer = model.preprocessor.tokenizer
    google.write_checkpoint(tmp_path / "x", weights, backbone.config, tokenizer)
    inputs = model.preprocessor(["the capital of france is large ."])
    positions = np.array([[2, 4, 6]], "int32")
    computed, _ = google_bert.outputs(
        tmp_path / "x", {**inputs, "mask_positions": positions}
    )
    found = google_like({**inputs, "mask_positions": positions[0]}, training=False)
    log_probabilities = ops.convert_to_numpy(ops.log_softmax(found))
    # Down to -35: a few float32 roundings are more than 1e-5.
    np.testing.assert_allclose(log_probabilities, computed["mlm"], rtol=1e-6, atol=1e-5)


# --- KerasHub ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def owner():
    """KerasHub itself."""
    if importlib.util.find_spec("keras_hub") is None:
        pytest.skip("needs keras-hub, the owner of the format")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        import keras_hub
    return keras_hub


HUB = {
    "head_activation": "gelu",
    "head_epsilon": 1e-5,
    "sizes": {"dropout": 0.1, "attention_dropout": 0.1, "initializer_range": 0.02},
}


def test_keras_hub_computes_the_same_on_what_kbert_wrote(owner, tmp_path):
    model, x = made(kbert.BertMaskedLM, **HUB), inputs()
    path, told = written(tmp_path / "hub", model, keras_hub.write_folder)
    assert any("wants a pooler" in line for line in told)
    theirs = owner.models.BertMaskedLM.from_preset(str(path))
    expected = ops.convert_to_numpy(theirs(x)).reshape(6, -1)
    found = ops.convert_to_numpy(model(flat(x), training=False))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    check_equal(kbert.BertMaskedLM.from_preset(path), model)


def test_kbert_computes_the_same_on_what_keras_hub_wrote(owner, tmp_path):
    backbone = owner.models.BertBackbone(
        vocabulary_size=len(tiny.VOCABULARY),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=8,
    )
    tokenizer = owner.models.BertTokenizer(vocabulary=tiny.VOCABULARY, lowercase=True)
    preprocessor = owner.models.BertMaskedLMPreprocessor(tokenizer, 8)
    theirs = owner.models.BertMaskedLM(backbone, preprocessor)
    random_bert.shake(theirs)
    theirs.save_to_preset(str(tmp_path))
    x = inputs()
    ours = kbert.BertMaskedLM.from_preset(tmp_path)
    assert (ours.head.activation, ours.head.layer_norm_epsilon) == ("gelu", 1e-5)
    expected = ops.convert_to_numpy(theirs(x)).reshape(6, -1)
    found = keras.ops.convert_to_numpy(ours(flat(x), training=False))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_keras_hub_has_no_place_for(tmp_path):
    model = made(**HUB)
    _, told = written(tmp_path / "hub", model, keras_hub.write_folder)
    assert any("no head of next sentences" in line for line in told)
    again = kbert.BertMaskedLM.from_preset(tmp_path / "hub")
    ours, theirs = (saving.merged_weights(each) for each in (again, model))
    assert all(np.array_equal(ours[path], theirs[path]) for path in ours)
    usual = made(kbert.BertMaskedLM, sizes=HUB["sizes"])
    with pytest.raises(ValueError, match="Received: .*gelu_tanh.*head_activation"):
        written(tmp_path / "x", usual, keras_hub.write_folder)
