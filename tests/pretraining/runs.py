"""A pre-training that takes seconds, and what is compared of two."""

import os
import signal

import keras

from kbert.config import BertConfig
from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining.creation import create_instances
from kbert.pretraining.curves import read_rows
from kbert.pretraining.run import CHECKPOINTS, PRESET, pretrain
from kbert.pretraining.run_settings import Phase, RunSettings
from kbert.pretraining.settings import InstanceSettings
from tests.pretraining import toy

# Parts of a batch. TensorFlow takes twice as long to make a program of several.
PARTS = 1 if keras.backend.backend() == "tensorflow" else 2
ARCHITECTURE = BertConfig(
    num_layers=1,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=12,
    max_sequence_length=24,
)


def make_instances(root):
    """Instances to learn from in two phases, and to judge by; folders by name."""
    (root / "corpus.txt").write_text(toy.text(30))
    rule = MaskingRule(most=3)
    wanted = {
        "first": {"static_masks": False},
        "second": {"seed": 1},
        "long": {"sequence_length": 24},
        "alone": {"next_sentence": "none"},
    }
    for name, changes in wanted.items():
        values = {"dupe_factor": 1, "masking": rule, "shard_tokens": 4000}
        settings = InstanceSettings(**{"sequence_length": 16, **values, **changes})
        create_instances(root / "corpus.txt", root / name, toy.tokenizer(), settings)
    return root


def settings_of(root, output, **changes):
    """Settings of a run of eight steps and of four, of one shape: a program a run."""
    phases = (
        Phase(root / "first", root / "second", share=2),
        Phase(root / "second", root / "second", share=1),
    )
    values = {
        "phases": phases,
        "steps": 12,
        "batch_size": 8,
        "accumulation": PARTS,
        "learning_rate": 1e-2,
        "log_every": 3,
        "evaluate_every": 6,
        "checkpoint_every": 4,
    }
    if "init_from" not in changes:
        values["architecture"] = ARCHITECTURE
    return RunSettings(output=output, **{**values, **changes})


def die_after(step):
    """A function for `progress` that kills its process after a step."""

    def progress(told):
        if told.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return progress


def run_and_die(settings, step):
    """Train, in a process of its own, up to a step that is not saved perhaps."""
    pretrain(settings, progress=die_after(step))


def outcome(folder):
    """Weights and curve of a run: all that must be the same."""
    curve = read_rows(folder / "curve.csv")
    for row in curve:
        del row["tokens_per_second"]
    return {
        "weights": (folder / PRESET / "model.safetensors").read_bytes(),
        "curve": curve,
        "held out": read_rows(folder / "held_out.csv"),
    }


def saved_steps(folder):
    """The batches after which there are checkpoints."""
    return [int(p.name[5:]) for p in sorted((folder / CHECKPOINTS).iterdir())]
