"""Google's own BERT as an oracle: bert-tensorflow's `modeling.py` on TensorFlow 2.

Its two dependencies that TensorFlow 2 has not are stood in for here, from what
TensorFlow 1.15 documents: `tf.layers.dense` and `tf.contrib.layers.layer_norm`.
"""

import functools
import importlib
import importlib.metadata
import sys
import types
from unittest import mock

import pytest

DISTRIBUTION = "bert-tensorflow"


def modeling():
    """Returns Google's module, or skips the test where it is not installed."""
    try:
        importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"needs Google's code, {DISTRIBUTION}, which is not installed")
    return _imported("bert.modeling")


class _WithLayers:
    """TensorFlow 1 as the code of 2018 sees it."""

    def __init__(self, tf1):
        self._tf1 = tf1
        self.layers = types.SimpleNamespace(dense=dense)

    def __getattr__(self, name):
        return getattr(self._tf1, name)


def dense(inputs, units, activation=None, name=None, kernel_initializer=None):
    """`tf.layers.dense` of TensorFlow 1, for matrices."""
    import tensorflow.compat.v1 as tf1

    with tf1.variable_scope(name, default_name="dense"):
        kernel = tf1.get_variable(
            "kernel", [inputs.shape[-1], units], initializer=kernel_initializer
        )
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        outputs = tf1.nn.bias_add(tf1.matmul(inputs, kernel), bias)
        return outputs if activation is None else activation(outputs)


def layer_norm(inputs, begin_norm_axis, begin_params_axis, scope=None):
    """`tf.contrib.layers.layer_norm` of TensorFlow 1, over the last axis."""
    import tensorflow.compat.v1 as tf1

    assert (begin_norm_axis, begin_params_axis) == (-1, -1)
    width = [inputs.shape[-1]]
    with tf1.variable_scope(scope, default_name="LayerNorm"):
        beta = tf1.get_variable("beta", width, initializer=tf1.zeros_initializer())
        gamma = tf1.get_variable("gamma", width, initializer=tf1.ones_initializer())
        mean, variance = tf1.nn.moments(inputs, [-1], keep_dims=True)
        return tf1.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


def run_squad():
    """Returns Google's `run_squad.py`, or skips the test where it is not installed."""
    modeling()
    return _imported("bert.run_squad")


def pretraining():
    """Returns Google's `run_pretraining.py`, for its heads."""
    module = _imported("bert.run_pretraining")
    module.modeling.tf = module.tf
    return module


def create_pretraining_data():
    """Returns Google's `create_pretraining_data.py`, or skips as `run_squad`."""
    modeling()
    return _imported("bert.create_pretraining_data")


@functools.cache
def _imported(name):
    """Imports a module of Google's with what TensorFlow 2 has not.

    Its flags become its own, with their defaults: two scripts have some of one name,
    which cannot be defined twice.
    """
    import tensorflow.compat.v1 as tf1
    from absl.flags import FLAGS

    known = set(FLAGS)
    contrib = types.ModuleType("tensorflow.contrib")
    contrib.layers = types.SimpleNamespace(layer_norm=layer_norm)
    with mock.patch.dict(sys.modules, {"tensorflow.contrib": contrib}):
        module = importlib.import_module(name)
    module.tf = _WithLayers(tf1)
    defined = set(FLAGS) - known
    own = [flag for flag in defined if FLAGS.find_module_defining_flag(flag) == name]
    module.FLAGS = types.SimpleNamespace(**{flag: FLAGS[flag].value for flag in own})
    for flag in own:
        delattr(FLAGS, flag)
    FLAGS.mark_as_parsed()  # those of tokenization.py stay where it asks for them
    return module


def outputs(folder, inputs, num_labels=None):
    """Restores a checkpoint as Google's scripts do, and computes on it.

    Args:
        folder: with bert_model.ckpt and bert_config.json.
        inputs: kbert's dictionary of arrays, one text a row; with `mask_positions`
            (N, M) for the heads of run_pretraining.py.
        num_labels: of `create_model` in run_classifier.py, or None for no head.

    Returns:
        The arrays by name, and the names of the model's variables, of which each was
        found in the checkpoint.
    """
    google = modeling()
    import tensorflow.compat.v1 as tf1

    prefix = str(folder / "bert_model.ckpt")
    with tf1.Graph().as_default(), tf1.Session() as session:
        model = google.BertModel(
            google.BertConfig.from_json_file(str(folder / "bert_config.json")),
            is_training=False,
            input_ids=tf1.constant(inputs["token_ids"]),
            input_mask=tf1.constant(inputs["padding_mask"]),
            token_type_ids=tf1.constant(inputs["segment_ids"]),
        )
        found = {
            "sequence_output": model.get_sequence_output(),
            "pooled_output": model.get_pooled_output(),
        }
        if num_labels is not None:
            pooled = model.get_pooled_output()
            weights = tf1.get_variable("output_weights", [num_labels, pooled.shape[-1]])
            bias = tf1.get_variable("output_bias", [num_labels])
            logits = tf1.matmul(pooled, weights, transpose_b=True)
            found["logits"] = tf1.nn.bias_add(logits, bias)
        if "mask_positions" in inputs:
            found |= _pretraining_outputs(model, inputs["mask_positions"], folder)
        variables = tf1.trainable_variables()
        mapped, _ = google.get_assignment_map_from_checkpoint(variables, prefix)
        names = [variable.name.split(":")[0] for variable in variables]
        assert set(mapped) == set(names)
        tf1.train.init_from_checkpoint(prefix, mapped)
        session.run(tf1.global_variables_initializer())
        return session.run(found), set(names)


def _pretraining_outputs(model, positions, folder):
    """Returns the logarithms of the probabilities of both heads, (N * M, V), (N, 2)."""
    import tensorflow.compat.v1 as tf1

    scripts = pretraining()
    config = scripts.modeling.BertConfig.from_json_file(
        str(folder / "bert_config.json")
    )
    nothing = tf1.zeros(positions.shape, tf1.int32)
    _, _, mlm = scripts.get_masked_lm_output(
        config,
        model.get_sequence_output(),
        model.get_embedding_table(),
        tf1.constant(positions),
        nothing,
        tf1.cast(nothing, tf1.float32),
    )
    _, _, nsp = scripts.get_next_sentence_output(
        config, model.get_pooled_output(), tf1.zeros(len(positions), tf1.int32)
    )
    return {"mlm": mlm, "nsp": nsp}
