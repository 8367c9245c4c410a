"""What Keras reads on TensorFlow in the place of a PyDataset."""

import keras
import numpy as np
import tensorflow as tf

from kbert.preprocessing.tf_batches import untuned


class Batches(keras.utils.PyDataset):
    """Batches of 2 and 3 columns, which note what is asked of them."""

    def __init__(self, count):
        super().__init__()
        self.count = count
        self.asked = []

    @property
    def num_batches(self):
        return self.count

    def __getitem__(self, index):
        self.asked.append(index)
        return {"a": np.full((4, 2 + index % 2), index)}, np.zeros((4, 1), "float32")

    def on_epoch_begin(self):
        self.asked.append("begin")

    def on_epoch_end(self):
        self.asked.append("end")


def read(dataset, count):
    return [int(inputs["a"][0, 0]) for inputs, _ in dataset.take(count)]


def test_every_batch_comes_in_order_in_every_epoch():
    batches = Batches(3)
    dataset = untuned({"x": batches})["x"]
    batches.asked.clear()  # of the look at the first two
    for _ in range(2):
        assert read(dataset, -1) == [0, 1, 2]
    assert batches.asked == ["begin", 0, 1, 2, "end"] * 2
    assert int(dataset.cardinality()) == 3


def test_the_axes_in_which_the_first_two_differ_are_free():
    inputs, targets = untuned({"x": Batches(3)})["x"].element_spec
    assert inputs["a"] == tf.TensorSpec([None, None], "int64")
    assert targets == tf.TensorSpec([None, 1], "float32")


def test_batches_without_an_end():
    dataset = untuned({"x": Batches(None)})["x"]
    assert read(dataset, 7) == list(range(7))
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY


def test_other_arguments_stay():
    arguments = {"x": {"a": np.zeros(1)}, "shuffle": False, "validation_data": None}
    assert untuned(arguments) == arguments


def test_nothing_is_tuned():
    """With tuning, one end in two waits for the next of 10, 30, 70, 150, … ms."""
    dataset = untuned({"x": Batches(2)})["x"]
    assert not dataset.options().autotune.enabled
