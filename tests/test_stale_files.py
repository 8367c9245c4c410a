import pytest

from kbert import presets
from kbert.stale_files import is_stale


@pytest.mark.parametrize(
    ("filename", "written", "stale"),
    [
        ("pytorch_model.bin", {"model.safetensors"}, True),
        ("bert_model.ckpt.index", {"model.safetensors"}, True),
        ("model.safetensors.index.json", {"model.safetensors", "vocab.txt"}, True),
        ("tokenizer.json", {"vocab.txt"}, True),
        ("tokenizer.json", {"model.safetensors"}, False),
        ("README.md", {"model.safetensors", "vocab.txt"}, False),
    ],
)
def test_is_stale(filename, written, stale):
    assert is_stale(filename, written) is stale


def test_the_names_are_those_of_presets():
    assert is_stale(presets.WEIGHTS_INDEX, {presets.WEIGHTS})
    assert is_stale("added_tokens.json", {presets.VOCABULARY})
