"""A corpus of many short documents, and a vocabulary that spells it."""

import os
import signal

import numpy as np

import kbert
from kbert.pretraining.creation import create_instances
from kbert.pretraining.settings import InstanceSettings

WORDS = [f"{a}{b}" for a in "bcdfghklmnprst" for b in ("a", "e", "i", "o", "u", "ar")]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ing", "."]


def tokenizer():
    return kbert.BertTokenizer(PIECES)


def documents(count=60, seed=0):
    """Documents of one to 14 sentences of 3 to 20 words."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        sentences = []
        for _ in range(rng.integers(1, 15)):
            words = rng.choice(WORDS, rng.integers(2, 20))
            ends = rng.choice(["", "", "s", "ing"], len(words))
            joined = " ".join(f"{w}{e}" for w, e in zip(words, ends, strict=True))
            sentences.append(f"{joined}.")
        found.append(sentences)
    return found


def text(count=60, seed=0):
    """The same in Google's format."""
    return "\n".join("\n".join([*document, ""]) for document in documents(count, seed))


SETTINGS = InstanceSettings(sequence_length=32, dupe_factor=2, shard_tokens=1500)


def create(corpus, folder, **changes):
    """Instances of a corpus in four parts and a few shards."""
    arguments = {"settings": SETTINGS, "part_bytes": 1 << 13, **changes}
    return create_instances(corpus, folder, tokenizer(), **arguments)


def create_and_die(corpus, folder, left):
    """The same in a process that ends itself before the `left`th file is in place."""
    replace = os.replace

    def count_down(*arguments):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*arguments)

    os.replace = count_down
    create(corpus, folder)


def content(folder):
    """The bytes of every file in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
