import numpy as np
import pytest
from torch.utils.data import DataLoader, IterableDataset

from kbert.preprocessing.streaming import StreamedBatches
from tests.preprocessing.test_streaming import TEXTS, Y


def prepare(x, y, sample_weight):
    assert isinstance(x, list) and isinstance(x[0], str)
    return {"x": np.array([len(text) for text in x])}, np.asarray(y), sample_weight


def test_data_loader():
    records = list(zip(TEXTS, Y.tolist(), strict=True))
    stream = StreamedBatches(DataLoader(records, batch_size=4), prepare)
    assert stream.steps == 4
    seen = [stream[index][1] for index in range(8)]
    assert np.concatenate(seen).tolist() == [*Y, *Y]


def test_data_loader_of_texts_alone():
    stream = StreamedBatches(
        DataLoader(TEXTS, batch_size=4), lambda x, y, w: (x, None, None)
    )
    assert stream[0] == (TEXTS[:4],)


def test_data_loader_of_unknown_length():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(TEXTS)

    with pytest.raises(ValueError, match="steps_per_epoch.*DataLoader"):
        StreamedBatches(DataLoader(Stream(), batch_size=4), prepare)
