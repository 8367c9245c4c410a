"""A whole run: what it writes, and that it goes on to the same bits."""

import json
import os
import signal

import keras
import numpy as np
import pytest

import kbert
from kbert.pretraining import curves, downstream
from kbert.pretraining.recording import Recorder
from kbert.pretraining.run import pretrain
from kbert.pretraining.run_data import open_phases
from kbert.pretraining.run_settings import Downstream, Phase
from kbert.tasks.masked_lm import BertMaskedLM
from tests import tiny
from tests.pretraining import runs, toy
from tests.pretraining.runs import PARTS, outcome, saved_steps, settings_of


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return runs.make_instances(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def undisturbed(root):
    """The folder of a run that nothing stopped, what was told, and its progress."""
    told, seen = [], []
    settings = settings_of(root, root / "undisturbed", tensorboard=True)
    assert pretrain(settings, tell=told.append, progress=seen.append) is None
    return settings.output, told, seen


class Stopped(KeyboardInterrupt):
    """Comes out of the middle of a step, as nothing that is handled does."""


def crash_after(step):
    def progress(told):
        if told.step == step:
            raise Stopped

    return progress


def signal_within(step, number):
    """Sends a signal in the last batch before the one that completes a step."""
    batches = []

    def progress(told):
        batches.append(told.step)
        if batches.count(step - 1) == PARTS:
            batches.clear()
            os.kill(os.getpid(), number)

    return progress


def test_what_a_run_writes(undisturbed):
    folder, told, seen = undisturbed
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["checkpoints", "curve.csv", "curves.png", "held_out.csv", "preset"]
        + ["tensorboard"]
    )
    assert (folder / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert saved_steps(folder) == [6 * PARTS, 8 * PARTS, 12 * PARTS]
    rows = curves.read_rows(folder / "curve.csv")
    assert [row["step"] for row in rows] == [3, 6, 8, 9, 12]
    assert {row["sequence_length"] for row in rows} == {16}
    # 1 % of 12 steps is no whole one: the decay begins at once.
    expected = [1e-2 * (1 - (row["step"] - 1) / 12) for row in rows]
    rates = [row["learning_rate"] for row in rows]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert {3 < row["mlm_loss"] < 6 for row in rows} == {True}
    assert {0 <= row["nsp_accuracy"] <= 1 for row in rows} == {True}
    judged = curves.read_rows(folder / "held_out.csv")
    assert [row["step"] for row in judged] == [0, 6, 12]
    assert judged[-1]["mlm_loss"] < judged[0]["mlm_loss"]
    assert any("Phase 2 is judged by " in line for line in told)
    before, after = judged[0]["mlm_loss"], judged[-1]["mlm_loss"]
    assert f"Held out, mlm_loss: {before:.4f} before, {after:.4f} after." in told
    assert told[-1] == f"Wrote {folder / 'preset'}."
    assert [progress.step for progress in seen[PARTS - 1 :: PARTS]] == list(
        range(1, 13)
    )
    assert {progress.sequence_length for progress in seen} == {16}
    assert seen[-1].seconds_left == 0 < seen[0].tokens_per_second
    assert {"loss", "mlm_accuracy", "nsp_accuracy"} <= set(seen[0].scores)
    assert any("tfevents" in path.name for path in folder.rglob("tensorboard/*"))


def test_the_preset_is_what_was_learnt(undisturbed):
    folder, _, _ = undisturbed
    pretrainer = kbert.BertPretrainer.from_preset(folder / "preset")
    known = pretrainer.preprocessor.tokenizer.vocabulary
    assert known == toy.tokenizer().vocabulary
    assert pretrainer.backbone.config.max_sequence_length == 24
    filled = kbert.BertMaskedLM.from_preset(folder / "preset").fill("ba [MASK] bo")
    assert len(filled) == 1


def test_a_complete_run_is_not_done_again(undisturbed, root):
    folder, _, _ = undisturbed
    before, told = outcome(folder), []
    settings = settings_of(root, folder, checkpoint_every=5, log_every=1)
    assert pretrain(settings, tell=told.append) is None
    assert told[0] == "All 12 steps were done before."
    assert outcome(folder) == before


def test_stopped_twice_it_ends_with_the_same_bits(undisturbed, root, tmp_path):
    settings, told = settings_of(root, tmp_path / "run"), []
    with pytest.raises(Stopped):  # behind a checkpoint
        pretrain(settings, progress=crash_after(5))
    assert saved_steps(settings.output) == [4 * PARTS]
    number = signal.SIGTERM  # amid a point's three steps, and amid a step of two parts
    stopped = pretrain(settings, progress=signal_within(8, number), tell=told.append)
    assert stopped == number
    assert told[-1].startswith(f"Stopped by signal {int(number)} and saved after step")
    assert saved_steps(settings.output)[-1] == 8 * PARTS - 1
    assert pretrain(settings, tell=told.append) is None
    assert "Goes on after step 7." in told
    assert outcome(settings.output) == outcome(undisturbed[0])


def test_other_settings_are_refused(undisturbed, root, tmp_path):
    folder, _, _ = undisturbed
    settings = settings_of(root, folder, batch_size=16, seed=1)
    with pytest.raises(ValueError, match="batch_size: 8 became 16; seed: 12345 became"):
        pretrain(settings)
    (tmp_path / "preset").mkdir()
    with pytest.raises(ValueError, match=f"Received: {tmp_path}, which holds preset"):
        pretrain(settings_of(root, tmp_path))


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_run(root, tmp_path, loss):
    settings = settings_of(root, tmp_path, learning_rate=1e30)
    curve = curves.CurveTable(tmp_path / "curve.csv", 0)
    recorder = Recorder(settings, open_phases(settings), curve, None, None)
    recorder.on_train_begin()
    with pytest.raises(ValueError, match=rf"Received: {loss} at step 2, .*1e\+30"):
        recorder.on_train_batch_end(2 * PARTS - 1, {"loss": loss})


@pytest.mark.filterwarnings("ignore:.*has no weights for", "ignore:On a CPU XLA")
def test_a_masked_lm_goes_on_from_a_preset(root, undisturbed, tmp_path, monkeypatch):
    scored = []

    def score(task, preset, seed):
        scored.append((task.text, str(preset)))
        return len(scored) / 8

    monkeypatch.setattr(downstream, "score", score)
    start = str(undisturbed[0] / "preset")
    settings = settings_of(
        root,
        tmp_path / "run",
        init_from=start,
        phases=(Phase(root / "alone", root / "alone"),),
        accumulation=1,
        steps=4,
        log_every=2,
        evaluate_every=2,
        learning_rate=None,
        rows="packed",
        precision="mixed_bfloat16",
        remat=True,
        downstream=Downstream(tmp_path / "table.csv", "text", "label"),
    )
    assert settings.peak == 2e-5
    told = []
    assert pretrain(settings, tell=told.append) is None
    assert scored == [("text", start), ("text", str(tmp_path / "run" / "preset"))]
    scores = json.loads((tmp_path / "run" / "downstream.json").read_text())
    assert scores == {"before": 0.125, "after": 0.25}
    assert "table.csv, before: accuracy 0.1250." in told
    assert "table.csv, after: accuracy 0.2500." in told
    judged = curves.read_rows(tmp_path / "run" / "held_out.csv")
    assert [row["step"] for row in judged] == [0, 2, 4]
    assert set(judged[0]) == {"step", "sequence_length", "loss", "accuracy"}
    assert abs(judged[-1]["loss"] - judged[0]["loss"]) < 0.05
    after = BertMaskedLM.from_preset(tmp_path / "run" / "preset")
    assert after.backbone.config.hidden_dim == 8


@pytest.mark.filterwarnings("ignore:.*has no weights for")
def test_a_preset_is_scored_by_what_it_learns_of_a_task(tmp_path):
    texts, labels = tiny.sentiment(60)
    table = tmp_path / "table.csv"
    rows = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
    table.write_text("\n".join(["text,label", *rows]))
    keras.utils.set_random_seed(0)
    tiny.classifier(labels=["x", "y", "z"]).save_to_preset(tmp_path / "preset")
    task = Downstream(table, "text", "label", epochs=40, learning_rate=1e-2)
    with pytest.warns(UserWarning, match="a new one is random"):
        assert downstream.score(task, tmp_path / "preset", seed=0) > 0.8
