"""Writes tests/goldens/heads.npz: transformers' heads on words and on choices.

.venv-bench/bin/python scripts/make_head_goldens.py

Logits at the start, and the losses of a few steps of plain gradient descent without
dropout, on the sentences of tests/tasks/head_data.py.
"""

import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers

PROJECT = pathlib.Path(__file__).resolve().parents[1]
PATH = PROJECT / "tests" / "goldens" / "heads.npz"
sys.path.insert(0, str(PROJECT))

from tests import tiny  # noqa: E402
from tests.tasks import head_data  # noqa: E402


def main():
    """Writes weights, logits and losses of both heads."""
    goldens = {}
    for name, model, batch in (
        ("words", transformers.BertForTokenClassification, words()),
        ("choices", transformers.BertForMultipleChoice, choices()),
    ):
        torch.manual_seed(0)
        labels = len(head_data.TAG_NAMES) if name == "words" else 2
        model = model(config(labels)).train()
        for key, value in model.state_dict().items():
            goldens[f"{name}/weights/{key}"] = value.numpy().copy()
        goldens[f"{name}/logits"] = model(**batch).logits.detach().numpy()
        goldens[f"{name}/losses"] = np.array(train(model, batch))
    np.savez_compressed(PATH, **goldens)


def config(labels):
    """Returns the sizes of tests/tiny.py, without dropout."""
    return transformers.BertConfig(
        vocab_size=len(tiny.VOCABULARY),
        num_hidden_layers=tiny.SIZES["num_layers"],
        num_attention_heads=tiny.SIZES["num_heads"],
        hidden_size=tiny.SIZES["hidden_dim"],
        intermediate_size=tiny.SIZES["intermediate_dim"],
        max_position_embeddings=tiny.SIZES["max_sequence_length"],
        initializer_range=tiny.SIZES["initializer_range"],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
        num_labels=labels,
    )


def tokenizer():
    """Returns transformers' tokenizer of the tiny vocabulary."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vocab.txt"
        path.write_text("\n".join(tiny.VOCABULARY) + "\n", encoding="utf-8")
        return transformers.BertTokenizerFast(str(path))


def words():
    """Returns a batch of words; the first piece of each is labelled."""
    batch = tokenizer()(
        head_data.WORDS, is_split_into_words=True, padding=True, return_tensors="pt"
    )
    labels = torch.full(batch["input_ids"].shape, -100)
    for text, tags in enumerate(head_data.TAGS):
        found = batch.word_ids(text)
        for position, word in enumerate(found):
            if word is not None and word != found[position - 1]:
                labels[text, position] = head_data.TAG_NAMES.index(tags[word])
    return {**batch, "labels": labels}


def choices():
    """Returns a batch of choices, (examples, choices, length) each."""
    count = len(head_data.CHOICES[0])
    batch = tokenizer()(
        [prompt for prompt in head_data.PROMPTS for _ in range(count)],
        [choice for choices in head_data.CHOICES for choice in choices],
        padding=True,
        return_tensors="pt",
    )
    arrays = {
        key: value.view(-1, count, value.shape[1]) for key, value in batch.items()
    }
    return {**arrays, "labels": torch.tensor(head_data.ANSWERS)}


def train(model, batch):
    """Returns the loss of every step."""
    optimizer = torch.optim.SGD(model.parameters(), head_data.LEARNING_RATE)
    losses = []
    for _ in range(head_data.STEPS):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    main()
