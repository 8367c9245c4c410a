import pytest

from kbert import presets
from kbert.hubs import selection
from kbert.stale_files import check_no_other_model, is_stale


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
    assert is_stale(selection.INDEX, {presets.WEIGHTS})
    assert is_stale("added_tokens.json", {presets.VOCABULARY})


def test_another_model_is_not_written_over(tmp_path):
    check_no_other_model(tmp_path, "A checkpoint")
    check_no_other_model(tmp_path / "new", "A checkpoint")
    (tmp_path / "config.json").write_text("{}")
    message = f"A checkpoint is not written over.*Received: '{tmp_path}', which has a"
    with pytest.raises(ValueError, match=message):
        check_no_other_model(tmp_path, "A checkpoint")
