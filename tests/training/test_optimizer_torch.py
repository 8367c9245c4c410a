"""The optimizer against torch itself; the other backends have its golden numbers."""

import numpy as np
import torch

from kbert.training import AdamW, WarmupLinearDecay
from tests.training import reference
from tests.training.test_optimizer import GOLDENS, train


def torch_adamw(dtype):
    """Trains the reference problem by torch's own parts; returns {path: array}."""
    parameters = {
        path: torch.nn.Parameter(torch.tensor(value, dtype=dtype))
        for path, value in reference.initial_values().items()
    }
    decayed = [p for path, p in parameters.items() if path in reference.DECAYED]
    others = [p for path, p in parameters.items() if path not in reference.DECAYED]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": 0.01},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=0.01,
        eps=1e-6,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: t / 10 if t < 10 else 1 - t / 100
    )
    for gradient in reference.gradients():
        for path, parameter in parameters.items():
            parameter.grad = torch.tensor(gradient[path], dtype=dtype)
        torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        optimizer.step()
        schedule.step()
    return {path: p.detach().numpy() for path, p in parameters.items()}


def test_equals_torchs_adamw():
    ours = train(AdamW(WarmupLinearDecay(0.01, 100, 0.1)), reference.gradients())
    theirs = torch_adamw(torch.float64)
    assert reference.worst_relative_error(ours, theirs) < 2e-6


def test_the_golden_numbers_are_torchs():
    golden = np.load(GOLDENS / "adamw_torch.npz")
    for path, value in torch_adamw(torch.float64).items():
        np.testing.assert_allclose(golden[path], value, rtol=1e-9)
