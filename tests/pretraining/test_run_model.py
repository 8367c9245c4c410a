"""Which model a run trains, and on what; all refused before any work."""

import dataclasses

import keras
import numpy as np
import pytest

import kbert
from kbert.pretraining.creation import create_instances
from kbert.pretraining.run_data import open_phases
from kbert.pretraining.run_model import build_task, optimizer_of, schedule_of
from kbert.pretraining.run_settings import Phase
from kbert.pretraining.settings import InstanceSettings
from kbert.training import AdamW, Lamb
from tests.pretraining import runs, toy
from tests.pretraining.runs import settings_of


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = runs.make_instances(tmp_path_factory.mktemp("models"))
    grown = kbert.BertTokenizer([*toy.PIECES, "new", "##er"])
    settings = InstanceSettings(sequence_length=16, dupe_factor=1, shard_tokens=4000)
    create_instances(root / "corpus.txt", root / "grown", grown, settings)
    cased = kbert.BertTokenizer(toy.PIECES, lowercase=False)
    create_instances(root / "corpus.txt", root / "cased", cased, settings)
    return root


def build(settings):
    return build_task(settings, open_phases(settings))


def phase(folder):
    return (Phase(folder),)


@pytest.fixture(scope="module")
def preset(root, tmp_path_factory):
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp("preset") / "preset"
    build(settings_of(root, root / "run")).save_to_preset(folder)
    return folder


def test_a_new_model(root):
    settings = settings_of(root, root / "run", remat=False, precision="mixed_bfloat16")
    task = build(settings)
    assert type(task) is kbert.BertPretrainer
    config = dataclasses.replace(
        runs.ARCHITECTURE, vocabulary_size=len(toy.PIECES), pad_token_id=0
    )
    assert task.backbone.config == config
    assert task.backbone.dtype_policy.name == "mixed_bfloat16"
    assert task.preprocessor.tokenizer.vocabulary == tuple(toy.PIECES)
    alone = build(settings_of(root, root / "run", phases=phase(root / "alone")))
    assert type(alone) is kbert.BertMaskedLM


def test_it_has_the_optimizer_that_is_asked_for(root):
    settings = settings_of(
        *(root, root),
        steps=1000,
        accumulation=2,
        warmup_share=0.07,
        bias_correction=True,
    )
    assert schedule_of(settings).warmup_steps == 70
    optimizer = optimizer_of(settings)
    assert type(optimizer) is AdamW and optimizer.bias_correction
    assert optimizer.gradient_accumulation_steps == 2
    settings = dataclasses.replace(
        settings, optimizer="lamb", accumulation=1, weight_decay=0.2
    )
    optimizer = optimizer_of(settings)
    assert type(optimizer) is Lamb and optimizer.rate_of_decay == 0.2
    assert optimizer.gradient_accumulation_steps is None


@pytest.mark.parametrize("steps", [3, 7, 100, 999, 123_457])
@pytest.mark.parametrize("warmup", [0.0, 0.01, 0.1, 1 / 3, 1.0])
def test_a_share_of_warmup_is_its_steps(root, steps, warmup):
    settings = settings_of(root, root, steps=steps, warmup_share=warmup)
    assert abs(schedule_of(settings).warmup_steps - steps * warmup) <= 0.5


def test_a_preset_goes_on_and_grows(root, preset, capsys):
    changes = {"init_from": str(preset), "phases": phase(root / "grown")}
    with pytest.raises(
        ValueError, match=r"2 pieces more .*Received: \['new', '##er'\]"
    ):
        build(settings_of(root, root, **changes))
    task = build(settings_of(root, root, **changes, grow_vocabulary=True))
    assert task.preprocessor.tokenizer.vocabulary[-2:] == ("new", "##er")
    before = kbert.BertPretrainer.from_preset(preset)
    rows, old = (
        keras.ops.convert_to_numpy(
            keras.ops.convert_to_tensor(
                each.backbone.embeddings.token_embedding.embeddings
            )
        )
        for each in (task, before)
    )
    assert rows.shape[0] == old.shape[0] + 2
    np.testing.assert_array_equal(rows[: len(old)], old)
    assert type(task.optimizer) is AdamW and "2 new pieces" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:The head of")
def test_what_does_not_go_together(root, preset):
    with pytest.raises(
        ValueError, match="vocabulary of .*Received: other .'lowercase'"
    ):
        build(
            settings_of(root, root, init_from=str(preset), phases=phase(root / "cased"))
        )
    shorter = dataclasses.replace(runs.ARCHITECTURE, max_sequence_length=20)
    two = (Phase(root / "first"), Phase(root / "long"))
    with pytest.raises(ValueError, match="of 24 in .*long, max_sequence_length=20"):
        build(settings_of(root, root, architecture=shorter, phases=two))
    two = (Phase(root / "first"), Phase(root / "grown"))
    with pytest.raises(
        ValueError, match="one vocabulary. Received: .*first and .*grown"
    ):
        open_phases(settings_of(root, root, phases=two))
    two = (Phase(root / "first", root / "alone"),)
    with pytest.raises(ValueError, match="next_sentence='random' in .*'none' in"):
        open_phases(settings_of(root, root, phases=two))
    with pytest.raises(FileNotFoundError, match="instances.json.*Received: .*nothing"):
        open_phases(settings_of(root, root, phases=phase(root / "nothing")))
    with pytest.raises(ValueError, match="`batch_size` must be from 1 to .*100000"):
        open_phases(settings_of(root, root, batch_size=100_000, accumulation=1))


def test_phases_know_their_batches(root):
    two = (Phase(root / "first", root / "second", 2), Phase(root / "long", share=1))
    settings = settings_of(
        root, root, steps=9, batch_size=6, accumulation=3, phases=two
    )
    first, second = open_phases(settings)
    assert (first.begin, first.end, second.begin, second.end) == (0, 18, 18, 27)
    assert first.instances.batch_size == 2 and second.sequence_length == 24
    x, _ = second.batches_from(20)[1]
    expected, _ = second.instances.at(3)
    np.testing.assert_array_equal(x["token_ids"], expected["token_ids"])
    count = first.held_out.num_instances
    assert first.held_out_steps == count // 2
    lengths = [first.instances.at(n)[0]["padding_mask"].sum() for n in range(200)]
    assert abs(np.mean(lengths) / first.tokens - 1) < 0.05
