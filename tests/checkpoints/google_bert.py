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
    import tensorflow.compat.v1 as tf1

    module = _imported("modeling")
    module.tf = _WithLayers(tf1)
    return module


@functools.cache
def run_squad():
    """Returns Google's module, or skips the test where it is not installed."""
    modeling()
    module = _imported("run_squad")
    if not module.FLAGS.is_parsed():
        module.FLAGS(sys.argv[:1])
    return module


def _imported(name):
    contrib = types.ModuleType("tensorflow.contrib")
    contrib.layers = types.SimpleNamespace(layer_norm=layer_norm)
    with mock.patch.dict(sys.modules, {"tensorflow.contrib": contrib}):
        return importlib.import_module(f"bert.{name}")


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


def outputs(folder, inputs, num_labels=None):
    """Restores a checkpoint as Google's scripts do, and computes on it.

    Args:
        folder: with bert_model.ckpt and bert_config.json.
        inputs: kbert's dictionary of arrays, one text a row.
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
        variables = tf1.trainable_variables()
        mapped, _ = google.get_assignment_map_from_checkpoint(variables, prefix)
        names = [variable.name.split(":")[0] for variable in variables]
        assert set(mapped) == set(names)
        tf1.train.init_from_checkpoint(prefix, mapped)
        session.run(tf1.global_variables_initializer())
        return session.run(found), set(names)
