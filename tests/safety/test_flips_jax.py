"""A bit that flips, or an end that is lost, in any file of a preset is refused."""

import functools
import os
import random
import shutil

import pytest

import kbert
from kbert import presets
from tests import tiny

FLIPS, TRUNCATIONS = 1000, 64
FILES = {  # and who reads them: (B)ackbone, (C)lassifier, (T)okenizer
    "config.json": "BC",
    "kbert.json": "BCT",
    "model.safetensors": "BC",
    "tokenizer.json": "CT",
    "tokenizer_config.json": "CT",
    "vocab.txt": "CT",
}
LOADERS = {
    "B": kbert.BertBackbone.from_preset,
    "C": functools.partial(kbert.BertClassifier.from_preset, labels=tiny.LABELS),
    "T": kbert.BertTokenizer.from_preset,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flips") / "model"
    words = [*tiny.VOCABULARY, *(f"word{number}" for number in range(40))]
    tokenizer = kbert.BertTokenizer(words)
    kbert.BertClassifier(
        tiny.backbone(vocabulary_size=len(words)),
        kbert.BertPreprocessor(tokenizer, max_sequence_length=32),
        labels=tiny.LABELS,
    ).save_to_preset(folder)
    assert set(os.listdir(folder)) == set(FILES)
    return folder


@pytest.fixture
def preset(saved, tmp_path):
    """An undamaged copy."""
    shutil.copytree(saved, tmp_path / "model")
    return presets.find_preset(tmp_path / "model")


def damages(content, filename):
    """Yields (what is done, the damaged content), at random but always the same."""
    rng = random.Random(filename)
    for bit in rng.sample(range(8 * len(content)), FLIPS):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit}", bytes(flipped)
    lengths = rng.sample(range(1, len(content) - 1), TRUNCATIONS - 2)
    for length in (len(content) - 1, 0, *lengths):
        yield f"cut to {length}", content[:length]


def accepted(preset, filename, load, every=1):
    """Returns the damages that `load(preset)` takes, and how many there were.

    A file keeps the age that it had: one that is newer than `kbert.json` was saved by
    another library. Each damage is a little older, as `sha256` remembers by time.
    """
    path = preset.folder / filename
    content, stamp = path.read_bytes(), path.stat().st_mtime_ns
    stamp = min(stamp, (preset.folder / "kbert.json").stat().st_mtime_ns)
    taken, count = [], 0
    for what, damaged in list(damages(content, filename))[::every]:
        count += 1
        path.write_bytes(damaged)
        os.utime(path, ns=(stamp, stamp - 1000 * count))
        try:
            load(preset)
        except ValueError as error:
            assert type(error) is ValueError, (what, error)
            assert str(preset.folder) in str(error), (what, error)
        else:
            taken.append(what)
    return taken, count


@pytest.mark.parametrize("filename", FILES)
def test_each_flip_and_truncation_is_refused(filename, preset):
    preset.verify()
    taken, count = accepted(preset, filename, lambda preset: preset.verify())
    assert taken == []
    assert count == FLIPS + TRUNCATIONS


@pytest.mark.parametrize(
    ("filename", "loader"),
    [(filename, loader) for filename in FILES for loader in FILES[filename]],
)
def test_loading_refuses_them_before_it_builds(loader, filename, preset, monkeypatch):
    LOADERS[loader](preset.folder)  # undamaged it loads
    monkeypatch.setattr(kbert.BertBackbone, "from_architecture", _no_model)
    taken, count = accepted(
        preset, filename, lambda preset: LOADERS[loader](preset.folder), every=20
    )
    assert taken == []
    assert count > 50


def _no_model(*args, **kwargs):
    raise AssertionError("a model is built of damaged files")


def test_the_checker_finds_what_is_accepted(preset):
    taken, count = accepted(preset, "vocab.txt", lambda preset: None, every=100)
    assert len(taken) == count > 0


def test_an_undamaged_copy_is_accepted(preset):
    for filename in FILES:
        path = preset.folder / filename
        path.write_bytes(path.read_bytes())
        stamp = (preset.folder / "kbert.json").stat().st_mtime_ns
        os.utime(path, ns=(stamp, stamp))
    preset.verify()


@pytest.mark.parametrize("change", [b" \n", b"\r\n", b""])
def test_blanks_in_kbert_json_count(change, preset):
    path = preset.folder / "kbert.json"
    path.write_bytes(path.read_bytes()[:-1] + change)
    with pytest.raises(ValueError, match="kbert.json has been changed .* bytes"):
        preset.verify()
