"""Four devices, and two processes, train what one device trains."""

import os

import keras
import pytest

from tests.pretraining import toy
from tests.tasks import replicas

PROGRAM = "tests.tasks.replicas_jax"


@pytest.fixture(scope="module")
def instances(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicas")
    (folder / "corpus.txt").write_text(toy.text(20))
    toy.create(folder / "corpus.txt", folder / "instances")
    return folder / "instances"


def test_four_devices(instances, tmp_path):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4"
    (found,) = replicas.in_children(PROGRAM, 1, instances, tmp_path, XLA_FLAGS=flags)
    told = {
        name: str(found.pop(name)) for name in list(found) if name.startswith("told/")
    }
    expected = replicas.train(instances)
    expected |= replicas.classify()
    replicas.check_equal(found, expected)
    assert "multiple of the number of replicas" in told["told/batch"]
    assert "Received: 6, for 4 replicas" in told["told/batch"]
    assert "Received: several instances a row, for 4" in told["told/packed"]
    assert (
        "number of texts" in told["told/texts"] and "Received: 30" in told["told/texts"]
    )
    assert "Received: arrays" in told["told/arrays"]


def test_two_processes(instances, tmp_path):
    found = replicas.in_children(PROGRAM, 2, instances, tmp_path, PROCESSES="2")
    expected = replicas.train(instances)
    for one in found:
        replicas.check_equal(one, expected)


def test_nothing_is_divided_here():
    assert keras.distribution.distribution() is None
