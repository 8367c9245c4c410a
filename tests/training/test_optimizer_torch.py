"""The optimizer against torch itself; the other backends have its golden numbers."""

import numpy as np
import torch

from kbert.training import AdamW, WarmupLinearDecay
from tests.training import reference
from tests.training.test_optimizer import GOLDENS, train
from tests.training.torch_reference import torch_adamw


def test_equals_torchs_adamw():
    ours = train(AdamW(WarmupLinearDecay(0.01, 100, 0.1)), reference.gradients())
    theirs = torch_adamw(torch.float64)
    assert reference.worst_relative_error(ours, theirs) < 2e-6


def test_the_golden_numbers_are_torchs():
    golden = np.load(GOLDENS / "adamw_torch.npz")
    for path, value in torch_adamw(torch.float64).items():
        np.testing.assert_allclose(golden[path], value, rtol=1e-9)
