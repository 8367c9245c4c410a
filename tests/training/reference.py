"""What the optimizer is judged by: numpy in float64, and a small problem to solve."""

import numpy as np

SHAPES = {
    "embeddings/token_embedding/embeddings": (7, 4),
    "encoder_layer_0/attention/query/kernel": (4, 4),
    "encoder_layer_0/attention/query/bias": (4,),
    "encoder_layer_0/attention_norm/gamma": (4,),
    "classifier/kernel": (4, 3),
}
DECAYED = (
    "embeddings/token_embedding/embeddings",
    "encoder_layer_0/attention/query/kernel",
    "classifier/kernel",
)
STEPS = 100


def initial_values():
    """Returns {path: float32 array}, the same in every version of numpy."""
    random = np.random.RandomState(1)
    return {
        path: random.normal(size=shape).astype("float32")
        for path, shape in SHAPES.items()
    }


def gradients():
    """Returns 100 dicts {path: float32 array}; about half have a norm above 1."""
    random = np.random.RandomState(2)
    return [
        {
            path: (random.normal(size=shape) * scale).astype("float32")
            for path, shape in SHAPES.items()
        }
        for scale in random.lognormal(np.log(0.13), 1.0, STEPS)
    ]


def google_learning_rate(step, peak, total_steps, warmup_steps):
    """The rate of google-research/bert's `create_optimizer` at a step."""
    if step < warmup_steps:
        return peak * (step / warmup_steps)
    return (peak - 0.0) * (1 - min(step, total_steps) / total_steps) ** 1.0 + 0.0


class GoogleAdam:
    """google-research/bert's `AdamWeightDecayOptimizer` after its clipping."""

    def __init__(self, values, no_decay, weight_decay=0.01, clip=1.0):
        self.values = {path: value.astype("float64") for path, value in values.items()}
        self.m = {path: np.zeros_like(value) for path, value in self.values.items()}
        self.v = {path: np.zeros_like(value) for path, value in self.values.items()}
        self.no_decay = no_decay
        self.weight_decay = weight_decay
        self.clip = clip

    def step(self, grads, learning_rate):
        """Updates every value once."""
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in grads.values()))
        for path, gradient in grads.items():
            g = gradient.astype("float64") * (self.clip / max(norm, self.clip))
            self.m[path] = 0.9 * self.m[path] + 0.1 * g
            self.v[path] = 0.999 * self.v[path] + 0.001 * g**2
            update = self.m[path] / (np.sqrt(self.v[path]) + 1e-6)
            if not any(part in path for part in self.no_decay):
                update += self.weight_decay * self.values[path]
            self.values[path] = self.values[path] - learning_rate * update


def worst_relative_error(variables, expected):
    """Returns the largest error of a variable, relative to its largest value."""
    return max(
        np.abs(np.asarray(variables[path], "float64") - expected[path]).max()
        / np.abs(expected[path]).max()
        for path in expected
    )
