"""Heads against transformers, by numbers of scripts/make_head_goldens.py."""

import pathlib

import keras
import numpy as np
import pytest

import kbert
from kbert.checkpoints import folder
from kbert.tasks.saving import task_variables
from tests import tiny
from tests.tasks import head_data

GOLDENS = np.load(pathlib.Path(__file__).parents[1] / "goldens" / "heads.npz")
CHOICES = (head_data.PROMPTS, head_data.CHOICES)


def loaded(name):
    """The model with the weights, its input and targets."""
    arguments = (
        tiny.backbone(dropout=0.0, attention_dropout=0.0),
        tiny.preprocessor(),
    )
    if name == "words":
        model = kbert.BertTokenClassifier(*arguments, labels=head_data.TAG_NAMES)
        x, y = head_data.WORDS, head_data.TAGS
    else:
        model = kbert.BertMultipleChoice(*arguments)
        x, y = CHOICES, head_data.ANSWERS
    prefix = f"{name}/weights/"
    arrays = {
        key.removeprefix(prefix): GOLDENS[key]
        for key in GOLDENS.files
        if key.startswith(prefix)
    }
    report = folder.load_into(task_variables(model), arrays, source="")
    assert not report.random and not report.ignored
    return model, x, y


@pytest.mark.parametrize("name", ["words", "choices"])
def test_logits_and_losses_are_those_of_transformers(name):
    model, x, y = loaded(name)
    expected = GOLDENS[f"{name}/logits"]
    logits = model.predict(x, verbose=0)
    inside = np.ones(expected.shape[:2], bool)
    if name == "words":  # behind a text's end transformers computes something too
        inside = logits.any(-1)
        assert inside.sum(1).tolist() == [11, 6, 7, 6]
    np.testing.assert_allclose(logits[inside], expected[inside], atol=1e-5)
    model.compile(keras.optimizers.SGD(head_data.LEARNING_RATE), metrics=[])
    losses = [float(model.train_on_batch(x, y)) for _ in range(head_data.STEPS)]
    np.testing.assert_allclose(losses, GOLDENS[f"{name}/losses"], atol=1e-4)
    assert losses[-1] < losses[0]
