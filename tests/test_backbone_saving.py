"""What is saved comes back, frozen parts frozen, and old files keep their meaning."""

import pathlib

import keras
import numpy as np
import pytest

from kbert.backbone import BertBackbone
from tests import random_bert

GOLDENS = pathlib.Path(__file__).parent / "goldens"


def trainable(model):
    return {v.path for v in model.trainable_weights}


def freeze_nothing(backbone):
    pass


def freeze_all(backbone):
    backbone.trainable = False


def freeze_embeddings_and_a_layer(backbone):
    backbone.embeddings.trainable = False
    backbone.encoder_layers[0].trainable = False


def freeze_one_weight(backbone):
    backbone.encoder_layers[1].attention.query.kernel.trainable = False


FREEZERS = [
    freeze_nothing,
    freeze_all,
    freeze_embeddings_and_a_layer,
    freeze_one_weight,
]


def round_trip(model, how, tmp_path):
    """Returns the model again, from its config or from a file."""
    if how == "config":
        return type(model).from_config(model.get_config())
    if how == "serialised":
        config = keras.saving.serialize_keras_object(model)
        return keras.saving.deserialize_keras_object(config)
    model.save(tmp_path / "model.keras")
    return keras.saving.load_model(tmp_path / "model.keras")


@pytest.mark.parametrize("how", ["config", "serialised", "keras"])
@pytest.mark.parametrize("freeze", FREEZERS)
def test_frozen_stays_frozen(how, freeze, tmp_path):
    backbone = random_bert.make()
    total = len(backbone.trainable_weights)
    freeze(backbone)
    assert (len(backbone.trainable_weights) < total) == (freeze is not freeze_nothing)
    again = round_trip(backbone, how, tmp_path)
    assert type(again) is BertBackbone
    assert trainable(again) == trainable(backbone)
    assert again.get_config() == backbone.get_config()


@pytest.mark.parametrize("freeze", FREEZERS)
def test_frozen_stays_frozen_inside_a_users_model(freeze, tmp_path):
    backbone = random_bert.make()
    freeze(backbone)
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key) for key in backbone.input
    }
    outputs = keras.layers.Dense(2, name="head")(backbone(inputs)["pooled_output"])
    model = keras.Model(inputs, outputs)
    again = round_trip(model, "keras", tmp_path)
    assert trainable(again) == trainable(model)
    values = random_bert.inputs()
    np.testing.assert_array_equal(
        random_bert.as_array(again(values)), random_bert.as_array(model(values))
    )


def test_thawing_thaws_everything():
    backbone = random_bert.make()
    paths = trainable(backbone)
    freeze_all(backbone)
    again = BertBackbone.from_config(backbone.get_config())
    assert not trainable(again)
    again.trainable = True
    assert trainable(again) == paths


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_keras_file_gives_the_same_outputs(dtype, tmp_path):
    backbone, values = random_bert.make(dtype=dtype), random_bert.inputs()
    again = round_trip(backbone, "keras", tmp_path)
    assert again.get_config() == backbone.get_config()
    for ours, theirs in zip(
        random_bert.run(again, values), random_bert.run(backbone, values), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_the_dtype_survives_without_being_the_global_one():
    backbone = random_bert.make(dtype="mixed_bfloat16")
    again = BertBackbone.from_config(backbone.get_config())
    assert again.encoder_layers[0].attention.query.compute_dtype == "bfloat16"
    assert random_bert.make().encoder_layers[0].compute_dtype == "float32"


def test_a_weights_file_round_trip(tmp_path):
    backbone, other = random_bert.make(), random_bert.make()
    random_bert.shake(other, seed=7)
    backbone.save_weights(tmp_path / "backbone.weights.h5")
    other.load_weights(tmp_path / "backbone.weights.h5")
    for path, value in random_bert.weights(backbone).items():
        np.testing.assert_array_equal(random_bert.weights(other)[path], value)


def test_a_weights_file_of_another_size_is_refused(tmp_path):
    random_bert.make(hidden_dim=8).save_weights(tmp_path / "small.weights.h5")
    with pytest.raises(ValueError, match="could not be loaded"):
        random_bert.make().load_weights(tmp_path / "small.weights.h5")


def test_every_weight_has_the_path_of_the_contract():
    layer = [
        *(f"attention/{p}/{w}" for p in "query key value output".split() for w in KB),
        *(f"attention_norm/{w}" for w in GB),
        *(f"intermediate/{w}" for w in KB),
        *(f"output/{w}" for w in KB),
        *(f"output_norm/{w}" for w in GB),
    ]
    expected = {
        *(f"embeddings/{t}_embedding/embeddings" for t in TABLES),
        *(f"embeddings/norm/{w}" for w in GB),
        *(f"encoder_layer_{i}/{path}" for i in range(2) for path in layer),
        *(f"pooler/dense/{w}" for w in KB),
    }
    assert {v.path for v in random_bert.make().weights} == expected


KB, GB, TABLES = ("kernel", "bias"), ("gamma", "beta"), ("token", "position", "segment")


# Class names and the order of weights are a file format. These files were written by
# scripts/make_saved_backbone.py; if a change stops them from loading, so it does to
# the files of users.


def expected_outputs():
    golden = np.load(GOLDENS / "saved_backbone.npz")
    return golden["sequence_output"], golden["pooled_output"]


def check_outputs(backbone):
    for ours, stored in zip(
        random_bert.run(backbone, random_bert.inputs()), expected_outputs(), strict=True
    ):
        np.testing.assert_allclose(ours, stored, atol=1e-5)


def test_the_stored_keras_file_still_loads():
    backbone = keras.saving.load_model(GOLDENS / "saved_backbone.keras")
    assert type(backbone) is BertBackbone
    assert backbone.get_config()["frozen"] == ["embeddings/norm/beta"]
    check_outputs(backbone)


def test_the_stored_weights_file_still_loads():
    backbone = BertBackbone(**random_bert.SIZES)
    backbone.load_weights(GOLDENS / "saved_backbone.weights.h5")
    check_outputs(backbone)
