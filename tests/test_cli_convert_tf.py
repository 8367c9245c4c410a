"""`kbert convert`, on a classifier that builds in a moment."""

import numpy as np
import pytest
import safetensors.numpy
from typer.testing import CliRunner

import kbert
from kbert.checkpoints import google
from kbert.convert import conversion
from kbert.tasks import saving
from kbert_cli import app
from tests import random_bert, tiny

TEXTS = ["a good film", "we saw it"]


def run(*arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


@pytest.fixture
def classifier():
    model = kbert.BertClassifier(
        tiny.backbone(activation="gelu_tanh"),
        tiny.preprocessor(),
        labels=["x", "y", "z"],
    )
    random_bert.shake(model)
    return model


def test_to_google_and_back(classifier, tmp_path):
    preset, there, back = (tmp_path / name for name in ("preset", "google", "back"))
    classifier.save_to_preset(preset)
    done = run(preset, there, "--format", "google")
    assert done.exit_code == 0, done.stderr
    assert "model.safetensors: 25 tensors" in done.stdout
    assert "Dropped problem_type='single_label_classification': the" in done.stdout
    assert "Dropped id2label={'0': 'x', '1': 'y', '2': 'z'}" in done.stdout
    assert "BertClassifier, answers: largest difference of both sides" in done.stdout
    assert "--do_lower_case=true" in done.stdout
    assert "bert_model.ckpt.index" in done.stdout
    done = run(there, back, "--format", "huggingface")
    assert done.exit_code == 0, done.stderr
    again = kbert.BertClassifier.from_preset(back, labels=["x", "y", "z"])
    assert np.array_equal(
        again.predict(TEXTS, verbose=0), classifier.predict(TEXTS, verbose=0)
    )


def test_a_model_without_a_head(classifier, tmp_path):
    there, back = tmp_path / "google", tmp_path / "back"
    weights = saving.merged_weights(classifier)
    weights = {k: v for k, v in weights.items() if not k.startswith("classifier")}
    tokenizer = kbert.BertTokenizer(tiny.VOCABULARY)
    google.write_checkpoint(there, weights, classifier.backbone.config, tokenizer)
    done = run(there, back, "--format", "huggingface")
    assert done.exit_code == 0, done.stderr
    again = kbert.BertBackbone.from_preset(back)
    assert again.config == classifier.backbone.config
    np.testing.assert_array_equal(
        again.weights[3].numpy(), classifier.backbone.weights[3].numpy()
    )
    assert kbert.BertTokenizer.from_preset(back)(TEXTS) == tokenizer(TEXTS)


def test_what_is_dropped_is_named(classifier, tmp_path):
    preset = tmp_path / "preset"
    classifier.save_to_preset(preset)
    arrays = safetensors.numpy.load_file(preset / "model.safetensors")
    arrays["qa_outputs.bias"] = np.zeros(2, "float32")
    (preset / "kbert.json").unlink()
    safetensors.numpy.save_file(arrays, preset / "model.safetensors")
    done = run(preset, tmp_path / "google", "--format", "google")
    assert done.exit_code == 0, done.stderr
    assert "Dropped qa_outputs.bias: of another head: no weight of a Ber" in done.stdout


def test_an_erf_gelu_is_refused_in_a_line(tmp_path):
    tiny.classifier().save_to_preset(tmp_path / "preset")
    done = run(tmp_path / "preset", tmp_path / "google", "--format", "google")
    assert done.exit_code == 2
    assert "Error: Google's code computes the tanh form of gelu" in done.stderr
    assert not (tmp_path / "google").exists()


def test_a_folder_that_exists_is_not_replaced_unasked(classifier, tmp_path):
    classifier.save_to_preset(tmp_path / "preset")
    done = run(tmp_path / "preset", tmp_path / "preset", "--format", "google")
    assert done.exit_code == 2
    assert "preset, which exists" in done.stderr


def test_to_keras_hub_and_back(classifier, tmp_path):
    preset, there, back = (tmp_path / name for name in ("preset", "hub", "back"))
    classifier.save_to_preset(preset)
    done = run(preset, there, "--format", "keras_hub")
    assert done.exit_code == 0, done.stderr
    assert "task.weights.h5" in done.stdout
    assert "standard deviation of 0.02" in done.stdout
    done = run(there, back, "--format", "huggingface")
    assert done.exit_code == 0, done.stderr
    again = kbert.BertClassifier.from_preset(back, labels=["x", "y", "z"])
    assert np.array_equal(
        again.predict(TEXTS, verbose=0), classifier.predict(TEXTS, verbose=0)
    )


def test_a_target_that_answers_otherwise_ends_with_1(classifier, tmp_path, monkeypatch):
    def wrong(target, variables, config, tokenizer, head=None):
        embeddings = variables["embeddings/token_embedding/embeddings"]
        changed = {"embeddings/token_embedding/embeddings": embeddings * 1.01}
        variables = {**variables, **changed}
        return google.write_checkpoint(target, variables, config, tokenizer)

    monkeypatch.setitem(conversion.WRITERS, "google", wrong)
    classifier.save_to_preset(tmp_path / "preset")
    done = run(tmp_path / "preset", tmp_path / "google", "--format", "google")
    assert done.exit_code == 1
    assert "sequence output: largest difference of both sides" in done.stdout


def test_the_heads_of_pre_training_travel_along(tmp_path):
    backbone = tiny.backbone(activation="gelu_tanh")
    model = kbert.BertPretrainer(backbone, tiny.preprocessor())
    random_bert.shake(model)
    preset, there, back = (tmp_path / name for name in ("preset", "google", "back"))
    model.save_to_preset(preset)
    for source, target, form in (
        (preset, there, "google"),
        (there, back, "huggingface"),
    ):
        done = run(source, target, "--format", form)
        assert done.exit_code == 0, done.stderr
        assert "of another head" not in done.stdout
    again = kbert.BertPretrainer.from_preset(back)
    ours, theirs = (saving.merged_weights(each) for each in (again, model))
    assert set(ours) == set(theirs)
    assert all(np.array_equal(ours[path], theirs[path]) for path in ours)


def test_the_head_of_squad_travels_along(tmp_path):
    model = kbert.BertQuestionAnswerer(
        tiny.backbone(activation="gelu_tanh"), tiny.preprocessor(sequence_length=16)
    )
    random_bert.shake(model)
    preset, there, back = (tmp_path / name for name in ("preset", "google", "back"))
    model.save_to_preset(preset)
    done = run(preset, there, "--format", "google")
    assert done.exit_code == 0, done.stderr
    assert "Dropped answering={'doc_stride': None" in done.stdout
    done = run(there, back, "--format", "huggingface")
    assert done.exit_code == 0, done.stderr
    done = run(preset, tmp_path / "hub", "--format", "keras_hub")
    assert done.exit_code == 2 and "no task with this head" in done.stderr
    again = kbert.BertQuestionAnswerer.from_preset(back)
    ours, theirs = (saving.merged_weights(each) for each in (again, model))
    assert set(ours) == set(theirs)
    assert all(np.array_equal(ours[path], theirs[path]) for path in ours)


def test_masked_tokens_to_keras_hub(tmp_path):
    for epsilon, code in ((1e-5, 0), (None, 2)):
        backbone = tiny.backbone(activation="gelu_tanh")
        model = kbert.BertMaskedLM(
            backbone, tiny.preprocessor(), head_activation="gelu", head_epsilon=epsilon
        )
        model.save_to_preset(tmp_path / f"preset_{code}")
        target = tmp_path / f"hub_{code}"
        done = run(tmp_path / f"preset_{code}", target, "--format", "keras_hub")
        assert done.exit_code == code, done.stderr
        told = done.stdout if code == 0 else done.stderr
        assert ("wants a pooler" if code == 0 else "otherwise") in told
