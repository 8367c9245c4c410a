"""A tiny classifier, its export asked in this process, and what it must answer."""

import functools

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import kbert
from tests import tiny

LABELS = ["bad", "good", "güt"]
TEXTS = [
    "A good film",
    "",
    "the awful film was very dull " * 833 + "and bad",  # 5,000 words
    "Film, film: FILM!",
    "ΟΔΟΣ e\u0323\u0301 \u4e2d we saw it",
    "[SEP] was it [CLS]",
    " \t ",
]
SECONDS = ["it was great", "good " * 40, "bad", "", "a", "the film", "we saw it"]
OUTPUTS = {
    "single_label": {"label", "labels", "logits", "probabilities"},
    "multi_label": {"labels", "logits", "probabilities", "selected"},
    "regression": {"value"},
}


def classifier(problem="single_label", dtype=None, preprocessor=None, **overrides):
    """A tiny classifier whose answers differ from text to text."""
    keras.utils.set_random_seed(3)
    task = kbert.BertClassifier(
        tiny.backbone(initializer_range=0.7, dtype=dtype, **overrides),
        preprocessor or tiny.preprocessor(),
        labels=None if problem == "regression" else LABELS,
        problem=problem,
    )
    rng = np.random.default_rng(3)
    for weight in task.weights:
        if weight.path.endswith("bias") or weight.path.endswith("beta"):
            weight.assign(rng.normal(size=weight.shape))
    return task


@functools.lru_cache(maxsize=2)
def load(folder):
    """The loaded folder; a test asks it several times."""
    return tf.saved_model.load(str(folder))


def ask(folder, signature="serving_default", **inputs):
    """The outputs of a signature, in this process."""
    tensors = {name: tf.constant(values) for name, values in inputs.items()}
    outputs = load(folder).signatures[signature](**tensors)
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def expect_single_label(outputs, answers, tolerance=1e-5):
    """Compares the outputs of a single-label model, as arrays, with `classify`."""
    assert set(outputs) == OUTPUTS["single_label"]
    assert as_text(outputs["label"]) == [answer.label for answer in answers]
    assert as_text(outputs["labels"]) == [list(LABELS)] * len(answers)
    expected = [[answer.probabilities[name] for name in LABELS] for answer in answers]
    np.testing.assert_allclose(
        np.asarray(outputs["probabilities"]), expected, atol=tolerance, rtol=0
    )
    logits = keras.ops.softmax(np.asarray(outputs["logits"], "float32"))
    np.testing.assert_allclose(logits, expected, atol=tolerance, rtol=0)


def as_text(strings):
    """Strings, from arrays of bytes and from JSON alike."""
    if isinstance(strings, bytes):
        return strings.decode()
    return strings if isinstance(strings, str) else [as_text(part) for part in strings]


def ids(texts):
    """What the preprocessor makes of texts: the inputs of the signature `ids`."""
    return tiny.preprocessor()(texts)


def graph(folder):
    """The content of a SavedModel as TensorFlow's GraphDef."""
    content = saved_model_pb2.SavedModel()
    content.ParseFromString((folder / "saved_model.pb").read_bytes())
    (meta,) = content.meta_graphs
    return meta.graph_def
