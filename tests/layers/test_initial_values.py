"""Nothing is drawn that a file replaces, and what is drawn stays the same."""

import keras
import numpy as np
import pytest

import kbert
from kbert.config import BertConfig
from kbert.layers.initial_values import drawn, truncated_normal
from tests import tiny

CONFIG = BertConfig(**tiny.SIZES)


def weights(random_weights):
    keras.utils.set_random_seed(3)
    model = kbert.BertBackbone.from_architecture(CONFIG, random_weights=random_weights)
    return {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}


def test_an_encoder_for_a_file_is_zeros_but_for_its_pooler():
    random, zeros = weights(True), weights(False)
    for path, array in zeros.items():
        if path.startswith("pooler/"):  # which a file may lack
            np.testing.assert_array_equal(array, random[path])
        elif path.endswith(("kernel", "embeddings")):
            assert not array.any()
            assert random[path].any()
        else:
            np.testing.assert_array_equal(array, random[path])


def test_the_choice_ends_with_its_block():
    with pytest.raises(KeyError), drawn(False):
        assert isinstance(truncated_normal(0.02), keras.initializers.Zeros)
        raise KeyError
    initializer = truncated_normal(0.02)
    assert isinstance(initializer, keras.initializers.TruncatedNormal)
    assert initializer.stddev == 0.02


def test_a_loaded_preset_draws_no_weight_of_the_encoder(tmp_path, monkeypatch):
    kbert.BertClassifier(
        tiny.backbone(), tiny.preprocessor(), labels=tiny.LABELS
    ).save_to_preset(tmp_path / "preset")
    shapes = []
    draw = keras.initializers.TruncatedNormal.__call__

    def count(self, shape, dtype=None):
        shapes.append(tuple(shape))
        return draw(self, shape, dtype)

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", count)
    kbert.BertClassifier.from_preset(tmp_path / "preset")
    assert sorted(shapes) == [(16, 2), (16, 16)]  # the head and the pooler
