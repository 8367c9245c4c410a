import sys

import pytest

import kbert
from kbert import presets
from tests.hubs.kaggle_server import Kaggle

MODEL = "kaggle://keras/bert/keras/tiny"
SPEC = f"{MODEL}/2"


@pytest.fixture(scope="module")
def server():
    with Kaggle.running() as kaggle:
        yield kaggle


@pytest.fixture
def kaggle(server, keras_hub_files, tmp_path, monkeypatch):
    """Kaggle, with two versions of one model, as the environment's own."""
    from kagglesdk import kaggle_env

    # It looks through every module for its user agent, for seconds.
    monkeypatch.setattr("kagglehub.clients.get_user_agent", lambda: "tests")
    places = {kaggle_env.KaggleEnv.LOCAL: server.url}
    monkeypatch.setattr(kaggle_env, "_env_to_endpoint", places)
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAGGLE_API_TOKEN", "of_the_tests")
    monkeypatch.delenv("KBERT_LOCK", raising=False)
    server.versions = {1: keras_hub_files, 2: {**keras_hub_files, "notes.txt": b""}}
    server.asked, server.cut, server.damaged, server.status = [], None, None, None
    return server


@pytest.fixture
def unreachable(kaggle, monkeypatch):
    from kagglesdk import kaggle_env

    places = {kaggle_env.KaggleEnv.LOCAL: "http://127.0.0.1:9"}
    return lambda: monkeypatch.setattr(kaggle_env, "_env_to_endpoint", places)


def test_a_model_loads_and_is_fetched_once(kaggle, keras_hub_files, capfd):
    tokenizer = kbert.BertTokenizer.from_preset(SPEC)
    assert tokenizer.decode(tokenizer("the film was good")) == "the film was good"
    assert "model.weights.h5" not in kaggle.asked
    classifier = kbert.BertClassifier.from_preset(SPEC)
    assert classifier.backbone.config.activation == "gelu_tanh"
    assert classifier.provenance == {"preset": SPEC, "revision": "2"}
    assert kaggle.asked.count("model.weights.h5") == 1
    assert "notes.txt" not in kaggle.asked
    kaggle.asked.clear()
    preset = presets.find_preset(SPEC)
    preset.fetch_weights()
    kbert.BertBackbone.from_preset(SPEC, load_weights=False)
    assert kaggle.asked == []
    name = "model.weights.h5"
    assert preset.path(name).read_bytes() == keras_hub_files[name]
    assert capfd.readouterr().out == ""  # where commands write answers


def test_a_saved_model(kaggle, unreachable, saved_model_files):
    kaggle.versions = {2: {**saved_model_files, "fingerprint.pb": b""}}
    with pytest.raises(FileNotFoundError, match=f"never uses the network.*{SPEC} is n"):
        kbert.BertBackbone.from_preset(SPEC, load_weights=False)
    assert kbert.BertTokenizer.from_preset(SPEC).lowercase  # which its variables say
    unreachable()
    found = kbert.inspect_preset(SPEC)
    assert (found.format, found.usable) == ("tf_hub", True)
    assert {file.name for file in found.files} == set(saved_model_files)
    assert "fingerprint.pb" not in kaggle.asked


def test_the_newest_version(kaggle, unreachable):
    assert presets.find_preset(MODEL).repository.snapshot.revision == "2"
    unreachable()
    with pytest.warns(UserWarning, match=f"reached .*{MODEL} is used as it is in"):
        assert presets.find_preset(MODEL).repository.snapshot.revision == "2"
    with pytest.raises(ConnectionError, match="reached .*'model.weights.h5' .* cache"):
        with pytest.warns(UserWarning, match="cannot be reached"):
            preset = presets.find_preset(MODEL)
        preset.fetch_weights()


def test_a_version_is_locked(kaggle, tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_LOCK", str(tmp_path / "lock.json"))
    del kaggle.versions[2]
    presets.find_preset(MODEL)
    kaggle.versions[2] = kaggle.versions[1]
    assert presets.find_preset(MODEL).repository.snapshot.revision == "1"


def test_an_interrupted_file_is_taken_up_again(kaggle, keras_hub_files):
    name = kaggle.cut = "model.weights.h5"
    preset = presets.find_preset(SPEC)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        preset.fetch_weights()
    preset.fetch_weights()
    assert preset.path(name).read_bytes() == keras_hub_files[name]
    kaggle.damaged = "task.weights.h5"
    del kaggle.versions[1]
    other = f"{MODEL}/3"
    kaggle.versions[3] = keras_hub_files
    with pytest.raises(ValueError, match=f"A file of {other} has arrived damaged"):
        presets.find_preset(other).fetch_weights()
    presets.find_preset(other).fetch_weights()


def test_refusals(kaggle, unreachable):
    with pytest.raises(FileNotFoundError, match=f"never uses the network.*{SPEC} is n"):
        kbert.BertBackbone.from_preset(SPEC, load_weights=False)
    assert kaggle.asked == []
    with pytest.raises(FileNotFoundError, match=f"{MODEL}/9 must be a BERT in the fo"):
        presets.find_preset(f"{MODEL}/9")
    for status, error, told in [
        (401, PermissionError, "set KAGGLE_API_TOKEN .*: 401"),
        (403, PermissionError, "Accept its terms at https://www.kaggle.com/models/ke"),
        (500, ConnectionError, r"Kaggle does not answer about .* \(500\)"),
    ]:
        kaggle.status = status
        with pytest.raises(error, match=told):
            presets.find_preset(SPEC)
    unreachable()
    with pytest.raises(ConnectionError, match=f"cannot be reached .*{SPEC} is not in"):
        presets.find_preset(SPEC)


def test_without_kagglehub(monkeypatch):
    monkeypatch.setitem(sys.modules, "kagglehub", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-kbert\[hub\]'"):
        presets.find_preset(SPEC)
