"""A model that reads the four inputs of a task, and texts of every length for it."""

import keras
import numpy as np
from keras import ops

from kbert.preprocessing.packing import pack
from kbert.preprocessing.rows import lay, one_a_row


class Bag(keras.layers.Layer):
    """The mean of a text's embeddings beside that of its [CLS]."""

    def build(self, shape):
        self.table = self.add_weight(shape=(100, 4), initializer="random_normal")

    def call(self, inputs):
        x = ops.take(self.table, inputs["token_ids"], axis=0)  # (B, S, 4)
        x = x + ops.expand_dims(ops.cast(inputs["segment_ids"], "float32"), -1)
        mask, positions = inputs["padding_mask"], inputs["first_positions"]
        if positions is None:  # one text a row
            numbers, first = mask[:, :1], x[:, 0]
        else:
            numbers = ops.take(ops.reshape(mask, (-1, 1)), positions, axis=0)
            first = ops.take(ops.reshape(x, (-1, 4)), positions, axis=0)
            rows = positions // ops.shape(mask)[1]
            mask, x = ops.take(mask, rows, axis=0), ops.take(x, rows, axis=0)
        own = ops.expand_dims(ops.cast(mask == numbers, "float32"), -1)
        mean = ops.sum(x * own, axis=1) / ops.sum(own, axis=1)
        return ops.concatenate([mean, first], axis=-1)


class Classifier(keras.Model):
    """A functional model whose `first_positions` may be absent: one text a row."""

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__({"first_positions": None, **inputs}, *args, **kwargs)

    def call(self, inputs, training=None, mask=None):
        inputs = {"first_positions": None, **inputs}
        return super().call(inputs, training=training, mask=mask)


def model(**compile_arguments):
    """A classifier of three classes, the same at every call."""
    keras.utils.set_random_seed(0)
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    inputs["first_positions"] = keras.Input(
        (), dtype="int32", optional=True, name="first_positions"
    )
    made = Classifier(inputs, keras.layers.Dense(3)(Bag()(inputs)))
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


def plain(encoded, texts, width):
    """These texts as ready arrays, one a row."""
    inputs = lay(encoded, texts, one_a_row(len(texts), width), 0)
    del inputs["first_positions"]
    return inputs


def targets(count, seed=0):
    """Class indices and weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count).astype("int32")
    return y, rng.uniform(0.5, 2, count).astype("float32")
