"""BERT in numpy and float64, from the paper and Google's code; it knows no Keras."""

import math

import numpy as np

_erf = np.vectorize(math.erf)


def gelu(x):
    """x times the normal distribution function of x."""
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def gelu_tanh(x):
    """The approximation in google-research/bert."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def layer_norm(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def positions(numbers):
    """Column numbers, starting again at every text of a row that holds several."""
    result = np.tile(np.arange(numbers.shape[1]), (len(numbers), 1))
    for row, texts in zip(result, numbers, strict=True):
        if texts.max() > 1:
            for number in set(texts.tolist()):
                row[texts == number] -= np.argmax(texts == number)
    return result


def attend(x, weights, prefix, num_heads, numbers, left_to_right=False):
    """Multi-head attention among the positions that bear one number.

    With `left_to_right`, of these among the ones that do not stand behind.

    Returns the output (B, S, H) and the probabilities (B, N, S, S).
    """

    def project(name, value):
        path = f"{prefix}{name}"
        return value @ weights[f"{path}/kernel"] + weights[f"{path}/bias"]

    outputs, probabilities = [], []
    head_dim = x.shape[-1] // num_heads
    for row, texts in zip(x, numbers, strict=True):
        query, key, value = (project(n, row) for n in ("query", "key", "value"))
        heads = []
        probabilities.append([])
        for head in range(num_heads):
            part = slice(head * head_dim, (head + 1) * head_dim)
            scores = query[:, part] @ key[:, part].T / math.sqrt(head_dim)
            scores[texts[:, None] != texts[None, :]] = -np.inf
            if left_to_right:
                scores[np.triu_indices(len(texts), 1)] = -np.inf
            probabilities[-1].append(softmax(scores))
            heads.append(probabilities[-1][-1] @ value[:, part])
        outputs.append(project("output", np.concatenate(heads, axis=-1)))
    return np.array(outputs), np.array(probabilities)


def encode(
    x,
    weights,
    prefix,
    num_heads,
    numbers,
    activation,
    epsilon,
    left_to_right=False,
):
    """One post-norm encoder layer; returns its output and the probabilities."""

    def norm(name, value):
        path = f"{prefix}{name}"
        return layer_norm(
            value, weights[f"{path}/gamma"], weights[f"{path}/beta"], epsilon
        )

    y, probabilities = attend(
        x, weights, f"{prefix}attention/", num_heads, numbers, left_to_right
    )
    x = norm("attention_norm", x + y)
    y = x @ weights[f"{prefix}intermediate/kernel"]
    y = ACTIVATIONS[activation](y + weights[f"{prefix}intermediate/bias"])
    y = y @ weights[f"{prefix}output/kernel"] + weights[f"{prefix}output/bias"]
    return norm("output_norm", x + y), probabilities


def embed(inputs, weights, epsilon):
    x = weights["embeddings/token_embedding/embeddings"][inputs["token_ids"]]
    place = positions(inputs["padding_mask"])
    x = x + weights["embeddings/position_embedding/embeddings"][place]
    x = x + weights["embeddings/segment_embedding/embeddings"][inputs["segment_ids"]]
    gamma, beta = (weights[f"embeddings/norm/{name}"] for name in ("gamma", "beta"))
    return layer_norm(x, gamma, beta, epsilon)


def masked_logits(x, positions, weights, *, activation, epsilon):
    """The head of masked tokens: (masked, V) logits of positions in (B, S, H)."""
    weights = {path: np.asarray(w, "float64") for path, w in weights.items()}
    x = np.asarray(x, "float64").reshape(-1, x.shape[-1])[positions]
    x = x @ weights["mlm/dense/kernel"] + weights["mlm/dense/bias"]
    x = ACTIVATIONS[activation](x)
    x = layer_norm(x, weights["mlm/norm/gamma"], weights["mlm/norm/beta"], epsilon)
    table = weights["embeddings/token_embedding/embeddings"]
    return x @ table.T + weights["mlm/bias"]


def forward(
    inputs,
    weights,
    *,
    num_layers,
    num_heads,
    activation,
    epsilon,
    left_to_right=False,
):
    """Runs the encoder.

    Args:
        inputs: token_ids, segment_ids and padding_mask, each int (B, S).
        weights: {kbert's path: array}.
        num_layers: L.
        num_heads: N.
        activation: a key of `ACTIVATIONS`.
        epsilon: of every layer normalisation.
        left_to_right: whether a position sees none behind it.

    Returns:
        hidden_states (L + 1 arrays), attentions (L arrays), pooled_output (B, H).
    """
    weights = {path: np.asarray(w, "float64") for path, w in weights.items()}
    states, attentions = [embed(inputs, weights, epsilon)], []
    for index in range(num_layers):
        x, probabilities = encode(
            states[-1],
            weights,
            f"encoder_layer_{index}/",
            num_heads,
            inputs["padding_mask"],
            activation,
            epsilon,
            left_to_right,
        )
        states.append(x)
        attentions.append(probabilities)
    pooled = states[-1][:, 0] @ weights["pooler/dense/kernel"]
    return states, attentions, np.tanh(pooled + weights["pooler/dense/bias"])
