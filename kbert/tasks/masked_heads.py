"""What the tasks with a head of masked tokens share: the head, its names, its maths."""

import keras

from kbert import keras_hub_folder
from kbert.config import ACTIVATIONS
from kbert.layers import MaskedLMHead

# `mask_positions` counts through all rows of a batch; see `MaskedLMHead`.
POSITIONS = "mask_positions"


def masked_logits(backbone, sequence_output, mask_positions, activation, epsilon):
    """Puts the head of masked tokens on a backbone.

    Args:
        backbone: a `BertBackbone`, whose token embedding is the decoder too.
        sequence_output: symbolic float (B, S, H).
        mask_positions: symbolic int32 (masked,).
        activation: of the head; None for the config's.
        epsilon: of its normalisation; None for the config's.

    Returns:
        The `MaskedLMHead` and its logits, symbolic float32 (masked, V).

    Raises:
        ValueError: if the activation or the epsilon is none.
    """
    config = backbone.config
    if activation is None:
        activation = config.activation
    if epsilon is None:
        epsilon = config.layer_norm_epsilon
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"`head_activation` must be one of {sorted(ACTIVATIONS)}, or None for the "
            f"config's. Received: {activation!r}."
        )
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise ValueError(
            "`head_epsilon` must be a number between 0 and 1, or None for the config's."
            f" Received: {epsilon!r}."
        )
    head = MaskedLMHead(
        backbone.embeddings.token_embedding,
        activation,
        epsilon,
        config.initializer_range,
        dtype=backbone.dtype_policy,
        name="mlm",
    )
    logits = head(sequence_output, mask_positions)
    # Float32 in every policy: the loss is computed from these.
    return head, keras.layers.Identity(dtype="float32", name="mlm_logits")(logits)


def mlm_weights(head) -> dict:
    """Returns {path of `checkpoints/names.py`: variable} of a `MaskedLMHead`."""
    return {
        "mlm/dense/kernel": head.dense.kernel,
        "mlm/dense/bias": head.dense.bias,
        "mlm/norm/gamma": head.norm.gamma,
        "mlm/norm/beta": head.norm.beta,
        "mlm/bias": head.bias,
    }


def head_maths(head, config) -> dict:
    """Returns what `kbert.json` says of a head: {} where it computes as the encoder.

    Args:
        head: a `MaskedLMHead`.
        config: the backbone's `BertConfig`.
    """
    maths = {
        "activation": head.activation,
        "layer_norm_epsilon": head.layer_norm_epsilon,
    }
    usual = (config.activation, config.layer_norm_epsilon)
    return {} if tuple(maths.values()) == usual else {"head": maths}


def saved_maths(preset) -> dict:
    """Returns a preset's arguments for the head: what its owner computes with.

    Args:
        preset: a `kbert.presets.Preset`.
    """
    maths = preset.metadata().get("head", {})
    if preset.format == "keras_hub":
        maths = keras_hub_folder.MASKED_LM_HEAD
    return {
        "head_activation": maths.get("activation"),
        "head_epsilon": maths.get("layer_norm_epsilon"),
    }
