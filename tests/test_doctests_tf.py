"""The examples in the modules that need TensorFlow."""

import importlib

import pytest

from tests import house

MODULES = [name for name in house.sources() if house.needs_tensorflow(name)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    house.run_examples(importlib.import_module(name))
