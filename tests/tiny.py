"""A BERT that builds in a moment, and texts that it can learn to tell apart."""

import keras
import numpy as np

import kbert
from kbert.data.squad import Answer

WORDS = (
    "a the film was is good great fine bad awful dull very not and we saw it".split()
)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ly"]
SIZES = {
    "vocabulary_size": len(VOCABULARY),
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "max_sequence_length": 32,
    "initializer_range": 0.2,  # so that 16 numbers tell texts apart
}
LABELS = ["negative", "positive"]


def backbone(**overrides):
    return kbert.BertBackbone(**{**SIZES, **overrides})


def preprocessor(**overrides):
    tokenizer = kbert.BertTokenizer(VOCABULARY)
    return kbert.BertPreprocessor(tokenizer, **{"max_sequence_length": 32, **overrides})


def classifier(dropout=0.1, **arguments):
    """A classifier of `LABELS`, unless told otherwise, ready for text."""
    if "num_classes" not in arguments and arguments.get("problem") != "regression":
        arguments.setdefault("labels", LABELS)
    return kbert.BertClassifier(
        backbone(dropout=dropout, attention_dropout=dropout),
        arguments.pop("preprocessor", preprocessor()),
        **arguments,
    )


def sentiment(count=24, seed=0):
    """Texts of 3 to 12 words, and "positive" where they say something good."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for index in range(count):
        good = index % 2
        word = rng.choice(["good", "great", "fine"] if good else ["bad", "awful"])
        filler = rng.choice(
            ["a", "the", "film", "was", "very", "it"], rng.integers(2, 12)
        )
        texts.append(" ".join([*filler, word]))
        labels.append(LABELS[good])
    return texts, labels


class RawBatches(keras.utils.PyDataset):
    """A user's own dataset of raw batches."""

    def __init__(self, *columns, **kwargs):
        super().__init__(**kwargs)
        self.columns = columns

    def __len__(self):
        return 3

    def __getitem__(self, index):
        part = slice(8 * index, 8 * index + 8)
        return tuple(column[part] for column in self.columns)


def answerer(dropout=0.1, **arguments):
    """A question answerer, ready for text, in windows of 16 positions."""
    return kbert.BertQuestionAnswerer(
        backbone(dropout=dropout, attention_dropout=dropout),
        arguments.pop("preprocessor", preprocessor(sequence_length=16)),
        **arguments,
    )


def questions(count=24, seed=0, impossible=False):
    """Questions, contexts of 4 to 20 words, and answers: what is said to be so.

    With `impossible` the answer to every third question is not in its context.
    """
    rng = np.random.default_rng(seed)
    contexts, answers = [], []
    for index in range(count):
        words = list(rng.choice(["a", "the", "film", "it", "we"], rng.integers(3, 20)))
        at = int(rng.integers(len(words) + 1))
        answer = " ".join(["very", str(rng.choice(["good", "bad", "dull"]))])
        if impossible and index % 3 == 2:
            answers.append([])
        else:
            start = len("".join(f"{word} " for word in words[:at]))
            answers.append([Answer(answer, start)])
            words.insert(at, answer)
        contexts.append(" ".join(words))
    return ["was it"] * count, contexts, answers
