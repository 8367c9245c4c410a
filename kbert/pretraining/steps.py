"""The two steps from a corpus to instances: pure functions of a folder and a number.

A part of the corpus becomes tokenised documents; then documents from all parts, a
random choice, become a shard of instances. Nothing else is shared, so that processes,
machines or a pipeline may take the steps in any order.
"""

import dataclasses
import functools
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from kbert.data.corpus import CorpusFormat, CorpusReport, Document, read_part
from kbert.data.corpus_files import Piece
from kbert.pretraining import storage
from kbert.pretraining.assembling import make_instances
from kbert.pretraining.permutation import Permutation
from kbert.pretraining.segments import Documents
from kbert.pretraining.settings import InstanceSettings
from kbert.tokenization.wordpiece import BertTokenizer

PLAN = "plan.json"
WORK = "work"

# Of the corpus in memory while it is tokenised.
_CHARACTERS = 1 << 22


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a folder of instances is to hold: all that the steps depend on.

    Args:
        settings: what instances are to be like.
        format: how files are documents.
        tokenizer: what `BertTokenizer.get_config` returned.
        parts: the parts of the corpus.
        sizes: bytes of every file, so that another corpus is noticed.
    """

    settings: InstanceSettings
    format: CorpusFormat
    tokenizer: dict
    parts: list[list[Piece]]
    sizes: dict[str, int]

    def to_json(self) -> dict:
        """Returns the plan as JSON can hold it."""
        return {
            "settings": self.settings.to_json(),
            "corpus": dataclasses.asdict(self.format),
            "parts": [[list(piece) for piece in part] for part in self.parts],
            "sizes": self.sizes,
            "tokenizer": self.tokenizer,
        }

    @classmethod
    def read(cls, folder: Path) -> "Plan":
        """Reads the plan of a folder."""
        told = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        return cls(
            InstanceSettings.from_json(told["settings"]),
            CorpusFormat(**told["corpus"]),
            told["tokenizer"],
            [[Piece(*piece) for piece in part] for part in told["parts"]],
            told["sizes"],
        )


@functools.lru_cache(1)
def _plan_of(folder: Path, changed: int) -> tuple[Plan, BertTokenizer]:
    """Reads a folder's plan, whose file last changed at that time, once a process."""
    plan = Plan.read(folder)
    return plan, BertTokenizer.from_config(plan.tokenizer)


def plan_of(folder: Path) -> tuple[Plan, BertTokenizer]:
    """Returns the plan of a folder, and its tokenizer."""
    return _plan_of(folder, (folder / PLAN).stat().st_mtime_ns)


def part_path(folder: Path, number: int) -> Path:
    """Returns where the documents of a part of the corpus lie."""
    return folder / WORK / f"part-{number:05d}.arrow"


def shard_path(folder: Path, number: int, count: int) -> Path:
    """Returns where a shard of instances lies, of so many."""
    return folder / f"shard-{number:05d}-of-{count:05d}.arrow"


def tokenize_part(folder: Path, number: int) -> None:
    """Takes the first step: a part of the corpus to tokenised documents.

    Sentences without a token are left out, and documents without a sentence.

    Args:
        folder: of the instances, with a plan.
        number: of the part.
    """
    plan, tokenizer = plan_of(folder)
    report = CorpusReport()
    counts: dict = {"documents": 0, "tokens": 0}

    def batches() -> Iterator[Documents]:
        documents = read_part(plan.parts[number], plan.format, report)
        kind = np.uint16 if tokenizer.vocabulary_size <= 1 << 16 else np.int32
        for some in _gathered(documents):
            found = _tokenized(some, tokenizer, kind)
            counts["documents"] += found.size
            counts["tokens"] += len(found.tokens)
            yield found
        counts.update(report=dataclasses.asdict(report))

    storage.write_documents(part_path(folder, number), batches(), counts)


def _gathered(documents: Iterator[Document]) -> Iterator[list[Document]]:
    """Yields several documents at a time, in the end perhaps none."""
    some, size = [], 0
    for document in documents:
        some.append(document)
        size += sum(map(len, document))
        if size >= _CHARACTERS:
            yield some
            some, size = [], 0
    yield some


def _tokenized(documents: list[Document], tokenizer, kind) -> Documents:
    """Returns documents as ids, without what has no token."""
    ids = tokenizer(list(chain.from_iterable(documents)))
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    sizes = np.fromiter(map(len, documents), np.int64, len(documents))
    owner = np.repeat(np.arange(len(documents)), sizes)[lengths > 0]
    sizes = np.bincount(owner, minlength=len(documents))
    tokens = np.fromiter(chain.from_iterable(ids), kind, int(lengths.sum()))
    return Documents(
        tokens,
        np.concatenate([[0], np.cumsum(lengths[lengths > 0])]),
        np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
    )


def make_shard(folder: Path, number: int, count: int) -> None:
    """Takes the second step: documents of all parts to a shard of instances.

    Documents are dealt out to the shards in a random order, so that each shard is a
    sample of the whole corpus, and so are the second segments that are random.

    Args:
        folder: of the instances, all parts tokenised.
        number: of the shard.
        count: shards in all.
    """
    plan, tokenizer = plan_of(folder)
    documents = _dealt(folder, plan, number, count)
    storage.write_instances(
        shard_path(folder, number, count),
        make_instances(documents, tokenizer, plan.settings, number),
        tokenizer.vocabulary_size,
        {"kbert.settings": json.dumps(plan.settings.to_json())},
    )


def _dealt(folder: Path, plan: Plan, number: int, count: int) -> Documents:
    """Reads the documents of a shard, in the order of the corpus."""
    sizes = [counts["documents"] for counts in part_counts(folder, plan)]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    order = Permutation(int(begins[-1]), [plan.settings.seed])
    chosen = np.sort(order(np.arange(number, begins[-1], count)))
    bounds = np.searchsorted(chosen, begins)
    found = []
    for part, (start, stop) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        if start < stop:
            wanted = chosen[start:stop] - begins[part]
            found += storage.read_documents(part_path(folder, part), wanted)
    return storage.joined(found)


def part_counts(folder: Path, plan: Plan) -> list[dict]:
    """Returns what was counted in every part.

    Raises:
        FileNotFoundError: if one is not tokenised yet.
    """
    found = []
    for number in range(len(plan.parts)):
        counts = storage.counts_of(part_path(folder, number))
        if counts is None:
            raise FileNotFoundError(
                "Every part of the corpus must be tokenised before a shard is made. "
                f"Received: {part_path(folder, number)}, which is not complete."
            )
        found.append(counts)
    return found
