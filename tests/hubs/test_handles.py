import pytest

from kbert import presets
from kbert.hubs import handles

FORMS = {
    "hf://google-bert/bert-base-uncased": ("google-bert/bert-base-uncased", None),
    "hf://a/b.c_d-1@v1.0": ("a/b.c_d-1", "v1.0"),
    "hf://a/b@refs/pr/1": ("a/b", "refs/pr/1"),
    "kaggle://keras/bert/keras/bert_tiny_en_uncased": (
        "keras/bert/keras/bert_tiny_en_uncased",
        None,
    ),
    "kaggle://keras/bert/keras/bert_tiny_en_uncased/3": (
        "keras/bert/keras/bert_tiny_en_uncased",
        "3",
    ),
}


@pytest.mark.parametrize("spec", FORMS)
def test_forms(spec):
    handle = handles.parse(spec)
    assert (handle.repository, handle.revision) == FORMS[spec]
    assert spec.startswith(f"{handle.hub}://")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("hf://bert-base-uncased", "written as hf://organisation/name"),
        ("hf://a/b/c", "written as hf://"),
        ("hf://a/b@", "written as hf://"),
        ("hf://a/b@../../x", "written as hf://"),
        ("hf://a/..", "written as hf://"),
        ("hf://a--b/c", "written as hf://"),
        ("hf://a/b?x=1", "written as hf://"),
        ("hf://a/b\n", "written as hf://"),
        ("kaggle://keras/bert", "written as kaggle://owner/model"),
        ("kaggle://keras/bert/keras/tiny/0", "written as kaggle://"),
        ("kaggle://keras/bert/keras/../1", "written as kaggle://"),
        ("s3://bucket/bert", "begin with hf:// or kaggle://"),
        ("https://huggingface.co/a/b", "begin with hf:// or kaggle://"),
    ],
)
def test_what_is_none(spec, told):
    with pytest.raises(ValueError, match=told) as error:
        presets.find_preset(spec)
    assert f"Received: {spec!r}" in str(error.value)


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "a/b@main", "hf://a/b", "", None, 3])
def test_what_is_no_repository(name):
    with pytest.raises(ValueError, match="'organisation/name'.*Received") as error:
        handles.check_repository(name)
    assert repr(name) in str(error.value)
