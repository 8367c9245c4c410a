"""From segments to instances: cut to fit, joined, masked, many at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kbert.preprocessing.masking import TokenMasker
from kbert.preprocessing.packing import keep
from kbert.pretraining.segments import Documents, Segments, plan_segments
from kbert.pretraining.settings import InstanceSettings

# Instances made at once: few enough for the caches, many enough for numpy.
BLOCK = 1 << 13


class Instances(NamedTuple):
    """N instances, one after another, without padding.

    Attributes:
        token_ids: int32 (total,), [CLS] A [SEP] B [SEP], or [CLS] A [SEP].
        row_splits: int64 (N + 1,); instance i is `token_ids[row_splits[i]:
            row_splits[i + 1]]`.
        second_starts: int32 (N,), where segment 1 begins in an instance; its length
            where there is no second segment.
        labels: int8 (N,), of the second segments, as in `Segments`.
        mask_positions: int32 (masked,), places in an instance, increasing in each.
        mask_labels: int32 (masked,), the ids that stood there.
        mask_splits: int64 (N + 1,), into the two; all 0 where nothing is masked yet.
    """

    token_ids: np.ndarray
    row_splits: np.ndarray
    second_starts: np.ndarray
    labels: np.ndarray
    mask_positions: np.ndarray
    mask_labels: np.ndarray
    mask_splits: np.ndarray

    @property
    def size(self) -> int:
        """N, the number of instances."""
        return len(self.labels)


def make_instances(
    documents: Documents, tokenizer, settings: InstanceSettings, shard: int
) -> Iterator[Instances]:
    """Yields the instances of a shard: a pure function of its documents and the seed.

    Args:
        documents: of the shard.
        tokenizer: the `BertTokenizer` that their ids are of.
        settings: what instances are to be like.
        shard: number of the shard.

    Returns:
        Blocks of instances, those of one pass through the documents in random order.
    """
    masker = TokenMasker(tokenizer, settings.masking)
    for copy in range(settings.dupe_factor):
        rng = np.random.default_rng([settings.seed, shard, copy])
        segments = plan_segments(documents, settings, rng)
        order = rng.permutation(len(segments.labels))
        for at in range(0, max(len(order), 1), BLOCK):
            chosen = segments.select(order[at : at + BLOCK])
            instances = assemble(
                documents.tokens,
                chosen,
                sequence_length=settings.sequence_length,
                cls_id=tokenizer.cls_id,
                sep_id=tokenizer.sep_id,
                rng=rng,
            )
            if settings.static_masks:
                instances = mask(instances, masker, rng)
            yield instances


def assemble(
    tokens, segments: Segments, *, sequence_length, cls_id, sep_id, rng
) -> Instances:
    """Cuts segments to fit, and joins them with [CLS] and [SEP].

    Of two segments the longer loses a token at a time, of equal ones the second, at
    its beginning or its end with a chance of one half each, as in Google's
    `truncate_seq_pair`. How many are left is then no matter of chance, and how many
    of the lost ones stood at the beginning is a binomial number.

    Args:
        tokens: integers (T,).
        segments: of N instances.
        sequence_length: most positions of an instance.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        rng: what decides where a segment is cut.

    Returns:
        N instances, nothing masked.
    """
    first, second, lengths = keep(
        np, segments.first_lengths, segments.second_lengths, sequence_length
    )
    first_starts = segments.first_starts + rng.binomial(
        segments.first_lengths - first, 0.5
    )
    second_starts = segments.second_starts + rng.binomial(
        segments.second_lengths - second, 0.5
    )
    count = len(lengths)
    row_splits = np.concatenate([[0], np.cumsum(lengths)])
    # Each instance is two runs of the corpus: one token too early for [CLS], and A, and
    # one too far for [SEP]; then B, and again one too far.
    runs = np.empty((count, 2), np.int64)
    runs[:, 0] = first + 2
    runs[:, 1] = lengths - runs[:, 0]
    sources = np.empty((count, 2), np.int64)
    sources[:, 0] = first_starts - 1 - row_splits[:-1]
    sources[:, 1] = second_starts - (row_splits[:-1] + runs[:, 0])
    index = np.repeat(sources.ravel(), runs.ravel())
    index += np.arange(len(index))
    token_ids = tokens.take(index, mode="clip").astype(np.int32)
    token_ids[row_splits[:-1]] = cls_id
    token_ids[row_splits[:-1] + runs[:, 0] - 1] = sep_id
    token_ids[row_splits[1:] - 1] = sep_id
    nothing = np.zeros(0, np.int32)
    return Instances(
        token_ids,
        row_splits,
        runs[:, 0].astype(np.int32),
        segments.labels.astype(np.int8),
        nothing,
        nothing,
        np.zeros(count + 1, np.int64),
    )


def mask(instances: Instances, masker: TokenMasker, rng) -> Instances:
    """Hides tokens of instances, by the masker's rule.

    Args:
        instances: nothing masked.
        masker: what masks them.
        rng: what decides.
    """
    row_splits = instances.row_splits
    token_ids, positions, labels = masker(instances.token_ids, row_splits, rng)
    mask_splits = np.searchsorted(positions, row_splits)
    places = positions - np.repeat(row_splits[:-1], np.diff(mask_splits))
    return instances._replace(
        token_ids=token_ids,
        mask_positions=places.astype(np.int32),
        mask_labels=labels,
        mask_splits=mask_splits,
    )
