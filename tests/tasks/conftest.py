"""A classifier that has learned something, made once for all tests of tasks."""

import keras
import pytest

from tests import tiny


@pytest.fixture(scope="session")
def trained():
    """One classifier that has learned to tell the texts apart."""
    keras.utils.set_random_seed(1)
    model = tiny.classifier(dropout=0.0)
    model.compile(learning_rate=1e-2)
    model.fit(*tiny.sentiment(), batch_size=8, epochs=12, verbose=0)
    return model
