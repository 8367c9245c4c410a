"""Embedders in the folders of sentence-transformers and of KerasHub."""

import json

import numpy as np
import pytest

import kbert
from kbert.tasks import saving
from tests import random_bert, tiny

TEXTS = ["a good film", "it was awful and very dull", "film " * 40]
BERT = "sentence_transformers.models."
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": f"{BERT}Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{BERT}Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": f"{BERT}Normalize"},
]
MODES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")


def pooling(mode):
    switches = {f"pooling_mode_{each}": each == mode for each in MODES}
    return {"word_embedding_dimension": 16, **switches, "include_prompt": True}


@pytest.fixture
def folder(tmp_path):
    """A folder as sentence-transformers 2 writes it."""
    model = kbert.BertEmbedder(tiny.backbone(), tiny.preprocessor())
    random_bert.shake(model.backbone)
    place = tmp_path / "theirs"
    model.save_to_preset(place)
    (place / "kbert.json").unlink()
    write(place, "modules.json", MODULES)
    write(place, "1_Pooling/config.json", pooling("mean_tokens"))
    options = {"max_seq_length": 12, "do_lower_case": False}
    write(place, "sentence_bert_config.json", options)
    return place


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("mode", "ours"),
    [("mean_tokens", "mean"), ("cls_token", "cls"), ("max_tokens", "max")],
)
def test_a_folder_says_how_it_embeds(folder, mode, ours):
    write(folder, "1_Pooling/config.json", pooling(mode))
    model = kbert.BertEmbedder.from_preset(folder)
    assert (model.pooling, model.normalize, model.special_tokens) == (ours, True, True)
    assert model.preprocessor.max_length == 12
    assert model.preprocessor.encode(TEXTS).lengths.tolist() == [5, 8, 12]
    write(folder, "modules.json", MODULES[:2])
    assert not kbert.BertEmbedder.from_preset(folder).normalize
    longer = kbert.BertEmbedder.from_preset(folder, sequence_length=20)
    assert longer.preprocessor.max_length == 20
    longer = kbert.BertEmbedder.from_preset(folder)
    longer.save_to_preset(folder)
    longer = kbert.BertEmbedder.from_preset(folder, sequence_length=20)
    assert longer.preprocessor.max_length == 20


@pytest.mark.parametrize(("length", "expected"), [(14, 14), (10**30, 32)])
def test_newer_folders_name_the_pooling_and_leave_the_length_to_the_tokenizer(
    folder, length, expected
):
    write(folder, "1_Pooling/config.json", {"pooling_mode": "max"})
    write(folder, "sentence_bert_config.json", {"transformer_task": "features"})
    path = folder / "tokenizer_config.json"
    options = json.loads(path.read_text(encoding="utf-8"))
    write(folder, path.name, {**options, "model_max_length": length})
    model = kbert.BertEmbedder.from_preset(folder)
    assert (model.pooling, model.preprocessor.max_length) == ("max", expected)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "modules.json",
            [*MODULES, {**MODULES[2], "type": f"{BERT}Dense"}],
            r"Received: \['Transformer', 'Pooling', 'Normalize', 'Dense'\]",
        ),
        ("modules.json", MODULES[:1], r"Received: \['Transformer'\]"),
        ("modules.json", [{"type": 3}], "modules.0..type.*Received: 3"),
        ("modules.json", {}, "modules.*Received: {}"),
        (
            "modules.json",
            [MODULES[0], {**MODULES[1], "path": "../theirs"}],
            "must lie in its folder.*theirs.config.json",
        ),
        (
            "1_Pooling/config.json",
            pooling("mean_sqrt_len_tokens"),
            r"Received: \['pooling_mode_mean_sqrt_len_tokens'\]",
        ),
        (
            "1_Pooling/config.json",
            {**pooling("mean_tokens"), "pooling_mode_cls_token": True},
            "Received: .*cls_token.*mean_tokens",
        ),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "'lasttoken'"),
        (
            "config_sentence_transformers.json",
            {"prompts": {"q": "query: "}, "default_prompt_name": "q"},
            "default_prompt_name='q'",
        ),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 12, "do_lower_case": True},
            "do_lower_case=True",
        ),
        (
            "sentence_bert_config.json",
            {"max_seq_length": -1},
            "max_seq_length.*Received: -1",
        ),
    ],
)
def test_what_an_embedder_cannot_compute_is_refused(folder, name, content, message):
    write(folder, name, content)
    with pytest.raises(ValueError, match=message):
        kbert.BertEmbedder.from_preset(folder)
    assert kbert.BertBackbone.from_preset  # the encoder alone is no question of pooling


def test_a_plain_encoder_is_pooled_as_asked(tmp_path):
    tiny.classifier().save_to_preset(tmp_path)
    model = kbert.BertEmbedder.from_preset(tmp_path, pooling="cls")
    assert (model.pooling, model.normalize) == ("cls", True)


def test_another_task_leaves_no_word_on_pooling_behind(folder):
    tiny.classifier().save_to_preset(folder)
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    assert not left & {"modules.json", "sentence_bert_config.json"}
    assert not (folder / "1_Pooling" / "config.json").exists()


def test_the_builtin_minilm_says_what_its_folder_says():
    parts = saving.read_parts("all_minilm_l6_en_uncased", load_weights=False)
    assert parts.preprocessor.max_length == 512
    asked = dict.fromkeys(kbert.BertEmbedder.preset_arguments)
    arguments, _ = kbert.BertEmbedder.arguments_of(parts, asked)
    assert arguments == {"pooling": "mean", "normalize": True}
    assert parts.preprocessor.max_length == 256


@pytest.mark.parametrize("pooling_mode", ["mean", "max"])
def test_it_travels_by_way_of_keras_hub(pooling_mode, tmp_path):
    backbone = tiny.backbone(activation="gelu_tanh", initializer_range=0.02)
    model = kbert.BertEmbedder(backbone, tiny.preprocessor(), pooling=pooling_mode)
    random_bert.shake(backbone)
    model.preprocessor.max_sequence_length = 12
    places = [tmp_path / name for name in ("ours", "hub", "back")]
    model.save_to_preset(places[0])
    for source, target, format in (
        (places[0], places[1], "keras_hub"),
        (places[1], places[2], "huggingface"),
    ):
        done = kbert.convert_preset(source, target, format)
        assert done.faithful and done.kind == "BertEmbedder"
        assert set(done.outputs) == {"sequence_output", "answers"}
    assert not (places[1] / "task.weights.h5").exists()
    for place in places:
        again = kbert.BertEmbedder.from_preset(place)
        np.testing.assert_array_equal(again.embed(TEXTS), model.embed(TEXTS))
        assert (again.pooling, again.preprocessor.max_length) == (pooling_mode, 12)
    found = kbert.inspect_preset(places[1])
    assert found.loads["BertEmbedder"] is None
    assert "BertEmbedder" not in found.new_heads


def test_keras_hub_counts_special_tokens(tmp_path):
    backbone = tiny.backbone(activation="gelu_tanh", initializer_range=0.02)
    model = kbert.BertEmbedder(backbone, tiny.preprocessor(), special_tokens=False)
    model.save_to_preset(tmp_path / "ours")
    with pytest.raises(ValueError, match="special_tokens=False"):
        kbert.convert_preset(tmp_path / "ours", tmp_path / "hub", "keras_hub")
