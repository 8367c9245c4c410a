"""Masked language modelling (section 3.1, "Task #1"): the words behind [MASK]."""

import dataclasses

import keras
import numpy as np

from kbert.preprocessing.masking import MaskingRule, blanks_of
from kbert.preprocessing.raw_text import read_raw
from kbert.tasks import masked_feeds, masked_heads
from kbert.tasks.base import BertTask
from kbert.training.token_scores import TokenAccuracy, TokenCrossentropy

# Texts whose logits, one row of the vocabulary's size a [MASK], are held at once.
_TEXTS_AT_ONCE = 256


@dataclasses.dataclass(frozen=True)
class Filling:
    """What stands behind one [MASK].

    Args:
        token: the likeliest piece.
        probability: its probability.
        probabilities: {piece: probability} of the likeliest ones, from the top.
    """

    token: str
    probability: float
    probabilities: dict[str, float] = dataclasses.field(
        repr=False, default_factory=dict
    )


@dataclasses.dataclass(frozen=True)
class FilledText:
    """The answer for one text.

    Args:
        text: with every [MASK] replaced by its likeliest piece, each chosen by itself.
        fillings: a `Filling` for every [MASK], in order.
    """

    text: str
    fillings: tuple[Filling, ...]


@keras.saving.register_keras_serializable(package="kbert")
class BertMaskedLM(BertTask):
    """Scores of every piece of the vocabulary for each masked token.

    `fit` and `evaluate` take text and mask it themselves, `fit` anew in every epoch;
    in `predict` and `fill` the text says "[MASK]" where something is to be found. Masks
    of one's own come as ready arrays: `x` with `mask_positions`, int (N, M), the
    columns of the masked tokens, 0 where there is none; `y` with the ids that stood
    there, int (N, M).

    The pooler has no part in this task: it stays as it is, untrained, and is not saved.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only.
        masking: the `kbert.preprocessing.masking.MaskingRule` of `fit` and `evaluate`;
            None for the paper's: 15 % of the tokens, of which 80 % become [MASK], 10 %
            a random piece and 10 % stay.
        head_activation: of the head; None for the config's, as everywhere but in
            KerasHub, whose head has "gelu" over an encoder of "gelu_tanh".
        head_epsilon: of the head's normalisation; None for the config's.
        name: of the model.

    `from_preset` takes `masking` and `long_text`; activation and epsilon of the head
    are the preset's.

    Call arguments, a dictionary: those of `BertBackbone`, and
        mask_positions: int32 (masked,), where the masked tokens lie in the rows laid
            end to end: row * S + column.

    Returns:
        Logits, float32 (masked, V).

    Raises:
        ValueError: if the head's activation or epsilon is none.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> masked_lm = BertMaskedLM(backbone)
    >>> ids = np.array([[2, 5, 4, 3]], "int32")
    >>> inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    >>> inputs["mask_positions"] = np.array([[2]])
    >>> masked_lm.predict(inputs, verbose=0).shape
    (1, 100)

    Reference: Devlin et al. 2018, section 3.1; google-research/bert
    `run_pretraining.py`.
    """

    optional_inputs = ()
    uses_pooler = False
    has_next_sentence = False
    preset_arguments = ("masking", "long_text")

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        masking=None,
        head_activation=None,
        head_epsilon=None,
        name=None,
        **kwargs,
    ):
        inputs = dict(backbone.input)
        positions = keras.Input((), dtype="int32", name=masked_heads.POSITIONS)
        head, logits = masked_heads.masked_logits(
            backbone,
            backbone.output["sequence_output"],
            positions,
            head_activation,
            head_epsilon,
        )
        super().__init__(
            {**inputs, masked_heads.POSITIONS: positions},
            logits,
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        backbone.pooler.trainable = False  # no loss reaches it
        self.masking = MaskingRule() if masking is None else masking
        self.head = head
        self.compile()

    def fill(self, texts, top_k=5, batch_size=None):
        """Finds what stands behind every [MASK] of every text, in order.

        Args:
            texts: a text or a list of texts, each with at least one "[MASK]".
            top_k: how many pieces to name for each.
            batch_size: texts a step.

        Returns:
            A list with a `FilledText` a text.

        Raises:
            ValueError: if a text has no [MASK], or one behind the tokens that fit; if
                `top_k` is none.
        """
        preprocessor = self.require_preprocessor()
        tokenizer = preprocessor.tokenizer
        if not isinstance(top_k, int) or not 1 <= top_k <= tokenizer.vocabulary_size:
            raise ValueError(
                f"`top_k` must be an integer from 1 to {tokenizer.vocabulary_size}, "
                f"the pieces of the vocabulary. Received: {top_k!r}."
            )
        raw = read_raw(texts)
        if raw.second is not None:
            raise ValueError(
                "`fill` takes texts; for pairs use `predict`, which returns logits. "
                "Received: a pair."
            )
        counts = blanks_of(
            preprocessor.encode_blanks(raw.first), tokenizer.mask_id
        ).tolist()
        answers = []
        for at in range(0, len(raw.first), _TEXTS_AT_ONCE):
            some = raw.first[at : at + _TEXTS_AT_ONCE]
            logits = self.predict(some, batch_size=batch_size, verbose=0)
            fillings = iter(_fillings(logits, tokenizer, top_k))
            for text, count in zip(some, counts[at:], strict=False):
                found = tuple(next(fillings) for _ in range(count))
                answers.append(FilledText(_filled(text, found, tokenizer), found))
        return answers

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns texts to mask, or ready arrays; see `BertTask.read`."""
        return masked_feeds.read(self, x, y, sample_weight, training, targets)

    def default_loss(self):
        """Returns the cross-entropy, the mean over the masked tokens."""
        return TokenCrossentropy()

    def default_metrics(self):
        """Returns the accuracy over the masked tokens."""
        return [TokenAccuracy()]

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable}."""
        return masked_heads.mlm_weights(self.head)

    def hugging_face_head(self):
        """Returns what transformers' `BertForMaskedLM` reads."""
        return {"architectures": ["BertForMaskedLM"]}

    def preset_metadata(self):
        """Returns the maths of the head, where it is not the encoder's."""
        return masked_heads.head_maths(self.head, self.backbone.config)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "masking": dataclasses.asdict(self.masking),
            "head_activation": self.head.activation,
            "head_epsilon": self.head.layer_norm_epsilon,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Builds the task that `get_config` described."""
        config = {**config, "masking": MaskingRule(**config["masking"])}
        return super().from_config(config, custom_objects)

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the rule of masking, and the maths of the preset's head."""
        return {**asked, **masked_heads.saved_maths(parts.preset)}, ""


def _fillings(logits, tokenizer, top_k):
    """Yields a `Filling` for every row of logits (masked, V).

    Rows that a padded embedding has beyond the vocabulary stand for no piece.
    """
    for row in logits[:, : tokenizer.vocabulary_size].astype("float64"):
        probabilities = np.exp(row - row.max())
        probabilities /= probabilities.sum()
        best = np.argsort(-probabilities, kind="stable")[:top_k]
        named = {tokenizer.vocabulary[i]: float(probabilities[i]) for i in best}
        token = tokenizer.vocabulary[best[0]]
        yield Filling(token, named[token], named)


def _filled(text, fillings, tokenizer):
    """Returns a text with its [MASK]s replaced; a continuation joins its word."""
    first, *rest = text.split(tokenizer.special_tokens["mask"])
    for filling, part in zip(fillings, rest, strict=True):
        token = filling.token
        if token.startswith("##") and len(token) > 2:
            first, token = first.rstrip(), token[2:]
        first += token + part
    return first
