"""The mask of left-to-right attention is part of an exported graph."""

import numpy as np
import tensorflow as tf

import kbert
from tests import random_bert, tiny


def test_an_export_reads_from_left_to_right(tmp_path):
    backbone = tiny.backbone(left_to_right=True)
    model = kbert.BertEmbedder(backbone, tiny.preprocessor())
    random_bert.shake(model)
    model.export(tmp_path / "serving", verbose=False)
    served = tf.saved_model.load(tmp_path / "serving").signatures["serving_default"]
    texts = ["a great film", "we saw it and it was not very good"]
    found = served(text=tf.constant(texts))["embedding"].numpy()
    np.testing.assert_allclose(found, model.embed(texts), atol=1e-5)
    both = kbert.BertEmbedder(tiny.backbone(), tiny.preprocessor())
    random_bert.shake(both)
    assert np.abs(both.embed(texts) - found).max() > 1e-3


def test_the_backbone_alone(tmp_path):
    backbone, values = random_bert.make(left_to_right=True), random_bert.inputs()
    backbone.export(tmp_path / "serving", verbose=False)
    served = tf.saved_model.load(tmp_path / "serving").signatures["serving_default"]
    found = served(**{key: tf.constant(value) for key, value in values.items()})
    sequence, _ = random_bert.run(backbone, values)
    np.testing.assert_allclose(found["sequence_output"], sequence, atol=1e-5)
