"""The SavedModel against `classify`, and what its graph is made of."""

import pathlib
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from kbert.export import saved_model
from tests import tiny
from tests.export.served import (
    LABELS,
    OUTPUTS,
    SECONDS,
    TEXTS,
    ask,
    classifier,
    expect_single_label,
    graph,
    ids,
    load,
)


def test_answers_differ(task):
    answers = task.classify(TEXTS)
    assert len({answer.label for answer in answers}) > 1
    assert np.ptp([answer.probability for answer in answers]) > 0.1


@pytest.mark.parametrize("count", [1, 7])
def test_text(task, folder, count):
    outputs = ask(folder, text=TEXTS[:count])
    expect_single_label(outputs, task.classify(TEXTS[:count]))
    assert outputs["label"].shape == (count,)
    assert outputs["probabilities"].dtype == outputs["logits"].dtype == np.float32


def test_an_answer_does_not_depend_on_its_neighbours(folder):
    together = ask(folder, text=TEXTS)["logits"]
    alone = [ask(folder, text=[text])["logits"][0] for text in TEXTS[:3]]
    np.testing.assert_allclose(together[:3], alone, atol=1e-5)


def test_no_text(folder):
    nothing = tf.constant([], tf.string)
    for outputs in (
        ask(folder, text=nothing),
        ask(folder, "pairs", first=nothing, second=nothing),
        ask(folder, "ids", **dict.fromkeys(ids(["a"]), np.zeros((0, 4), "int32"))),
    ):
        assert outputs["label"].shape == (0,)
        assert outputs["labels"].shape == outputs["probabilities"].shape == (0, 3)


def test_bytes_that_are_not_utf_8(task, folder):
    raw = [b"a good \xff film", b"\xc3", b"\xed\xa0\x80 bad", b"fil\xf0\x9f\x98m"]
    readable = [text.decode("utf-8", errors="replace") for text in raw]
    expect_single_label(ask(folder, text=raw), task.classify(readable))


def test_pairs(task, folder):
    outputs = ask(folder, "pairs", first=TEXTS, second=SECONDS)
    expect_single_label(outputs, task.classify((TEXTS, SECONDS)))


def test_pairs_of_different_number(folder):
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs a second one"):
        ask(folder, "pairs", first=["a", "b"], second=["a"])


def test_ids(task, folder):
    expect_single_label(ask(folder, "ids", **ids(TEXTS)), task.classify(TEXTS))


@pytest.mark.parametrize("problem", ["multi_label", "regression"])
def test_other_problems(problem, tmp_path):
    task = classifier(problem)
    task.export(tmp_path / "model", verbose=False)
    outputs = ask(tmp_path / "model", text=TEXTS)
    assert set(outputs) == OUTPUTS[problem]
    answers = task.classify(TEXTS)
    if problem == "regression":
        values = [answer.value for answer in answers]
        np.testing.assert_allclose(outputs["value"], values, atol=1e-5, rtol=1e-5)
        return
    expected = [[answer.probabilities[name] for name in LABELS] for answer in answers]
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    assert [
        tuple(name for name, chosen in zip(LABELS, row, strict=True) if chosen)
        for row in outputs["selected"]
    ] == [answer.labels for answer in answers]


def test_the_preprocessors_rule(tmp_path):
    task = classifier(
        preprocessor=tiny.preprocessor(sequence_length=12, long_text="head_tail")
    )
    task.export(tmp_path / "model", verbose=False)
    expect_single_label(ask(tmp_path / "model", text=TEXTS), task.classify(TEXTS))
    plain = classifier().classify(TEXTS)
    assert plain[2].probabilities != task.classify(TEXTS)[2].probabilities


def test_a_model_with_one_segment_takes_no_pairs(tmp_path):
    classifier(num_segments=1).export(tmp_path / "model", verbose=False)
    assert set(load(tmp_path / "model").signatures) == {"serving_default", "ids"}


def test_lora_is_merged(tmp_path):
    task = classifier()
    before = task.classify(TEXTS)[0].probability
    task.enable_lora(2)
    for weight in task.backbone.weights:
        if "lora" in weight.path:
            weight.assign(np.full(weight.shape, 0.1))
    task.export(tmp_path / "model", verbose=False)
    answers = task.classify(TEXTS)
    assert abs(answers[0].probability - before) > 1e-3
    expect_single_label(ask(tmp_path / "model", text=TEXTS), answers)
    stored = variables(tmp_path / "model")
    assert stored == variables_of(classifier())


def test_mixed_bfloat16(tmp_path):
    task = classifier(dtype="mixed_bfloat16")
    task.export(tmp_path / "model", verbose=False)
    outputs = ask(tmp_path / "model", text=TEXTS)
    expect_single_label(outputs, task.classify(TEXTS), tolerance=2e-2)
    assert "BFLOAT16" in str(graph(tmp_path / "model")).upper()


def variables(folder):
    """The shapes stored, sorted, without TensorFlow's own bookkeeping."""
    stored = tf.train.list_variables(str(folder / "variables" / "variables"))
    return sorted(shape for name, shape in stored if not name.startswith("_CHECK"))


def variables_of(task):
    return sorted(list(weight.shape) for weight in task.weights)


def test_variables_are_stored_once(task, folder):
    assert variables(folder) == variables_of(task)
    size = (folder / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert size < 4 * sum(np.prod(shape) for shape in variables(folder)) + 8192


def nodes(folder):
    found = graph(folder)
    yield from found.node
    for function in found.library.function:
        yield from function.node_def


# What a stock server has not, or what would need files or state beside the graph.
FOREIGN = re.compile(
    "Xla|TPU|TFText|Wordpiece|FastBert|RegexSplit|CaseFold|NormalizeUTF8|Sentencepiece|"
    "LookupTable|HashTable|PyFunc|Eager|SymbolicGradient"
)


def test_core_ops_only(folder):
    used = {node.op for node in nodes(folder)}
    assert {"MatMul", "UnicodeDecode", "Erfc"} <= used
    assert [op for op in used if FOREIGN.search(op) or ">" in op] == []


@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_no_compilation_is_asked_for(activation, tmp_path):
    task = classifier(activation=activation)
    task.compile(jit_compile=True)
    task.predict(TEXTS, verbose=0)
    task.export(tmp_path / "model", verbose=False)
    functions = graph(tmp_path / "model").library.function
    attributes = {key for function in functions for key in function.attr}
    attributes |= {key for node in nodes(tmp_path / "model") for key in node.attr}
    assert [key for key in attributes if "Xla" in key] == []
    # TensorFlow's silu brings a gradient of its own, which must then be there too.
    assert ("_gradient_op_type" in attributes) == (activation == "silu")
    registered = graph(tmp_path / "model").library.registered_gradients
    assert len(registered) == (activation == "silu")
    expect_single_label(ask(tmp_path / "model", text=TEXTS), task.classify(TEXTS))


# Written whole or not at all


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_failure_half_way_leaves_the_old_export(task, folder, tmp_path, monkeypatch):
    target = tmp_path / "model"
    shutil.copytree(folder, target)
    before = tree(target)

    def fail(module, path, *rest):
        (pathlib.Path(path) / "saved_model.pb").write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        task.export(target, verbose=False)
    assert tree(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_old_export_is_replaced_whole(task, folder, tmp_path, capsys):
    target = tmp_path / "model"
    shutil.copytree(folder, target)
    (target / "assets.extra").mkdir()
    (target / "assets.extra" / "old").write_text("of the old model")
    task.export(target)
    assert str(target) in capsys.readouterr().err
    assert sorted(path.name for path in target.iterdir()) == [
        "assets",
        "fingerprint.pb",
        "saved_model.pb",
        "variables",
    ]
    expect_single_label(ask(target, text=TEXTS), task.classify(TEXTS))


def test_signatures_are_those_of_the_documentation():
    for name in (saved_model.TEXT, saved_model.PAIRS, saved_model.IDS):
        assert f"| `{name}`" in saved_model.__doc__
    for name in set().union(*OUTPUTS.values()):
        assert f"| `{name}`" in saved_model.__doc__
