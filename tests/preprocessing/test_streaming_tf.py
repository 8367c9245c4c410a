import numpy as np
import pytest
import tensorflow as tf

from kbert.preprocessing.streaming import StreamedBatches
from tests.preprocessing.test_streaming import TEXTS, Y

DATASET = tf.data.Dataset.from_tensor_slices((TEXTS, Y))


def prepare(x, y, sample_weight):
    assert isinstance(x, np.ndarray) and x.dtype == object
    return {"x": np.array([len(text) for text in x])}, y, sample_weight


def test_dataset_of_known_length():
    stream = StreamedBatches(DATASET.batch(4), prepare)
    assert stream.steps == 4
    seen = [stream[index][1] for index in range(8)]
    assert np.concatenate(seen).tolist() == [*Y, *Y]


@pytest.mark.parametrize(
    "dataset", [DATASET.batch(4).repeat(), DATASET.filter(lambda x, y: True).batch(4)]
)
def test_dataset_of_unknown_length(dataset):
    with pytest.raises(ValueError, match="steps_per_epoch.*Dataset"):
        StreamedBatches(dataset, prepare)
    stream = StreamedBatches(dataset, prepare, 4)
    assert stream[0][1].tolist() == Y[:4].tolist()


def test_dataset_without_batches():
    with pytest.raises(ValueError, match="batch the dataset first"):
        StreamedBatches(DATASET, prepare)[0]
