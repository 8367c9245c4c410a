"""The heads of pre-training are transformers', in both directions and in training."""

import numpy as np
import pytest
import safetensors.numpy
import torch
import transformers

import kbert
from kbert.checkpoints import folder
from tests import random_bert, tiny
from tests.checkpoints import cassette

CONFIG = {
    "vocab_size": len(tiny.VOCABULARY),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
KINDS = {
    "BertForPreTraining": kbert.BertPretrainer,
    "BertForMaskedLM": kbert.BertMaskedLM,
    "BertForNextSentencePrediction": kbert.BertPretrainer,
}
WIDTH = 10


def instances(count=6, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, WIDTH + 1, count)
    mask = (np.arange(WIDTH) < lengths[:, None]).astype("int32")
    x = {
        "token_ids": rng.integers(5, len(tiny.VOCABULARY), mask.shape) * mask,
        "segment_ids": (np.arange(WIDTH) > 3) * mask,
        "padding_mask": mask,
        "mask_positions": np.zeros((count, 2), "int32"),
    }
    for row, length in enumerate(lengths):
        chosen = np.sort(rng.choice(np.arange(1, length), 1 + row % 2, replace=False))
        x["mask_positions"][row, : len(chosen)] = chosen
    y = {
        "mlm": rng.integers(5, len(tiny.VOCABULARY), (count, 2)),
        "nsp": rng.integers(0, 2, count),
    }
    return {key: value.astype("int32") for key, value in x.items()}, y


X, Y = instances()


def batch_of(x):
    names = {
        "input_ids": "token_ids",
        "token_type_ids": "segment_ids",
        "attention_mask": "padding_mask",
    }
    return {theirs: torch.tensor(x[ours]).long() for theirs, ours in names.items()}


def theirs_of(kind, seed=0, **changes):
    """Returns a model of transformers whose every weight matters."""
    torch.manual_seed(seed)
    config = transformers.BertConfig(**{**CONFIG, **changes})
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def save(model, path):
    model.save_pretrained(path)
    words = path / "words.txt"
    words.write_text("\n".join(tiny.VOCABULARY) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(words)).save_pretrained(path)
    words.unlink()


def logits_of(model, x):
    """Their logits under kbert's names: at the masked positions, in order."""
    with torch.no_grad():
        outputs = model(**batch_of(x))
    found = {}
    every = getattr(outputs, "prediction_logits", None)
    if every is None and outputs.logits.ndim == 3:
        every = outputs.logits
    if every is not None:
        rows, slots = np.nonzero(x["mask_positions"])
        found["mlm"] = every.numpy()[rows, x["mask_positions"][rows, slots]]
    nsp = getattr(outputs, "seq_relationship_logits", None)
    if nsp is None and outputs.logits.ndim == 2:
        nsp = outputs.logits
    if nsp is not None:
        found["nsp"] = nsp.numpy()
    return found


def check_logits(ours, theirs, x=X):
    found = ours.predict(x, verbose=0)
    found = found if isinstance(found, dict) else {"mlm": found}
    for name, expected in logits_of(theirs, x).items():
        np.testing.assert_allclose(found[name], expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_transformers_saved_answers_the_same(kind, tmp_path):
    theirs = theirs_of(kind)
    save(theirs, tmp_path)
    if kind == "BertForNextSentencePrediction":
        with pytest.warns(UserWarning, match="mlm/dense/kernel.*mlm/bias.*stay random"):
            ours = KINDS[kind].from_preset(tmp_path)
    else:
        ours = KINDS[kind].from_preset(tmp_path)
    check_logits(ours, theirs)


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForMaskedLM"])
def test_what_we_save_transformers_loads_without_a_word(kind, tmp_path):
    ours = KINDS[kind](tiny.backbone(), tiny.preprocessor())
    random_bert.shake(ours)
    ours.save_to_preset(tmp_path / "ours")
    theirs, told = getattr(transformers, kind).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert {key: list(value) for key, value in told.items() if value} == {}
    check_logits(ours, theirs.eval())
    # And back, bit for bit.
    theirs.save_pretrained(tmp_path / "theirs")
    again = folder.read_weights(tmp_path / "theirs" / "model.safetensors")
    for name, array in folder.read_weights(tmp_path / "ours/model.safetensors").items():
        np.testing.assert_array_equal(np.asarray(again[name]), np.asarray(array))


def test_next_sentences_alone_in_transformers(tmp_path):
    ours = kbert.BertPretrainer(tiny.backbone(), tiny.preprocessor())
    random_bert.shake(ours)
    ours.save_to_preset(tmp_path)
    theirs = transformers.BertForNextSentencePrediction.from_pretrained(tmp_path)
    expected = logits_of(theirs.eval(), X)["nsp"]
    np.testing.assert_allclose(ours.predict(X, verbose=0)["nsp"], expected, atol=1e-5)


def test_the_tied_decoder_may_be_there_and_must_be_the_embedding(tmp_path):
    theirs = theirs_of("BertForMaskedLM")
    save(theirs, tmp_path)
    path = tmp_path / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    table = arrays["bert.embeddings.word_embeddings.weight"]
    arrays["cls.predictions.decoder.weight"] = table.copy()
    # Of the two names of the bias, the newer alone.
    arrays["cls.predictions.decoder.bias"] = arrays.pop("cls.predictions.bias")
    safetensors.numpy.save_file(arrays, path, {"format": "pt"})
    check_logits(kbert.BertMaskedLM.from_preset(tmp_path), theirs)
    arrays["cls.predictions.decoder.weight"] = table + 1
    safetensors.numpy.save_file(arrays, path, {"format": "pt"})
    with pytest.raises(ValueError, match="same numbers.*decoder.weight.*Received"):
        kbert.BertMaskedLM.from_preset(tmp_path)


def test_losses_of_training_steps_are_theirs(tmp_path):
    theirs = theirs_of("BertForPreTraining").train()
    save(theirs, tmp_path)
    ours = kbert.BertPretrainer.from_preset(tmp_path)
    ours.compile(kbert.AdamW(1e-2, weight_decay=0.0))
    optimizer = torch.optim.AdamW(
        theirs.parameters(), lr=1e-2, weight_decay=0.0, eps=1e-6
    )
    rows, slots = np.nonzero(X["mask_positions"])
    labels = np.full(X["token_ids"].shape, -100)
    labels[rows, X["mask_positions"][rows, slots]] = Y["mlm"][rows, slots]
    found, expected = [], []
    for _ in range(8):
        logs = ours.train_on_batch(X, Y, return_dict=True)
        found.append(float(logs["loss"]))
        ours.reset_metrics()
        loss = theirs(
            **batch_of(X),
            labels=torch.tensor(labels),
            next_sentence_label=torch.tensor(Y["nsp"]),
        ).loss
        expected.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert expected[-1] < expected[0] - 0.5


def test_fill_is_the_pipeline_of_transformers(tmp_path):
    theirs = theirs_of("BertForMaskedLM")
    save(theirs, tmp_path)
    ours = kbert.BertMaskedLM.from_preset(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    pipeline = transformers.pipeline("fill-mask", model=theirs, tokenizer=tokenizer)
    (answer,) = ours.fill("a [MASK] film", top_k=4)
    expected = pipeline("a [MASK] film", top_k=4)
    assert list(answer.fillings[0].probabilities) == [e["token_str"] for e in expected]
    np.testing.assert_allclose(
        list(answer.fillings[0].probabilities.values()),
        [e["score"] for e in expected],
        atol=1e-5,
    )


def test_real_weights_with_legacy_names_answer_as_in_transformers():
    folder = cassette.folder()
    ours = kbert.BertMaskedLM.from_preset(folder)
    theirs = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(cassette.TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = theirs(**batch).logits.numpy()
    expected = logits[batch["input_ids"].numpy() == tokenizer.mask_token_id]
    assert expected.shape == (4, 30522)
    found = ours.predict(cassette.TEXTS, verbose=0)
    # Logits down to -20: a few float32 roundings are more than 1e-5.
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-5)
