import hashlib
import json

import pytest

from kbert import presets
from kbert.hubs import lock
from tests.hubs.conftest import NAME, SPEC, content_of


@pytest.fixture
def lock_file(hub, tmp_path, monkeypatch):
    path = tmp_path / "kbert.lock.json"
    monkeypatch.setenv("KBERT_LOCK", str(path))
    return path


def test_nothing_is_written_unasked(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    presets.find_preset(SPEC).fetch_weights()
    assert not [p for p in tmp_path.iterdir() if p.name.endswith("json")]


def test_what_is_locked(hub, lock_file, folder):
    presets.find_preset(SPEC)
    assert "model.safetensors" not in lock_file.read_text()
    presets.find_preset(SPEC).fetch_weights()
    content = json.loads(lock_file.read_text())
    assert content["version"] == 1
    entry = content["presets"][SPEC]
    assert entry["revision"] == hub.repositories[NAME].branches["main"]
    assert entry["files"] == {
        name: hashlib.sha256(data).hexdigest()
        for name, data in content_of(folder).items()
    }


def test_a_handle_keeps_its_meaning(hub, lock_file, folder):
    first = presets.find_preset(SPEC).repository.snapshot.revision
    repository = hub.repositories[NAME]
    second = repository.commit({**content_of(folder), "added_tokens.json": b"{}"})
    assert presets.find_preset(SPEC).repository.snapshot.revision == first
    assert presets.find_preset(f"{SPEC}@main").repository.snapshot.revision == second
    lock_file.unlink()
    assert presets.find_preset(SPEC).repository.snapshot.revision == second


def test_another_content_is_refused(hub, lock_file):
    presets.find_preset(SPEC)
    content = json.loads(lock_file.read_text())
    content["presets"][SPEC]["files"]["vocab.txt"] = "0" * 64
    lock_file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"'vocab.txt' of {SPEC} is not the file") as e:
        presets.find_preset(SPEC)
    assert f"must be {'0' * 64}. Received: " in str(e.value)
    assert str(lock_file) in str(e.value)


def test_a_locked_revision_that_is_gone(hub, lock_file, folder, tmp_path):
    presets.find_preset(SPEC)
    repository = hub.repositories[NAME]
    del repository.commits[repository.branches["main"]]
    repository.commit({**content_of(folder), "added_tokens.json": b"{}"})
    with pytest.raises(FileNotFoundError, match="branch, tag or commit"):
        presets.find_preset(SPEC)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "must hold JSON"),
        (
            '{"version": 2, "presets": {}}',
            "must have as version an integer from 1",
        ),
        ('{"version": 1}', "the keys"),
        ('{"version": 1, "presets": {"x": {"revision": 1, "files": {}}}}', "revision"),
    ],
)
def test_a_lock_file_that_is_none(hub, lock_file, content, told):
    lock_file.write_text(content)
    with pytest.raises(ValueError, match=told) as error:
        presets.find_preset(SPEC)
    assert str(lock_file) in str(error.value)


def test_a_locked_revision_that_is_none(hub, lock_file):
    entry = {"revision": "../../x", "files": {}}
    lock_file.write_text(json.dumps({"version": 1, "presets": {SPEC: entry}}))
    with pytest.raises(ValueError, match="locked to a revision. Received: '../../x'"):
        presets.find_preset(SPEC)
    assert hub.asked == []


def test_entries_are_kept_beside_each_other(lock_file, tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    lock.check("hf://b/b", "2", {"a": tmp_path / "a"})
    lock.check("hf://a/a", "1", {"a": tmp_path / "a"})
    lock.check("hf://b/b", "2", {"b": tmp_path / "a"})
    entries = json.loads(lock_file.read_text())["presets"]
    assert list(entries) == ["hf://a/a", "hf://b/b"]
    assert sorted(entries["hf://b/b"]["files"]) == ["a", "b"]
    assert [p.name for p in tmp_path.glob(".kbert*")] == []
