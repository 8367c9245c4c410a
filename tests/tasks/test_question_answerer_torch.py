"""Question answering against transformers: the head, both ways, losses and spans."""

import keras
import numpy as np
import pytest
import torch
import transformers

import kbert
from tests import tiny

QUESTIONS, CONTEXTS, ANSWERS = tiny.questions(12, impossible=True)
STEPS = 8


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    model = tiny.answerer(dropout=0.0)
    for variable in model.head.weights:
        variable.assign(keras.random.normal(variable.shape))
    return model


@pytest.fixture(scope="module")
def batch(model):
    texts = model.read((QUESTIONS, CONTEXTS), ANSWERS, None, training=False)
    inputs, y, _ = texts.single_batch()
    return inputs, y


def loaded(folder):
    theirs, told = transformers.AutoModelForQuestionAnswering.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    assert not told["missing_keys"] and not told["unexpected_keys"]
    return theirs


def called(theirs, inputs, **targets):
    return theirs(
        input_ids=torch.tensor(inputs["token_ids"]).long(),
        token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
        attention_mask=torch.tensor(inputs["padding_mask"]).long(),
        **targets,
    )


def check_logits(model, theirs, inputs):
    """Where kbert's logits are not masked, they are those of transformers."""
    ours = model.predict(inputs, verbose=0)
    with torch.no_grad():
        outputs = called(theirs.eval(), inputs)
    inside = ours.start > -1e9
    assert inside.sum() > len(inside)
    for logits, expected in (
        (ours.start, outputs.start_logits),
        (ours.end, outputs.end_logits),
    ):
        np.testing.assert_allclose(logits[inside], expected.numpy()[inside], atol=1e-5)


def test_a_kbert_folder_loads_in_transformers(model, batch, tmp_path):
    model.save_to_preset(tmp_path)
    check_logits(model, loaded(tmp_path), batch[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs = tokenizer(
        QUESTIONS,
        CONTEXTS,
        truncation="only_second",
        max_length=16,
        stride=16 - 3 - 2 - 5,  # theirs is the overlap
        return_overflowing_tokens=True,
        padding="max_length",
        return_tensors="np",
    )
    np.testing.assert_array_equal(theirs["input_ids"], batch[0]["token_ids"])
    np.testing.assert_array_equal(
        theirs["overflow_to_sample_mapping"],
        model.windows((QUESTIONS, CONTEXTS)).examples,
    )


def test_a_transformers_folder_loads_in_kbert(model, batch, tmp_path):
    model.save_to_preset(tmp_path / "kbert")
    theirs = loaded(tmp_path / "kbert")
    with torch.no_grad():
        theirs.qa_outputs.bias += 1.0
    theirs.save_pretrained(tmp_path / "theirs")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "kbert")
    tokenizer.save_pretrained(tmp_path / "theirs")
    again = kbert.BertQuestionAnswerer.from_preset(tmp_path / "theirs")
    check_logits(again, theirs, batch[0])


def test_losses_of_some_steps_agree(model, batch, tmp_path):
    model.save_to_preset(tmp_path)
    theirs = loaded(tmp_path).train()
    ours = kbert.BertQuestionAnswerer.from_preset(tmp_path)
    ours.compile(keras.optimizers.SGD(0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    # Full windows: the loss of transformers goes over padding, that of kbert does not.
    full = batch[0]["padding_mask"].all(axis=1)
    inputs, y = {key: array[full] for key, array in batch[0].items()}, batch[1][full]
    assert len(y) > 8 and (y > 0).any() and (y == 0).any()
    targets = torch.tensor(y).long()
    losses = []
    for _ in range(STEPS):
        outputs = called(
            theirs, inputs, start_positions=targets[:, 0], end_positions=targets[:, 1]
        )
        optimizer.zero_grad()
        outputs.loss.backward()
        optimizer.step()
        own = ours.train_on_batch(inputs, y)[0]
        ours.reset_metrics()
        losses.append((float(own), outputs.loss.item()))
    own, expected = np.transpose(losses)
    np.testing.assert_allclose(own, expected, atol=1e-4)
    assert own[-1] < own[0]
