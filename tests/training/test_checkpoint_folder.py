"""A checkpoint is whole or does not count."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import kbert
from kbert.training.checkpoint_folder import MANIFEST, CheckpointFolder

ARRAYS = {
    "weights": {"a": np.arange(6, dtype="float32").reshape(2, 3), "b": np.float32(3)},
    "random": {"state": np.array([1, 2], "uint32"), "long": np.array([-1])},
}
HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(kbert.__file__).parent


def write(folder, *steps, keep=3):
    checkpoints = CheckpointFolder(folder, keep)
    for step in steps:
        groups = {"weights": {"w": np.full(5, step, "float32")}}
        checkpoints.write(step, groups, {"at": step})
    return checkpoints


def test_arrays_come_back_as_they_were(tmp_path):
    checkpoints = CheckpointFolder(tmp_path / "new" / "folder")
    assert checkpoints.newest() is None and checkpoints.steps() == []
    written = checkpoints.write(7, ARRAYS, {"seed": [1, "x"]})
    saved = checkpoints.newest()
    assert (saved.step, saved.folder, saved.facts) == (7, written, {"seed": [1, "x"]})
    for group, arrays in ARRAYS.items():
        found = saved.arrays(group)
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            np.testing.assert_array_equal(found[name], array)
    assert saved.arrays("metrics") == {}
    assert sorted(path.name for path in written.iterdir()) == [
        MANIFEST,
        "random.safetensors",
        "weights.safetensors",
    ]


def test_the_newest_are_kept(tmp_path):
    checkpoints = write(tmp_path, 1, 2, 3, 4, keep=2)
    assert checkpoints.steps() == [3, 4]
    assert len(list(tmp_path.iterdir())) == 2
    # The training went back to 3, and what came after is of no training any more.
    checkpoints.write(3, {"weights": {"w": np.zeros(1)}}, {})
    assert checkpoints.steps() == [3]
    assert checkpoints.newest().arrays("weights")["w"].shape == (1,)


DAMAGES = {
    "a bit": lambda path: path.write_bytes(
        path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])
    ),
    "the end": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "all": lambda path: path.write_bytes(b""),
    "more": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("name", ["weights.safetensors", MANIFEST])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_one_is_passed_over_and_told(tmp_path, name, damage):
    checkpoints = write(tmp_path, 10, 20)
    path = tmp_path / "step-000000000020" / name
    DAMAGES[damage](path)
    if name == MANIFEST and damage == "gone":
        assert checkpoints.newest().step == 10  # was never complete
        return
    if name == MANIFEST and damage == "more":
        assert checkpoints.newest().step == 20  # JSON says the same
        return
    with pytest.warns(UserWarning, match="step-000000000020.*of step 10"):
        saved = checkpoints.newest()
    assert saved.facts == {"at": 10}
    np.testing.assert_array_equal(saved.arrays("weights")["w"], np.full(5, 10))
    write(tmp_path, 20)
    assert checkpoints.newest().step == 20


def test_a_manifest_that_says_something_else_is_damaged(tmp_path):
    checkpoints = write(tmp_path, 10, 20)
    path = tmp_path / "step-000000000020" / MANIFEST
    path.write_text(path.read_text().replace('"at": 20', '"at": 21'))
    with pytest.warns(UserWarning, match="its manifest must have the sha256"):
        assert checkpoints.newest().step == 10
    # One that was copied under the name of another step.
    path.write_bytes((tmp_path / "step-000000000010" / MANIFEST).read_bytes())
    with pytest.warns(UserWarning, match="be of step 20"):
        assert checkpoints.newest().step == 10


def test_where_all_are_damaged_nothing_begins_anew_in_silence(tmp_path):
    checkpoints = write(tmp_path, 10, 20)
    for path in tmp_path.rglob("*.safetensors"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"none of 2 is\..*step-000000000020"):
        checkpoints.newest()


def test_what_a_killed_process_left_is_cleared(tmp_path):
    checkpoints = write(tmp_path, 10)
    (tmp_path / ".step-000000000020.0123456789abcdef").mkdir()
    (tmp_path / "step-000000000020").mkdir()
    (tmp_path / "step-000000000020" / "weights.safetensors").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("of the user")
    assert checkpoints.newest().step == 10
    checkpoints.write(30, ARRAYS, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "notes.txt",
        "step-000000000010",
        "step-000000000030",
    ]


@pytest.mark.parametrize("keep", [0, -1, True, 2.0])
def test_one_must_be_kept(tmp_path, keep):
    with pytest.raises(ValueError, match=f"keep={keep!r}"):
        CheckpointFolder(tmp_path, keep)


# In a process of its own, with limits of its own.
FAILING = """
import pathlib, sys
sys.path.insert(0, {here!r})
import killed_writer
killed_writer.without_keras({package!r})
import numpy, os, resource
from kbert.training.checkpoint_folder import CheckpointFolder
checkpoints = CheckpointFolder({folder!r})
{limit}
try:
    checkpoints.write(20, {{"weights": {{"w": numpy.ones(100_000)}}}}, {{}})
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))", "File too large"),
        ("os.chmod({folder!r}, 0o555); os.geteuid() or os.setuid(65534)", "denied"),
    ],
)
def test_a_disk_that_takes_no_more(tmp_path, limit, told):
    write(tmp_path, 10)
    for path in (tmp_path, *tmp_path.parents[:3]):
        path.chmod(path.stat().st_mode | 0o055)  # for the user without rights
    values = {"here": str(HERE), "package": str(PACKAGE), "folder": str(tmp_path)}
    script = FAILING.format(**values, limit=limit.format(**values))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    tmp_path.chmod(0o755)
    line = done.stdout.strip()
    assert line.count("\n") == 0 and told in line
    assert f"A checkpoint of step 20 must be written into {tmp_path}" in line
    assert "The last one is of step 10" in line
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000010"]
    assert CheckpointFolder(tmp_path).newest().facts == {"at": 10}


def killed(tmp_path, calls, times, seed):
    done = subprocess.run(
        [sys.executable, HERE / "killed_writer.py", PACKAGE, tmp_path]
        + [str(number) for number in (calls, times, seed)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_kills_while_writing(tmp_path):
    told = killed(tmp_path, 12, 3, seed=0)
    assert told["killed"] == 15 and told["from"] > 3
    assert len(told["left"]) == 2  # no half of one


@pytest.mark.resume
def test_two_hundred_kills_while_writing(tmp_path):
    told = killed(tmp_path, 100, 100, seed=1)
    assert told["killed"] == 200 and told["from"] > 50
    assert len(told["left"]) == 2
