"""What `from_preset` takes, of every task and of each."""

import inspect
import warnings

import pytest

import kbert
from tests import tiny

COMMON = {"load_weights", "allow_pickle", "sequence_length", "remat", "dtype", "name"}
OWN = {
    kbert.BertClassifier: {"labels", "num_classes", "problem", "dropout", "long_text"},
    kbert.BertTokenClassifier: {"labels", "num_classes", "dropout"},
    kbert.BertMultipleChoice: {"dropout", "long_text"},
    kbert.BertMaskedLM: {"masking", "long_text"},
    kbert.BertPretrainer: {"long_text"},
    kbert.BertFeatureExtractor: {"layers", "mix", "long_text"},
    kbert.BertEmbedder: {
        *("pooling", "normalize", "special_tokens", "temperature", "symmetric"),
        "long_text",
    },
    kbert.BertQuestionAnswerer: {
        *("doc_stride", "n_best_size", "max_answer_length", "null_threshold"),
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A preset with a classifier's head."""
    path = tmp_path_factory.mktemp("presets") / "preset"
    tiny.classifier(preprocessor=tiny.preprocessor(sequence_length=9)).save_to_preset(
        path
    )
    return path


def told(task, *args, **kwargs):
    """The task, built without weights; nothing is random that should be loaded."""
    return task.from_preset(*args, load_weights=False, **kwargs)


def test_the_common_arguments():
    parameters = inspect.signature(kbert.BertClassifier.from_preset).parameters
    assert set(parameters) == {"preset", "own", *COMMON}


@pytest.mark.parametrize("task", OWN, ids=lambda task: task.__name__)
def test_each_class_takes_its_own(task, folder):
    assert set(task.preset_arguments) == OWN[task]
    for name in OWN[task] - {"num_classes"}:
        constructor = inspect.signature(task.__init__).parameters
        assert name in constructor or name == "long_text"
    others = set().union(*OWN.values()) - OWN[task]
    with pytest.raises(TypeError) as raised:
        task.from_preset(folder, **dict.fromkeys(others))
    message = str(raised.value)
    assert f"Received: {sorted(others)}" in message
    assert message.startswith(f"{task.__name__}.from_preset takes")
    for name in COMMON | OWN[task]:
        assert repr(name) in message


@pytest.mark.filterwarnings("ignore:On a CPU XLA merges")
def test_common_arguments_have_their_effect(folder):
    model = told(
        kbert.BertMultipleChoice,
        folder,
        sequence_length=7,
        long_text="head_tail",
        remat=True,
        dtype="mixed_bfloat16",
        name="named",
        dropout=0.4,
    )
    assert model.preprocessor.sequence_length == 7
    assert model.preprocessor.long_text == "head_tail"
    assert model.backbone.remat and model.name == "named" and model.dropout == 0.4
    assert model.backbone.dtype_policy.name == "mixed_bfloat16"
    assert told(kbert.BertMultipleChoice, folder).preprocessor.sequence_length == 9


def test_the_warning_of_a_new_head_names_the_line_of_the_caller(folder):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kbert.BertClassifier.from_preset(folder, labels=["a", "b", "c"])
    (of_head,) = [each for each in caught if "a new one is random" in str(each.message)]
    assert of_head.filename == __file__
    assert "['negative', 'positive']" in str(of_head.message)


@pytest.mark.parametrize(
    ("task", "own"),
    [
        (kbert.BertTokenClassifier, {"labels": ["x", "y"]}),
        (kbert.BertMultipleChoice, {}),
    ],
)
def test_a_head_with_the_dropout_of_the_encoder_leaves_the_config_as_it_was(
    task, own, tmp_path
):
    for dropout, expected in ((None, 0.1), (0.4, 0.4)):
        model = task(tiny.backbone(), tiny.preprocessor(), dropout=dropout, **own)
        model.save_to_preset(tmp_path)
        again = told(task, tmp_path)
        assert again.dropout == model.dropout == expected
        same = again.backbone.config == model.backbone.config
        assert same == (dropout is None)
