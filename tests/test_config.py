import dataclasses
import json
import warnings

import pytest

from kbert.config import ACTIVATIONS, BertConfig

# Every field at a value that is not its default.
OTHER = BertConfig(
    vocabulary_size=100,
    num_layers=3,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=20,
    activation="relu",
    dropout=0.2,
    attention_dropout=0.3,
    classifier_dropout=0.4,
    max_sequence_length=64,
    num_segments=4,
    layer_norm_epsilon=1e-6,
    initializer_range=0.05,
    pad_token_id=7,
    left_to_right=True,
)


def test_the_other_config_differs_everywhere():
    default = dataclasses.asdict(BertConfig())
    assert all(value != default[key] for key, value in vars(OTHER).items())


def test_defaults_are_bert_base():
    config = BertConfig()
    assert (config.num_layers, config.num_heads, config.hidden_dim) == (12, 12, 768)
    assert (config.vocabulary_size, config.intermediate_dim) == (30522, 3072)
    assert BertConfig.from_hugging_face({}) == config


def test_dropout_of_a_head():
    assert BertConfig(dropout=0.2).head_dropout == 0.2
    assert BertConfig(dropout=0.2, classifier_dropout=0.0).head_dropout == 0.0


@pytest.mark.parametrize("classifier_dropout", [None, 0.1, 0.3])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_a_told_dropout_is_the_heads(classifier_dropout, rate):
    config = BertConfig(dropout=0.1, classifier_dropout=classifier_dropout)
    told = config.told_dropout(rate)
    again = dataclasses.replace(config, classifier_dropout=told)
    assert again.head_dropout == rate
    if rate == config.head_dropout:
        assert again == config


@pytest.mark.parametrize("config", [BertConfig(), OTHER])
def test_there_and_back_through_json(config):
    content = json.loads(json.dumps(config.to_hugging_face()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BertConfig.from_hugging_face(content) == config


@pytest.mark.parametrize(
    ("theirs", "ours"), [(t, ours) for ours, all in ACTIVATIONS.items() for t in all]
)
def test_activations(theirs, ours):
    config = BertConfig.from_hugging_face({"hidden_act": theirs})
    assert config.activation == ours
    again = BertConfig.from_hugging_face(config.to_hugging_face())
    assert again == config


def test_from_left_to_right_is_transformers_decoder():
    config = BertConfig(left_to_right=True)
    assert config.to_hugging_face()["is_decoder"] is True
    assert BertConfig.from_hugging_face({"is_decoder": True}) == config
    assert BertConfig.from_hugging_face({"is_decoder": False}) == BertConfig()
    assert "is_decoder" not in BertConfig().to_hugging_face()
    with pytest.raises(ValueError, match="is_decoder.*Received: 'yes'"):
        BertConfig.from_hugging_face({"is_decoder": "yes"})
    # Cross-attention is another decoder's.
    with pytest.raises(ValueError, match="asks for add_cross_attention=True"):
        BertConfig.from_hugging_face({"is_decoder": True, "add_cross_attention": True})


def test_the_two_gelus():
    # transformers' "gelu" is erf; Google's code computes tanh under that name.
    assert BertConfig(activation="gelu").to_hugging_face()["hidden_act"] == "gelu"
    tanh = BertConfig(activation="gelu_tanh").to_hugging_face()["hidden_act"]
    assert tanh == "gelu_new"


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "roberta"},
        {"model_type": None},
        {"position_embedding_type": "relative_key"},
        {"position_embedding_type": "relative_key_query"},
        {"is_encoder_decoder": True},
        {"add_cross_attention": True},
        {"cross_attention_hidden_size": 64},
        {"pruned_heads": {"0": [1]}},
        {"quantization_config": {"bits": 4}},
    ],
)
def test_what_changes_the_mathematics_is_refused(change):
    ((key, value),) = change.items()
    with pytest.raises(ValueError) as error:
        BertConfig.from_hugging_face({**BertConfig().to_hugging_face(), **change})
    assert f"asks for {key}={value!r}" in str(error.value)


@pytest.mark.parametrize("value", ["gelu_10", "GELU", "", ["gelu"], 1])
def test_an_unknown_activation_is_refused(value):
    with pytest.raises(ValueError, match="asks for hidden_act=") as error:
        BertConfig.from_hugging_face({"hidden_act": value})
    assert f"hidden_act={value!r}" in str(error.value)


def test_a_factorised_embedding_is_refused():
    config = {"hidden_size": 768, "embedding_size": 128}
    with pytest.raises(ValueError, match="asks for embedding_size=128"):
        BertConfig.from_hugging_face(config)
    config = {"hidden_size": 384, "embedding_size": 384}
    assert BertConfig.from_hugging_face(config).hidden_dim == 384


def test_googles_small_models_have_few_keys():
    # As in bert_config.json of google-research/bert: no architectures, no model_type.
    content = {
        "hidden_size": 128,
        "hidden_act": "gelu",
        "initializer_range": 0.02,
        "vocab_size": 30522,
        "hidden_dropout_prob": 0.1,
        "num_attention_heads": 2,
        "type_vocab_size": 2,
        "max_position_embeddings": 512,
        "num_hidden_layers": 2,
        "intermediate_size": 512,
        "attention_probs_dropout_prob": 0.1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = BertConfig.from_hugging_face(content)
    assert (config.num_layers, config.hidden_dim) == (2, 128)


def test_keys_of_a_head_and_of_the_library_are_left_alone():
    content = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "a"},
        "label2id": {"a": 0},
        "problem_type": "regression",
        "transformers_version": "4.8.2",
        "use_cache": True,
        "gradient_checkpointing": False,
        "classifier_dropout": None,
        "pad_token_id": None,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BertConfig.from_hugging_face(content) == BertConfig()


def test_an_unknown_key_is_told():
    with pytest.warns(UserWarning, match=r"ignores: \['alibi', 'rotary_dim'\]"):
        BertConfig.from_hugging_face({"rotary_dim": 4, "alibi": True})


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"hidden_dim": 30, "num_heads": 4}, "hidden_dim=30, num_heads=4"),
        ({"activation": "swish"}, "'swish'"),
        ({"dropout": 1.0}, "`dropout` must .* Received: 1.0"),
        ({"dropout": -0.1}, "Received: -0.1"),
        ({"dropout": None}, "`dropout` must .* Received: None"),
        ({"attention_dropout": float("nan")}, "`attention_dropout` .*Received: nan"),
        ({"classifier_dropout": "0.1"}, "`classifier_dropout` .*Received: '0.1'"),
        ({"dropout": False}, "`dropout` .*Received: False"),
        ({"layer_norm_epsilon": 0}, "`layer_norm_epsilon` .*Received: 0"),
        ({"initializer_range": 1.5}, "`initializer_range` .*Received: 1.5"),
        ({"pad_token_id": 30522}, "pad_token_id=30522, vocabulary_size=30522"),
        ({"pad_token_id": -1}, "pad_token_id=-1"),
        ({"pad_token_id": "0"}, "pad_token_id='0'"),
        ({"pad_token_id": True}, "pad_token_id=True"),
        ({"left_to_right": 1}, "`left_to_right` .*is_decoder.*Received: 1"),
        ({"left_to_right": None}, "`left_to_right` .*Received: None"),
    ],
)
def test_bad_values(change, received):
    with pytest.raises(ValueError, match=received):
        BertConfig(**change)


@pytest.mark.parametrize(
    "field",
    [
        "vocabulary_size",
        "num_layers",
        "num_heads",
        "hidden_dim",
        "intermediate_dim",
        "max_sequence_length",
        "num_segments",
    ],
)
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, None])
def test_sizes(field, value):
    with pytest.raises(ValueError, match=f"`{field}` .*Received: {value!r}"):
        BertConfig(**{field: value})


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("vocabulary_size", 2**24),
        ("num_layers", 256),
        ("num_heads", 1024),
        ("hidden_dim", 2**16),
        ("intermediate_dim", 2**18),
        ("max_sequence_length", 2**20),
        ("num_segments", 2**16),
    ],
)
def test_sizes_beyond_any_bert(field, most):
    sizes = {"hidden_dim": 2**16, "num_heads": 1024, field: most}
    assert getattr(BertConfig(**sizes), field) == most
    with pytest.raises(ValueError, match=f"`{field}` .*{most}. Received: {most + 1}"):
        BertConfig(**{field: most + 1})


CLASSIFIER = {"architectures": ["BertForSequenceClassification"]}


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"architectures": "x"}, "architectures a list or null. Received: 'x'"),
        ({"architectures": [{}]}, r"architectures\[0\] .*Received: {}"),
        ({**CLASSIFIER, "problem_type": 5}, "problem_type .*Received: 5"),
        ({**CLASSIFIER, "id2label": ["a"]}, r"id2label .*Received: \['a'\]"),
        ({**CLASSIFIER, "id2label": {"0": 5}}, "id2label.0 .*Received: 5"),
        ({**CLASSIFIER, "id2label": {"0": "a", "2": "b"}}, "id2label .*Received: 2,"),
        ({**CLASSIFIER, "id2label": {"0": "a", "1": "a"}}, "distinct .*Received: 2,"),
        ({**CLASSIFIER, "id2label": {"0": ""}}, "distinct .*Received: 1,"),
        (
            {**CLASSIFIER, "id2label": {str(i): f"L{i}" for i in range(10_001)}},
            "at most 10000. Received: 10001,",
        ),
    ],
)
def test_what_a_classifier_cannot_be_called(change, received):
    with pytest.raises(ValueError, match=f"config.json must have as .*{received}"):
        BertConfig.from_hugging_face(change)


def test_labels_of_other_heads_are_left_alone():
    names = {"id2label": {"0": "a", "5": "a"}, "architectures": ["BertForQA"]}
    assert BertConfig.from_hugging_face(names) == BertConfig()
    numbered = {**CLASSIFIER, "id2label": {0: "a", 1: "b"}}  # not yet through JSON
    assert BertConfig.from_hugging_face(numbered) == BertConfig()


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig().num_layers = 3
