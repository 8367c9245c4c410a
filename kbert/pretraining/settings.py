"""What instances are to be like: the numbers of Google's procedure, and choices."""

import dataclasses

from kbert.preprocessing.masking import MaskingRule

NEXT_SENTENCE = ("random", "order", "none")


@dataclasses.dataclass(frozen=True)
class InstanceSettings:
    """How instances are made; the defaults are those of google-research/bert.

    Args:
        sequence_length: most positions of an instance, [CLS] and [SEP] counted.
        next_sentence: what the second segment is. "random": what follows the first
            one, or in half of the cases a piece of another document (section 3.1,
            "Task #2"). "order": what follows, or in half of the cases both swapped
            (Lan et al. 2019, "ALBERT", section 3.1). "none": there is none (the
            paper's table 5, "No NSP").
        short_seq_prob: share of the documents whose instances aim at fewer positions
            than fit, as many as a random number says.
        dupe_factor: how often the corpus is gone through, each time with other
            segments and masks.
        masking: which tokens are to be predicted. A rule without `most` has no limit;
            Google's code has 20 for 128 positions.
        static_masks: whether masks are decided now; else a reader masks anew in every
            epoch.
        seed: of all random choices.
        shard_tokens: tokens of the corpus in a shard, about: what is in memory.

    Raises:
        ValueError: if a value is out of range.
    """

    sequence_length: int = 128
    next_sentence: str = "random"
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    masking: MaskingRule = MaskingRule(most=20)
    static_masks: bool = True
    seed: int = 12345
    shard_tokens: int = 1 << 21

    def __post_init__(self):
        """Checks every value."""
        # [CLS], two [SEP], and Google's targets of at least two tokens.
        _check_range("sequence_length", self.sequence_length, 8, 1 << 15)
        _check_range("dupe_factor", self.dupe_factor, 1, 10_000)
        _check_range("shard_tokens", self.shard_tokens, 1, 1 << 30)
        _check_range("seed", self.seed, 0, 2**63 - 1)
        if not 0 <= self.short_seq_prob <= 1:
            raise ValueError(
                f"`short_seq_prob` must lie in [0, 1]. Received: {self.short_seq_prob}."
            )
        if self.next_sentence not in NEXT_SENTENCE:
            raise ValueError(
                f"`next_sentence` must be one of {NEXT_SENTENCE}. Received: "
                f"{self.next_sentence!r}."
            )

    @property
    def budget(self) -> int:
        """Tokens of an instance beside [CLS] and [SEP]."""
        return self.sequence_length - (2 if self.next_sentence == "none" else 3)

    def to_json(self) -> dict:
        """Returns every value as JSON can hold it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict) -> "InstanceSettings":
        """Makes settings of what `to_json` returned."""
        return cls(**{**values, "masking": MaskingRule(**values["masking"])})


def _check_range(name, value, least, most):
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ValueError(
            f"`{name}` must be an integer from {least} to {most}. Received: {value!r}."
        )
