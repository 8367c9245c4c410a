"""Folders of taggers and of multiple choice are transformers' too, both ways."""

import numpy as np
import pytest
import torch
import transformers

import kbert
from tests import tiny
from tests.tasks import head_data

CONFIG = {
    "vocab_size": len(tiny.VOCABULARY),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "hidden_act": "gelu_new",
    "initializer_range": 0.2,
}
NAMES = dict(enumerate(head_data.TAG_NAMES))
CHOICES = (head_data.PROMPTS, head_data.CHOICES)
KINDS = {
    "words": transformers.BertForTokenClassification,
    "choices": transformers.BertForMultipleChoice,
}


def theirs(kind, folder):
    """The logits that transformers computes from a folder, and what it loaded."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, told = KINDS[kind].from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    assert not told["missing_keys"] and not told["unexpected_keys"]
    if kind == "words":
        batch = tokenizer(
            head_data.WORDS, is_split_into_words=True, padding=True, return_tensors="pt"
        )
    else:
        prompts, choices = CHOICES
        batch = tokenizer(
            [prompt for prompt in prompts for _ in range(3)],
            [choice for row in choices for choice in row],
            padding=True,
            return_tensors="pt",
        )
        batch = {k: v.view(len(prompts), 3, -1) for k, v in batch.items()}
    with torch.no_grad():
        logits = model.eval()(**batch).logits.numpy()
    if kind == "words":
        logits[batch["attention_mask"].numpy() == 0] = 0
    return logits, model


def ours(kind, model):
    return model.predict(head_data.WORDS if kind == "words" else CHOICES, verbose=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kbert_folder_loads_in_transformers(kind, tmp_path):
    if kind == "words":
        model = kbert.BertTokenClassifier(
            tiny.backbone(), tiny.preprocessor(), labels=head_data.TAG_NAMES
        )
    else:
        model = kbert.BertMultipleChoice(tiny.backbone(), tiny.preprocessor())
    model.save_to_preset(tmp_path)
    logits, loaded = theirs(kind, tmp_path)
    np.testing.assert_allclose(ours(kind, model), logits, atol=1e-5)
    if kind == "words":
        assert loaded.config.id2label == NAMES


@pytest.mark.parametrize("kind", KINDS)
def test_a_transformers_folder_loads_in_kbert(kind, tmp_path):
    torch.manual_seed(0)
    head = {"id2label": NAMES} if kind == "words" else {}
    config = transformers.BertConfig(**CONFIG, **head)
    KINDS[kind](config).save_pretrained(tmp_path)
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("\n".join(tiny.VOCABULARY) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(vocabulary)).save_pretrained(tmp_path)
    vocabulary.unlink()
    if kind == "words":
        model = kbert.BertTokenClassifier.from_preset(tmp_path)
        assert list(model.labels) == head_data.TAG_NAMES
    else:
        model = kbert.BertMultipleChoice.from_preset(tmp_path)
    logits, _ = theirs(kind, tmp_path)
    np.testing.assert_allclose(ours(kind, model), logits, atol=1e-5)
