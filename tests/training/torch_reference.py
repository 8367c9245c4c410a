"""torch's own AdamW on the problem of `reference`."""

import torch

from tests.training import reference


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
