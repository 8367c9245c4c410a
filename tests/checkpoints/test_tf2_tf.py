"""What TensorFlow itself writes of objects like tf-models': checkpoint, SavedModel."""

import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.bundles import reading
from tests import random_bert, tiny
from tests.checkpoints import foreign

SIZES = {
    "vocabulary_size": len(tiny.VOCABULARY),
    "num_layers": 1,
    "layer_norm_epsilon": 1e-12,
}


@pytest.fixture(scope="module")
def model():
    return random_bert.make(**SIZES)


def variables(model):
    """Returns {attributes: variable with the name that Keras gives it}."""
    arrays = random_bert.weights(model)
    found, named = foreign.objects(arrays, model.config.num_heads)
    return {key: tf.Variable(array, name=named[key]) for key, array in found.items()}


def tree(found):
    """Returns an object whose attributes lead to the variables."""
    root = tf.Module()
    for key, variable in found.items():
        *way, last = key.split("/")
        node = root
        for attribute in way:
            if attribute not in node.__dict__:
                setattr(node, attribute, tf.Module())
            node = node.__dict__[attribute]
        setattr(node, last, variable)
    return root


def assert_loads(folder, model):
    again = kbert.BertBackbone.from_preset(folder)
    for path, array in random_bert.weights(model).items():
        np.testing.assert_array_equal(random_bert.weights(again)[path], array)


@pytest.mark.parametrize("root", ["encoder", "model"])
def test_a_checkpoint(model, tmp_path, root):
    checkpoint = tf.train.Checkpoint(**{root: tree(variables(model))})
    checkpoint.write(str(tmp_path / "bert_model.ckpt"))
    names = reading.read_index(tmp_path / "bert_model.ckpt")
    assert f"{root}/layer_with_weights-0/embeddings{foreign.VALUE}" in names
    config = foreign.google_config(model.config)
    (tmp_path / "bert_config.json").write_text(config)
    assert_loads(tmp_path, model)


def test_a_saved_model_that_lists_its_variables(model, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(tiny.VOCABULARY))
    module = tf.Module()
    module.weights = list(variables(model).values())
    module.do_lower_case = tf.Variable(False, trainable=False)
    module.vocab_file = tf.saved_model.Asset(str(tmp_path / "vocab.txt"))
    tf.saved_model.save(module, str(tmp_path / "hub"))
    names = reading.read_index(tmp_path / "hub" / "variables" / "variables")
    assert f"weights/0{foreign.VALUE}" in names
    assert_loads(tmp_path / "hub", model)
    assert not kbert.BertTokenizer.from_preset(tmp_path / "hub").lowercase


def test_a_checkpoint_in_several_files(tmp_path):
    parts = {"a": np.float32([1, 2]), "b": np.arange(6).reshape(2, 3)}
    for name, array in parts.items():
        tf.raw_ops.SaveV2(
            prefix=str(tmp_path / name),
            tensor_names=[name],
            shape_and_slices=[""],
            tensors=[tf.constant(array)],
        )
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / name) for name in parts],
        destination_prefix=str(tmp_path / "whole"),
    )
    assert (tmp_path / "whole.data-00001-of-00002").exists()
    found = reading.read_index(tmp_path / "whole")
    for name, array in parts.items():
        np.testing.assert_array_equal(found[name].read(), array)


def test_a_partitioned_tensor_is_refused(tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "x"),
        tensor_names=["x"],
        shape_and_slices=["4 0,2"],
        tensors=[tf.constant([1.0, 2.0])],
    )
    with pytest.raises(ValueError, match="'x', which is partitioned"):
        reading.read_index(tmp_path / "x")
