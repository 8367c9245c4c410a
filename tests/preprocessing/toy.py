"""A model that reads the four inputs of a task, and texts of every length for it."""

import keras
import numpy as np
from keras import ops

from kbert.preprocessing.packing import pack


class Bag(keras.layers.Layer):
    """The mean of a text's embeddings beside that of its [CLS]."""

    def build(self, shape):
        self.table = self.add_weight(shape=(100, 4), initializer="random_normal")

    def call(self, inputs):
        x = ops.take(self.table, inputs["token_ids"], axis=0)  # (B, S, 4)
        x = x + ops.expand_dims(ops.cast(inputs["segment_ids"], "float32"), -1)
        mask = ops.expand_dims(ops.cast(inputs["padding_mask"], "float32"), -1)
        mean = ops.sum(x * mask, axis=1) / ops.sum(mask, axis=1)
        flat = ops.reshape(x, (-1, 4))
        return ops.concatenate(
            [mean, ops.take(flat, inputs["first_positions"], axis=0)], axis=-1
        )


def model(**compile_arguments):
    """A classifier of three classes, the same at every call."""
    keras.utils.set_random_seed(0)
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    inputs["first_positions"] = keras.Input((), dtype="int32", name="first_positions")
    made = keras.Model(inputs, keras.layers.Dense(3)(Bag()(inputs)))
    made.compile(
        optimizer=keras.optimizers.SGD(0.5),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **compile_arguments,
    )
    return made


def encoded(lengths, seed=0):
    """Texts of these lengths, [CLS] and [SEP] included, some with a second part."""
    rng = np.random.default_rng(seed)
    firsts = [rng.integers(3, 100, length - 2).tolist() for length in lengths]
    seconds = [[] for _ in lengths]
    for row in range(0, len(lengths), 3):
        if len(firsts[row]) > 2:
            seconds[row] = [firsts[row].pop(), firsts[row].pop()][:1]
    return pack(firsts, seconds, cls_id=1, sep_id=2, max_length=512)


def targets(count, seed=0):
    """Class indices and weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count).astype("int32")
    return y, rng.uniform(0.5, 2, count).astype("float32")
