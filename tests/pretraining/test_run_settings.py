"""Settings of a run: the paper's by default, refused where they are wrong."""

import builtins
import pathlib
import re

import pytest

from kbert.config import BertConfig
from kbert.pretraining.run_settings import (
    Downstream,
    Phase,
    RunSettings,
    read_settings,
)

TOML = """
output = "run"
steps = 1_000
learning_rate = 1e-4
[[phases]]
instances = "short"
held_out = "/data/held_out"
[[phases]]
instances = "long"
[architecture]
num_layers = 2
num_heads = 2
hidden_dim = 128
intermediate_dim = 512
"""
YAML = """
output: run
steps: 1000
learning_rate: 1e-4
phases:
- {instances: short, held_out: /data/held_out}
- {instances: long}
architecture: {num_layers: 2, num_heads: 2, hidden_dim: 128, intermediate_dim: 512}
"""


def read(tmp_path, text, name="run.toml"):
    path = tmp_path / name
    path.write_text(text)
    return read_settings(path)


def made(**changes):
    phases = (Phase(pathlib.Path("a")), Phase(pathlib.Path("b")))
    return RunSettings(pathlib.Path("run"), **{"phases": phases, **changes})


def test_the_defaults_are_the_papers():
    settings = made()
    assert (settings.steps, settings.batch_size) == (1_000_000, 256)
    assert settings.bounds() == [900_000, 1_000_000]
    assert settings.peak == 1e-4 and settings.weight_decay == 0.01
    assert settings.warmup_share * settings.steps == 10_000
    assert not settings.bias_correction  # as Google's code
    config = BertConfig()
    assert config.dropout == config.attention_dropout == 0.1
    assert config.activation == "gelu"


def test_shares():
    assert made(phases=(Phase(pathlib.Path("a")),), steps=7).bounds() == [7]
    shared = [Phase(pathlib.Path("a"), share=share) for share in (1, 2.0, 1)]
    assert made(phases=tuple(shared), steps=8).phase_steps() == [2, 4, 2]
    assert made(steps=10).phase_steps() == [9, 1]


@pytest.mark.parametrize(
    ("text", "name"), [(TOML, "run.toml"), (YAML, "run.yaml"), (YAML, "run.yml")]
)
def test_a_file_is_read(tmp_path, text, name):
    settings = read(tmp_path, text, name)
    assert settings.output == tmp_path / "run"
    assert settings.phases == (
        Phase(tmp_path / "short", pathlib.Path("/data/held_out")),
        Phase(tmp_path / "long"),
    )
    assert settings.learning_rate == 1e-4 and settings.steps == 1000
    assert settings.architecture == BertConfig(
        num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512
    )


def test_a_preset_beside_the_file_is_found(tmp_path):
    text = TOML[: TOML.index("[architecture]")]
    assert read(tmp_path, 'init_from = "mine"' + text).init_from == "mine"
    (tmp_path / "mine").mkdir()
    found = read(tmp_path, 'init_from = "mine"' + text)
    assert found.init_from == str(tmp_path / "mine")


def test_yaml_without_its_package(tmp_path, monkeypatch):
    imported = builtins.__import__

    def without(name, *arguments):
        if name == "yaml":
            raise ImportError(name)
        return imported(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="PyYAML.*keras-kbert.pretrain"):
        read(tmp_path, YAML, "run.yaml")
    assert read(tmp_path, TOML).steps == 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output = 3", "must have .'phases'.*Received: .'output'."),
        ("steps = ", r"run.toml must hold settings. Received: Invalid value"),
        (TOML + "layers = 3", r"\[architecture\].*Received: 'layers'"),
        ("step = 5\n" + TOML, "Received: 'step'. Did you mean steps?"),
        (TOML + "vocabulary_size = 5", r"not have \['vocabulary_size'\]"),
        (TOML + "num_heads = 3", "twice|overwrite"),
        (TOML.replace("num_heads = 2", "num_heads = 3"), "num_heads=3"),
        (TOML.replace('"short"', "7"), "a path as instances. Received: 7"),
        ("phases = 3\noutput='x'", "must have phases as tables.*Received: 3"),
        ("downstream = 3\n" + TOML, "a table, .downstream.. Received: 3"),
        ("steps = 0\n" + TOML.replace("steps = 1_000", ""), "`steps`.*Received: 0"),
    ],
)
def test_a_bad_file(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


def test_no_file_of_settings(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="Received: .*nothing.toml, which is no"
    ):
        read_settings(tmp_path / "nothing.toml")
    with pytest.raises(ValueError, match="which ends in '.json'"):
        read(tmp_path, "{}", "run.json")
    with pytest.raises(ValueError, match="keys and values. Received: list"):
        read(tmp_path, "- 3", "run.yaml")
    with pytest.raises(ValueError, match="must hold settings. Received: while parsing"):
        read(tmp_path, "{ 3", "run.yaml")


BAD = [
    ({"batch_size": 0}, "`batch_size` must be an integer, from 1 to .*Received: 0."),
    ({"steps": 1.5}, "Received: 1.5."),
    ({"steps": 10**400}, "`steps` must be an integer, from 1 to"),
    ({"weight_decay": float("inf")}, "`weight_decay`.*Received: inf"),
    ({"weight_decay": float("nan")}, "`weight_decay`.*Received: nan"),
    ({"learning_rate": float("inf")}, "`learning_rate`.*Received: inf"),
    ({"accumulation": True}, "`accumulation` must be an integer.*True"),
    ({"keep_checkpoints": 0}, "`keep_checkpoints`.*Received: 0"),
    ({"checkpoint_every": "often"}, "`checkpoint_every`.*Received: 'often'"),
    ({"seed": -1}, "`seed`.*Received: -1"),
    (
        {"weight_decay": -0.5},
        "`weight_decay` must be a number at least 0. Received: -0.5",
    ),
    (
        {"warmup_share": 10_000},
        r"`warmup_share` must be a number in \[0, 1\]. Received: 10000",
    ),
    ({"learning_rate": 0}, "`learning_rate` must be a number above 0. Received: 0"),
    ({"learning_rate": "1e-4"}, "`learning_rate` must be a number.*Received: '1e-4'"),
    ({"optimizer": "sgd"}, "`optimizer` must be one of .*Received: 'sgd'"),
    ({"precision": "float16"}, "`precision`.*Received: 'float16'"),
    ({"rows": "double"}, "`rows`.*Received: 'double'"),
    ({"remat": 1}, "`remat` must be true or false. Received: 1"),
    ({"phases": ()}, r"at least one phase.*Received: phases=\(\)"),
    ({"init_from": 3}, "`init_from` must name a preset. Received: 3"),
    ({"init_from": "x", "architecture": BertConfig()}, "both, init_from='x'"),
    ({"grow_vocabulary": True}, "grow_vocabulary=True and no init_from"),
    ({"accumulation": 3}, "batch_size=256, accumulation=3"),
    ({"evaluate_every": 150}, "evaluate_every=150, log_every=100"),
    ({"steps": 1}, r"\[1, 0\] steps of 1"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_values(changes, message):
    with pytest.raises(ValueError, match=re.compile(message)):
        made(**changes)


@pytest.mark.parametrize("share", [-1, 0.0, float("inf"), 1e308])
def test_phases_have_a_share(share):
    with pytest.raises(ValueError, match=f"share.*Received: {re.escape(str(share))}"):
        Phase(pathlib.Path("a"), share=share)


@pytest.mark.parametrize(
    "change", [{"epochs": 0}, {"test_share": "a"}, {"test_share": 1.0}]
)
def test_a_task_downstream_has_numbers_that_can_be(change):
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=f"`{name}`.*Received: {value!r}"):
        Downstream(pathlib.Path("a"), "text", "label", **change)


def test_encodings_of_the_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TOML.encode())  # as Windows writes
    assert read_settings(path).output == tmp_path / "run"
    path.write_bytes(TOML.encode("utf-16"))
    with pytest.raises(ValueError, match="run.toml must hold settings.*can't decode"):
        read_settings(path)
    path.write_text(TOML.replace('output = "run"', 'output = ""'))
    with pytest.raises(ValueError, match="a path as output. Received: ''"):
        read_settings(path)
