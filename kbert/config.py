"""The hyper-parameters of a BERT encoder and their spelling in `config.json`."""

import dataclasses
import warnings

from kbert.strict_json import check_schema, shorten

# Our name: the names that transformers uses for the same function. Its "gelu" is the
# erf form; Google's code computes the tanh form under that name.
ACTIVATIONS = {
    "gelu": ("gelu", "gelu_python"),
    "gelu_tanh": ("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"),
    "relu": ("relu",),
    "silu": ("silu", "swish"),
    "tanh": ("tanh",),
}

# Our name: transformers' key in `config.json`.
_KEYS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "classifier_dropout": "classifier_dropout",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
    "layer_norm_epsilon": "layer_norm_eps",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
    # Of its BertModel: every position sees those before it and itself.
    "left_to_right": "is_decoder",
}

# Keys that would change the mathematics: only these values are BERT's.
_FIXED = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute", None),
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "cross_attention_hidden_size": (None,),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
}

# The most that a model may have: beyond every BERT there is, and small enough that
# what is computed from a stranger's config.json before its weights are seen is cheap.
_LIMITS = {
    "vocabulary_size": 1 << 24,
    "num_layers": 256,
    "num_heads": 1024,
    "hidden_dim": 1 << 16,
    "intermediate_dim": 1 << 18,
    "max_sequence_length": 1 << 20,
    "num_segments": 1 << 16,
}
_MAX_LABELS = 10_000

# What the head of a classifier says of itself.
_HEAD = {"problem_type": (str, None), "id2label": ({...: str}, None)}

# Keys that say nothing about the mathematics of the encoder; those of a head
# (`id2label`, `problem_type`) are read by the task.
_HARMLESS = frozenset(
    """
    _attn_implementation _name_or_path _num_labels architectures bos_token_id
    chunk_size_feed_forward directionality dtype embedding_size eos_token_id
    finetuning_task gradient_checkpointing id2label label2id language layer_types
    max_length model_max_length num_labels output_attentions output_hidden_states
    output_past pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type problem_type return_dict sep_token_id
    task_specific_params tokenizer_class torch_dtype torchscript transformers_version
    use_bfloat16 use_cache attn_implementation prefix tie_encoder_decoder
    tie_word_embeddings
    """.split()
)


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The hyper-parameters of a BERT encoder (Devlin et al. 2018, section 3).

    The defaults are BERT-base, uncased English.

    Args:
        vocabulary_size: V, the rows of the token embedding.
        num_layers: L, the encoder layers.
        num_heads: N, the attention heads a layer; must divide `hidden_dim`.
        hidden_dim: H, the width of the residual stream.
        intermediate_dim: F, the width of the feed-forward layer; 4H in the paper.
        activation: of the feed-forward layer: "gelu" (erf), "gelu_tanh", "relu",
            "silu" or "tanh". Google's released weights mean "gelu_tanh".
        dropout: rate after the embeddings and after each sub-layer.
        attention_dropout: rate on the attention probabilities.
        classifier_dropout: rate before a classification head; None for `dropout`.
        max_sequence_length: the rows of the position embedding.
        num_segments: the rows of the segment embedding.
        layer_norm_epsilon: epsilon of every layer normalisation.
        initializer_range: standard deviation of the truncated normal initialiser.
        pad_token_id: the id that fills unused positions.
        left_to_right: whether a position sees only itself and those before it in its
            text (section 5.1, "LTR"); transformers calls it `is_decoder`.

    Raises:
        ValueError: if a size is not positive or beyond any BERT's, a rate lies outside
            [0, 1), the activation is unknown, `hidden_dim` is no multiple of
            `num_heads`, or `left_to_right` is no bool.

    Example:
    >>> BertConfig(num_layers=2, num_heads=2, hidden_dim=128).intermediate_dim
    3072
    """

    vocabulary_size: int = 30522
    num_layers: int = 12
    num_heads: int = 12
    hidden_dim: int = 768
    intermediate_dim: int = 3072
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    max_sequence_length: int = 512
    num_segments: int = 2
    layer_norm_epsilon: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0
    left_to_right: bool = False

    def __post_init__(self):
        """Checks every value, so that a model is never built from a bad one."""
        for name, limit in _LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= limit:
                raise ValueError(
                    f"`{name}` must be a positive integer, at most {limit}. "
                    f"Received: {shorten(repr(value), 200)}."
                )
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                "The hidden size must be a multiple of num_heads. Received: "
                f"hidden_dim={self.hidden_dim}, num_heads={self.num_heads}."
            )
        for name in ("dropout", "attention_dropout", "classifier_dropout"):
            value = getattr(self, name)
            if name == "classifier_dropout" and value is None:
                continue
            if not _is_number(value) or not 0 <= value < 1:
                raise ValueError(
                    f"`{name}` must be a rate in [0, 1). Received: {value!r}."
                )
        for name in ("layer_norm_epsilon", "initializer_range"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 < value < 1:
                raise ValueError(
                    f"`{name}` must be a number between 0 and 1. Received: {value!r}."
                )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"`activation` must be one of {sorted(ACTIVATIONS)}. "
                f"Received: {self.activation!r}."
            )
        is_id = isinstance(self.pad_token_id, int) and not isinstance(
            self.pad_token_id, bool
        )
        if not is_id or not 0 <= self.pad_token_id < self.vocabulary_size:
            raise ValueError(
                "`pad_token_id` must be an id of the vocabulary. Received: "
                f"pad_token_id={self.pad_token_id!r}, "
                f"vocabulary_size={self.vocabulary_size}."
            )
        if not isinstance(self.left_to_right, bool):
            raise ValueError(
                "`left_to_right` must be True or False (in config.json: is_decoder). "
                f"Received: {shorten(repr(self.left_to_right), 200)}."
            )

    @property
    def head_dropout(self) -> float:
        """The dropout rate in front of a classification head."""
        if self.classifier_dropout is None:
            return self.dropout
        return self.classifier_dropout

    def told_dropout(self, rate: float) -> float | None:
        """Returns the `classifier_dropout` with which `head_dropout` is this rate."""
        return self.classifier_dropout if rate == self.head_dropout else rate

    def require_both_directions(self, reader: str) -> None:
        """Refuses what reads a text at its first position, [CLS], from left to right.

        Args:
            reader: what reads it there.

        Raises:
            ValueError: if the encoder reads from left to right.
        """
        if self.left_to_right:
            raise ValueError(
                f"A {reader} reads every text at [CLS], its first position, which must "
                "see the whole text. Received: left_to_right=True, where it sees itself"
                " alone. Use a task that reads other positions (BertMaskedLM, "
                "BertQuestionAnswerer, BertTokenClassifier, BertEmbedder with "
                "pooling='mean'), or a head of your own on `sequence_output`."
            )

    @classmethod
    def from_hugging_face(cls, config: dict) -> "BertConfig":
        """Reads the content of a Hugging Face `config.json`.

        Every key that changes the mathematics is honoured or refused; keys of a head
        are left to the task; a key that nobody knows is told in a warning.

        Args:
            config: the decoded JSON object.

        Returns:
            The configuration. A key that is absent has transformers' default, which
            is BERT-base's.

        Raises:
            ValueError: if a key asks for something that is not BERT.
        """
        _check_head(config)
        for key, allowed in _FIXED.items():
            if key in config and config[key] not in allowed:
                raise ValueError(
                    f"config.json asks for {key}={shorten(repr(config[key]), 200)}, "
                    "which changes the mathematics and which kbert does not compute. "
                    f"It must be {allowed[0]!r} or absent."
                )
        unknown = sorted(set(config) - set(_FIXED) - _HARMLESS - set(_KEYS.values()))
        if unknown:
            warnings.warn(
                "config.json has keys that kbert does not know and ignores: "
                f"{shorten(str(unknown))}. If one of them changes the mathematics, the "
                "results will differ.",
                stacklevel=2,
            )
        values = {
            ours: config[theirs]
            for ours, theirs in _KEYS.items()
            if config.get(theirs) is not None
        }
        if "activation" in values:
            values["activation"] = _our_activation(values["activation"])
        embedding_size = config.get("embedding_size")
        if embedding_size not in (None, values.get("hidden_dim", cls.hidden_dim)):
            raise ValueError(
                "config.json asks for embedding_size="
                f"{embedding_size!r}, a factorised embedding, which kbert does not "
                "compute. It must equal hidden_size or be absent."
            )
        return cls(**values)

    def to_hugging_face(self) -> dict:
        """Returns the same as the architecture keys of transformers' `BertConfig`."""
        config = {theirs: getattr(self, ours) for ours, theirs in _KEYS.items()}
        config["hidden_act"] = ACTIVATIONS[self.activation][0]
        if not self.left_to_right:
            del config["is_decoder"]  # as in every BERT's file
        return {"model_type": "bert", "position_embedding_type": "absolute", **config}


def _check_head(config: dict) -> None:
    """Refuses labels of a classifier that are no names of the numbers from 0 on."""
    check_schema(config, {"architectures": ([str], None)}, "config.json")
    if "BertForSequenceClassification" not in (config.get("architectures") or ()):
        return
    check_schema(config, _HEAD, "config.json")
    names = config.get("id2label") or {}
    numbers = {str(number) for number in range(len(names))}
    distinct = len(set(names.values()) - {""}) == len(names)
    if len(names) > _MAX_LABELS or set(map(str, names)) != numbers or not distinct:
        raise ValueError(
            'config.json must have as id2label the distinct names of "0", "1", … , '
            f"at most {_MAX_LABELS}. Received: {len(names)}, "
            f"{shorten(repr(names), 200)}."
        )


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _our_activation(name) -> str:
    for ours, theirs in ACTIVATIONS.items():
        if name in theirs:
            return ours
    known = sorted(name for names in ACTIVATIONS.values() for name in names)
    raise ValueError(
        f"config.json asks for hidden_act={name!r}. It must be one of {known}."
    )
