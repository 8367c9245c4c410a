"""The examples in kbert's docstrings say what happens, on every backend."""

import doctest
import importlib

import pytest

from tests import house

MODULES = [name for name in house.sources() if not house.needs_tensorflow(name)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    house.run_examples(importlib.import_module(name))


def test_wrong_example_is_found():
    module = type(doctest)("planted")
    module.__doc__ = ">>> 1 + 1\n3\n"
    with pytest.raises(AssertionError, match="(?s)Expected:.*3.*Got:.*2"):
        house.run_examples(module)
