import importlib
import json
import shutil
import warnings

import pytest

import kbert
from kbert import presets
from tests.hubs.conftest import (
    NAME,
    SPEC,
    assert_same_weights,
    cache_of,
    content_of,
    published,
)

TEXTS = {"config.json", "kbert.json", "vocab.txt", "tokenizer_config.json"}
TEXTS |= {"tokenizer.json"}


def test_every_class_loads_from_a_handle(hub, folder):
    tokenizer = kbert.BertTokenizer.from_preset(SPEC)
    assert tokenizer.decode(tokenizer("the film was good")) == "the film was good"
    assert kbert.BertPreprocessor.from_preset(SPEC).max_sequence_length == 32
    assert set(hub.fetched()) == TEXTS  # neither weights nor a README.md
    classifier = kbert.BertClassifier.from_preset(SPEC)
    expected = kbert.BertClassifier.from_preset(folder)
    assert_same_weights(classifier, expected)
    assert classifier.labels == ("negative", "positive")
    kbert.BertBackbone.from_preset(SPEC)
    assert sorted(hub.fetched()) == sorted([*TEXTS, "model.safetensors"])  # each once


def test_a_cached_preset_is_asked_about_and_not_fetched(hub):
    presets.find_preset(SPEC).fetch_weights()
    hub.asked.clear()
    presets.find_preset(SPEC).fetch_weights()
    assert [method for method, path in hub.asked if "/cdn/" in path] == []
    assert [path for method, path in hub.asked if method == "GET"] == [
        f"/api/models/{NAME}"
    ]


def test_offline_what_is_cached_is_used_and_told(hub, offline, monkeypatch):
    presets.find_preset(SPEC).fetch_weights()
    offline()
    with pytest.warns(UserWarning, match="cannot be reached .* used as it is in the c"):
        preset = presets.find_preset(SPEC)
    preset.fetch_weights()
    assert preset.has("model.safetensors")
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was asked for
        presets.find_preset(SPEC).verify()


def test_offline_what_is_not_cached_is_told(hub, offline, monkeypatch):
    presets.find_preset(SPEC)
    offline()
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="HF_HUB_OFFLINE .*'model.safetensors'"):
        presets.find_preset(SPEC).fetch_weights()
    with pytest.raises(ConnectionError, match="HF_HUB_OFFLINE .* hf://a/b is not in"):
        presets.find_preset("hf://a/b")


def test_a_file_that_another_library_left_out_is_not_taken_for_absent(hub, offline):
    import huggingface_hub

    huggingface_hub.hf_hub_download(NAME, "config.json")
    huggingface_hub.hf_hub_download(NAME, "vocab.txt")
    offline()
    with (
        pytest.warns(UserWarning, match="cannot be reached"),
        pytest.raises(ConnectionError, match="'bert_config.json' of .* not in the c"),
    ):
        presets.find_preset(SPEC)


def test_without_weights_the_network_is_never_used(hub):
    with pytest.raises(FileNotFoundError, match=f"never uses the network.*'{SPEC}'"):
        kbert.BertBackbone.from_preset(SPEC, load_weights=False)
    assert hub.asked == []
    kbert.BertTokenizer.from_preset(SPEC)
    hub.asked.clear()
    backbone = kbert.BertBackbone.from_preset(SPEC, load_weights=False)
    assert backbone.config.hidden_dim == 16
    assert kbert.BertClassifier.from_preset(SPEC, load_weights=False).labels
    assert hub.asked == []


def test_revisions(hub, folder):
    repository = hub.repositories[NAME]
    first = repository.branches["main"]
    files = content_of(folder)
    second = repository.commit({**files, "added_tokens.json": b"{}"}, branch="next")
    for revision, commit in [
        ("main", first),
        ("next", second),
        (first, first),
        (second, second),
    ]:
        preset = presets.find_preset(f"{SPEC}@{revision}")
        assert preset.repository.snapshot.revision == commit
        assert preset.has("added_tokens.json") is (commit == second)
    repository.branches["main"] = second
    assert presets.find_preset(SPEC).repository.snapshot.revision == second


def test_a_branch_that_moves_in_between(hub, folder, monkeypatch):
    from kbert.hubs import hugging_face

    repository, ask = hub.repositories[NAME], hugging_face._ask

    def ask_and_move(handle, revision):
        answer = ask(handle, revision)
        if len(repository.commits) == 1:
            repository.commit({**content_of(folder), "added_tokens.json": b"{}"})
        return answer

    monkeypatch.setattr(hugging_face, "_ask", ask_and_move)
    preset = presets.find_preset(SPEC)
    assert preset.repository.snapshot.revision == repository.branches["main"]
    assert "added_tokens.json" in preset.repository.snapshot.sizes
    assert preset.has("added_tokens.json")


# --- refusals ----------------------------------------------------------------------


def test_a_repository_that_does_not_exist(hub):
    with pytest.raises(FileNotFoundError, match="Received: http.*/kbert/none. Check"):
        presets.find_preset("hf://kbert/none")


def test_a_private_repository(hub, monkeypatch):
    hub.repositories[NAME].access = "private"
    presets.find_preset(SPEC)
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(FileNotFoundError, match="if it is private, log in with `hf au"):
        presets.find_preset(SPEC)


def test_a_gated_repository(hub):
    hub.repositories[NAME].access = "gated"
    with pytest.raises(PermissionError, match=f"Ask for it at http.*/{NAME}, then log"):
        presets.find_preset(SPEC)


@pytest.mark.parametrize("status", [401, 403, 418, 500])
def test_other_answers(hub, status):
    hub.status = status
    errors = {401: PermissionError, 403: PermissionError, 418: OSError}
    with pytest.raises(errors.get(status, ConnectionError), match=str(status)):
        presets.find_preset(SPEC)


def test_an_unknown_revision(hub):
    with pytest.raises(FileNotFoundError, match="branch, tag or commit .* 'v9' of hf"):
        presets.find_preset(f"{SPEC}@v9")


def test_no_network(hub, offline):
    offline()
    with pytest.raises(ConnectionError, match=f"cannot be reached .*{SPEC} is not in"):
        presets.find_preset(SPEC)


def test_what_is_no_model(hub):
    published(hub, {"README.md": b"", "data.csv": b"a,b"})
    with pytest.raises(ValueError, match=r"config.json.*Received: \['README.md', 'd"):
        presets.find_preset(SPEC)


def test_another_model_is_refused_before_its_weights_are_fetched(hub, folder):
    files = content_of(folder)
    config = {**json.loads(files["config.json"]), "model_type": "roberta"}
    del files["kbert.json"]
    published(hub, {**files, "config.json": json.dumps(config).encode()})
    with pytest.raises(ValueError, match="model_type.*'roberta'"):
        kbert.BertBackbone.from_preset(SPEC)
    assert "model.safetensors" not in hub.fetched()


def test_pickles_are_told_and_not_fetched(hub, folder):
    files = {**content_of(folder), "pytorch_model.bin": b"a program"}
    del files["model.safetensors"], files["kbert.json"]
    published(hub, files)
    told = f"{SPEC}' must have the file 'model.safetensors'.*is a pickle.*allow_pickle"
    with pytest.raises(FileNotFoundError, match=told):
        kbert.BertBackbone.from_preset(SPEC)
    assert "pytorch_model.bin" not in hub.fetched()
    preset = presets.find_preset(SPEC, allow_pickle=True)
    assert preset.weights_path().read_bytes() == b"a program"


def test_a_file_that_is_too_large_is_not_fetched(hub, monkeypatch):
    from kbert.hubs import selection

    monkeypatch.setattr(selection, "MOST_BYTES_OF_WEIGHTS", 1000)
    with pytest.raises(ValueError, match="takes at most 1000 bytes. Received: "):
        presets.find_preset(SPEC).fetch_weights()
    monkeypatch.setattr(selection, "MOST_BYTES_OF_TEXT", 30)
    with pytest.raises(ValueError, match="'config.json' takes at most 30 bytes"):
        presets.find_preset(SPEC)
    assert "model.safetensors" not in hub.fetched()


# --- what goes wrong on the way ----------------------------------------------------


@pytest.fixture
def no_waiting(monkeypatch):
    module = importlib.import_module("huggingface_hub.file_download")
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


def test_a_connection_that_breaks_is_taken_up_again(hub, no_waiting):
    hub.cuts["model.safetensors"] = 2
    preset = presets.find_preset(SPEC)
    preset.fetch_weights()
    preset.verify()
    assert hub.fetched().count("model.safetensors") == 3


def test_what_never_arrives_whole_leaves_nothing(hub, no_waiting):
    hub.cuts["model.safetensors"] = 1000
    preset = presets.find_preset(SPEC)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        preset.fetch_weights()
    assert not preset.has("model.safetensors")
    whole = {path.stat().st_size for path in cache_of().rglob("*") if path.is_file()}
    hub.cuts.clear()
    preset.fetch_weights()
    preset.verify()
    assert preset.path("model.safetensors").stat().st_size not in whole


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
def test_a_damaged_file_is_refused_and_removed(hub, name):
    content = next(iter(hub.repositories[NAME].commits.values()))[name]
    hub.damaged[name] = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(
        ValueError, match=f"'{name}' of {SPEC} has arrived damaged"
    ) as e:
        presets.find_preset(SPEC).fetch_weights()
    assert "hash must be" in str(e.value) and "Received: " in str(e.value)
    hub.damaged.clear()
    presets.find_preset(SPEC).fetch_weights()


def test_a_file_that_is_damaged_in_the_cache(hub):
    preset = presets.find_preset(SPEC)
    preset.fetch_weights()
    path = preset.path("model.safetensors").resolve()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="was damaged in the cache"):
        presets.find_preset(SPEC).fetch_weights()
    presets.find_preset(SPEC).fetch_weights()


def test_files_that_the_cache_shares_among_repositories(hub):
    # As huggingface_hub stores what came from Xet: blobs/<hash> leads to a second one.
    preset = presets.find_preset(SPEC)
    preset.fetch_weights()
    blob = preset.path("model.safetensors").resolve()
    shared = cache_of() / "blobs" / "ab" / ("ab" * 32)
    shared.parent.mkdir(parents=True)
    shutil.move(blob, shared)
    blob.symlink_to(shared)
    again = presets.find_preset(SPEC)
    again.fetch_weights()
    assert again.path("model.safetensors").resolve() == shared
    again.verify()
