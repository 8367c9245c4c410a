"""LoRA: low-rank updates of the query and value projections."""

from kbert.backbone import freeze
from kbert.tasks.compiling import compile_again


def enable(task, rank):
    """Trains, of the backbone, only low-rank updates of query and value.

    Args:
        task: the `BertTask`.
        rank: of the updates; 4 or 8 are common.

    Raises:
        ValueError: if LoRA is on already, or the rank is not in [1, H].

    Reference: Hu et al. 2021, https://arxiv.org/abs/2106.09685, section 4.2.
    """
    backbone, current = task.backbone, task.lora_rank
    hidden_dim = backbone.config.hidden_dim
    if current is not None:
        raise ValueError(f"LoRA is on already. Received: rank={rank}, after {current}.")
    if not isinstance(rank, int) or not 1 <= rank <= hidden_dim:
        raise ValueError(
            f"`rank` must be an integer from 1 to hidden_dim={hidden_dim}. "
            f"Received: {rank!r}."
        )
    backbone.trainable = True
    for layer in backbone.encoder_layers:
        layer.attention.query.enable_lora(rank)
        layer.attention.value.enable_lora(rank)
    weights = [w.path for w in backbone.weights if "lora_kernel" not in w.path]
    freeze(backbone, weights)
    task.lora_rank = rank
    compile_again(task)
