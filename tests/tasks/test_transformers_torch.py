"""A classifier's folder is transformers' as well, in both directions."""

import json

import numpy as np
import pytest
import torch
import transformers

import kbert
from tests import tiny

TEXTS = [
    "a good film",
    "The film was NOT great , and we saw it very badly",
    "café 中文 [MASK] [SEP]",
    "",
]
FIRSTS, SECONDS = ["a film", "it was"], ["we saw it", "good good good"]


def logits_of_transformers(folder, *texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, told = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    assert not told["missing_keys"] and not told["unexpected_keys"]
    batch = tokenizer(*texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return model.eval()(**batch).logits.numpy(), batch["input_ids"].numpy(), model


@pytest.mark.parametrize("problem", ["single_label", "multi_label", "regression"])
def test_a_kbert_folder_loads_in_transformers(problem, tmp_path):
    model = tiny.classifier(problem=problem)
    model.save_to_preset(tmp_path)
    # A literal special token in text is text for kbert, the token for transformers.
    texts = TEXTS[:2] + ["café 中文", ""]
    theirs, ids, loaded = logits_of_transformers(tmp_path, texts)
    np.testing.assert_array_equal(model.preprocessor(texts)["token_ids"], ids)
    np.testing.assert_allclose(model.predict(texts, verbose=0), theirs, atol=1e-5)
    if problem != "regression":
        assert list(loaded.config.id2label.values()) == tiny.LABELS
    assert loaded.config.problem_type.startswith(problem)


def test_pairs_agree(tmp_path):
    model = tiny.classifier()
    model.save_to_preset(tmp_path)
    theirs, ids, _ = logits_of_transformers(tmp_path, FIRSTS, SECONDS)
    ours = model.preprocessor((FIRSTS, SECONDS))["token_ids"]
    np.testing.assert_array_equal(ours, ids)
    np.testing.assert_allclose(
        model.predict((FIRSTS, SECONDS), verbose=0), theirs, atol=1e-5
    )


def save_with_transformers(folder, **head):
    config = transformers.BertConfig(
        vocab_size=len(tiny.VOCABULARY),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        hidden_act="gelu_new",
        **head,
    )
    model = transformers.BertForSequenceClassification(config)
    model.save_pretrained(folder)
    vocabulary = folder / "words.txt"
    vocabulary.write_text("\n".join(tiny.VOCABULARY) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(vocabulary)).save_pretrained(folder)
    vocabulary.unlink()


@pytest.mark.parametrize(
    "head, labels, problem",
    [
        ({"id2label": {0: "down", 1: "up", 2: "flat"}}, ("down", "up", "flat"), None),
        ({"num_labels": 2}, ("LABEL_0", "LABEL_1"), None),
        (
            {
                "id2label": {0: "x", 1: "y"},
                "problem_type": "multi_label_classification",
            },
            ("x", "y"),
            "multi_label",
        ),
        ({"num_labels": 1, "problem_type": "regression"}, (), "regression"),
        ({"num_labels": 1}, (), "regression"),
    ],
)
def test_a_transformers_folder_loads_in_kbert(head, labels, problem, tmp_path):
    torch.manual_seed(0)
    save_with_transformers(tmp_path, **head)
    model = kbert.BertClassifier.from_preset(tmp_path)
    assert model.labels == labels
    assert model.problem == (problem or "single_label")
    theirs, ids, _ = logits_of_transformers(tmp_path, TEXTS[:2])
    np.testing.assert_array_equal(model.preprocessor(TEXTS[:2])["token_ids"], ids)
    np.testing.assert_allclose(model.predict(TEXTS[:2], verbose=0), theirs, atol=1e-5)


def test_a_folder_resaved_by_transformers_loads(tmp_path):
    tiny.classifier().save_to_preset(tmp_path)
    _, _, theirs = logits_of_transformers(tmp_path, TEXTS[:1])
    theirs.config.id2label = {0: "no", 1: "yes"}
    theirs.config.label2id = {"no": 0, "yes": 1}
    with torch.no_grad():
        theirs.classifier.bias += 1.0
    theirs.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="kbert.json"):
        model = kbert.BertClassifier.from_preset(tmp_path)
    assert model.labels == ("no", "yes")
    np.testing.assert_allclose(np.array(model.head.bias), [1.0, 1.0], atol=1e-6)
    assert json.loads((tmp_path / "config.json").read_text())["id2label"]["1"] == "yes"


def test_minilm_classifier_agrees(tmp_path):
    with pytest.warns(UserWarning, match="stay random"):
        model = kbert.BertClassifier.from_preset(
            "all_minilm_l6_en_uncased", labels=tiny.LABELS
        )
    model.save_to_preset(tmp_path)
    texts = ["a thoughtful, quietly devastating film", "Naïve: it's no good!"]
    theirs, ids, _ = logits_of_transformers(tmp_path, texts)
    np.testing.assert_array_equal(model.preprocessor(texts)["token_ids"], ids)
    np.testing.assert_allclose(model.predict(texts, verbose=0), theirs, atol=1e-5)
