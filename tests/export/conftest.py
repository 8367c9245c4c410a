"""One exported classifier for all tests that only look at it."""

import shutil

import pytest


@pytest.fixture(scope="session")
def task():
    from tests.export import served

    return served.classifier()


@pytest.fixture(scope="session")
def folder(task, tmp_path_factory):
    """The export of `task`, moved away from where it was written."""
    written = tmp_path_factory.mktemp("export") / "written"
    task.export(written, verbose=False)
    moved = tmp_path_factory.mktemp("served") / "elsewhere"
    shutil.move(written, moved)
    return moved
