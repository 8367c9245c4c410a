"""A Hub on loopback that holds a preset of kbert's, and an empty cache."""

import importlib
import pathlib

import keras
import numpy as np
import pytest

import kbert
from kbert.checkpoints import keras_hub
from kbert.tasks import saving
from tests import random_bert, tiny
from tests.checkpoints import foreign
from tests.hubs.hub_server import TOKEN, Hub, Repository

NAME = "kbert/tiny"
SPEC = f"hf://{NAME}"


def content_of(folder: pathlib.Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def cache_of() -> pathlib.Path:
    return pathlib.Path(
        importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE
    )


def assert_same_weights(model, other):
    for weight, expected in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(weight), keras.ops.convert_to_numpy(expected)
        )


def published(hub, files, name=NAME, **options):
    """Puts a repository of these files alone on the Hub."""
    repository = Repository(**options)
    repository.commit(files)
    hub.repositories = {name: repository}
    return repository


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A classifier as kbert saves it."""
    folder = tmp_path_factory.mktemp("saved") / "tiny"
    tiny.classifier().save_to_preset(folder)
    return folder


@pytest.fixture(scope="session")
def keras_hub_files(tmp_path_factory):
    """The files of a classifier in the format of KerasHub."""
    task = kbert.BertClassifier(
        tiny.backbone(activation="gelu_tanh"), tiny.preprocessor(), labels=tiny.LABELS
    )
    folder = tmp_path_factory.mktemp("keras_hub") / "preset"
    keras_hub.write_folder(
        folder,
        saving.merged_weights(task),
        task.backbone.config,
        task.preprocessor.tokenizer,
    )
    return content_of(folder)


@pytest.fixture(scope="session")
def saved_model_files(tmp_path_factory):
    """The files of an encoder as TensorFlow Hub had it, but for its graph."""
    backbone = tiny.backbone(activation="gelu_tanh")
    folder = tmp_path_factory.mktemp("tf_hub")
    arrays = random_bert.weights(backbone)
    heads = backbone.config.num_heads
    foreign.hub_saved_model(folder, arrays, heads, tiny.VOCABULARY)
    return content_of(folder)


@pytest.fixture(scope="session")
def server():
    with Hub.running() as hub:
        yield hub


@pytest.fixture
def hub(server, folder, tmp_path, monkeypatch):
    """The Hub, with one repository, as the environment's own."""
    constants = importlib.import_module("huggingface_hub.constants")
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.delenv("KBERT_LOCK", raising=False)
    repository = Repository()
    repository.commit({**content_of(folder), "README.md": b"# tiny\n"})
    server.repositories = {NAME: repository}
    server.asked, server.cuts, server.damaged, server.status = [], {}, {}, None
    return server


@pytest.fixture
def offline(hub, monkeypatch):
    """Makes the environment's Hub one that cannot be reached."""

    def cut():
        constants = importlib.import_module("huggingface_hub.constants")
        template = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    return cut
