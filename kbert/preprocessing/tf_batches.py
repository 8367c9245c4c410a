"""Batches as Keras reads them on TensorFlow, without tf.data's tuning."""

import itertools

import keras


def untuned(arguments: dict) -> dict:
    """Returns the arguments of a Keras method with every `PyDataset` replaced.

    Keras makes a `tf.data.Dataset` of one, and tf.data starts a thread to tune it. When
    the dataset ends, that thread is woken before it can see why, and may sleep on, for
    a time that doubles from 10 ms on: a pass takes up to twice as long. (TensorFlow
    2.21: `CancellationManager::StartCancel` runs its callbacks before it says that it
    is cancelled, and `Model::OptimizeLoop` asks for that.) There is nothing to tune in
    batches that one function makes.

    Args:
        arguments: of `fit`, `evaluate` or `predict`. The first two batches of a
            `PyDataset` differ in every axis in which any two do.

    Returns:
        On TensorFlow the same with, for each `PyDataset`, a `tf.data.Dataset` of its
        batches, which begins and ends epochs as Keras does; elsewhere `arguments`.
    """
    if keras.backend.backend() != "tensorflow":
        return arguments
    return {
        key: _dataset(value) if isinstance(value, keras.utils.PyDataset) else value
        for key, value in arguments.items()
    }


def _dataset(batches):
    import tensorflow as tf

    number = batches.num_batches  # None: no end

    def epoch():
        batches.on_epoch_begin()
        for index in itertools.count() if number is None else range(number):
            yield batches[index]
        batches.on_epoch_end()

    looked_at = [batches[index] for index in range(min(number or 2, 2))]
    spec = keras.tree.map_structure(_spec, *looked_at)
    dataset = tf.data.Dataset.from_generator(epoch, output_signature=spec)
    if number is not None:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(number))
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.prefetch(2).with_options(options)


def _spec(*arrays):
    """Returns dtype and shape, None where arrays differ and for the number of rows."""
    import tensorflow as tf

    axes = zip(*(array.shape for array in arrays), strict=True)
    shape = [axis[0] if len(set(axis)) == 1 else None for axis in axes]
    dtype = keras.backend.standardize_dtype(arrays[0].dtype)
    return tf.TensorSpec([None, *shape[1:]], dtype)
