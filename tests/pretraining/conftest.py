"""What a run of pre-training switches on for good is switched off for other tests."""

import keras
import pytest


@pytest.fixture(scope="module", autouse=True)
def no_determinism_after():
    """Let the backend compute as it did before."""
    yield
    if keras.backend.backend() == "tensorflow":
        from tensorflow.python.framework import config

        config.disable_op_determinism()
    elif keras.backend.backend() == "torch":
        import torch

        torch.use_deterministic_algorithms(False)
