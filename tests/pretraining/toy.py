"""A corpus of many short documents, and a vocabulary that spells it."""

import numpy as np

import kbert

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
