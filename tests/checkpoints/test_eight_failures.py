"""What KerasHub's converter of transformers' folders gets wrong or cannot do, here.

The eight: the head is ignored; the head of masked words is random; no pooler; another
type_vocab_size; hidden_act and the epsilon ignored; dropout ignored; no do_lower_case;
pytorch_model.bin alone.
"""

import json

import keras
import numpy as np
import pytest
import safetensors.numpy

import kbert
from kbert import presets
from kbert.checkpoints import folder
from tests import bert_reference, random_bert, tiny

SIZES = {
    **random_bert.SIZES,
    "vocabulary_size": len(tiny.VOCABULARY),
    "num_layers": 1,
    "activation": "relu",
    "layer_norm_epsilon": 0.5,
}


@pytest.fixture(scope="module")
def original():
    backbone = random_bert.make(**SIZES)
    model = kbert.BertClassifier(
        backbone,
        tiny.preprocessor(max_sequence_length=8),
        labels=["no", "maybe", "yes"],
    )
    random_bert.shake(model)
    return model


@pytest.fixture
def preset(original, tmp_path):
    """A folder as transformers writes it, of a classifier."""
    original.save_to_preset(tmp_path)
    (tmp_path / "kbert.json").unlink()
    return tmp_path


def rewritten(preset, change):
    """Writes the weights anew, as `change` returns their arrays by name."""
    path = preset / "model.safetensors"
    arrays = {n: np.array(a) for n, a in folder.read_weights(path).items()}
    path.unlink()
    safetensors.numpy.save_file(change(arrays), path)


def arrays_of(variables):
    return {path: keras.ops.convert_to_numpy(v) for path, v in variables.items()}


def test_1_the_head_is_loaded_with_its_labels(original, preset):
    again = kbert.BertClassifier.from_preset(preset)
    assert again.labels == ("no", "maybe", "yes")
    expected = arrays_of(original.head_weights())
    for path, array in arrays_of(again.head_weights()).items():
        np.testing.assert_array_equal(array, expected[path])


def test_2_a_head_of_masked_words_is_told_and_taken_for_no_other(preset):
    def change(arrays):
        head = {"cls.predictions.bias": np.zeros(SIZES["vocabulary_size"], "float32")}
        kept = {n: a for n, a in arrays.items() if not n.startswith("classifier")}
        return {**kept, **head}

    rewritten(preset, change)
    told = (
        r"no weights for \['classifier/kernel', 'classifier/bias'\]: they stay random"
    )
    with pytest.warns(UserWarning, match=told):
        kbert.BertClassifier.from_preset(preset)
    variables = {w.path: w for w in random_bert.make(**SIZES).weights}
    report = folder.load_preset(presets.find_preset(preset), variables)
    assert report.ignored == ("cls.predictions.bias",)


def test_3_without_a_pooler_the_encoder_loads_and_the_rest_is_told(original, preset):
    rewritten(preset, lambda a: {n: v for n, v in a.items() if "pooler" not in n})
    with pytest.warns(UserWarning, match=r"no weights for \['pooler/dense/kernel'"):
        again = kbert.BertBackbone.from_preset(preset)
    expected = random_bert.weights(original.backbone)
    for path, array in random_bert.weights(again).items():
        assert np.array_equal(array, expected[path]) != path.startswith("pooler")


def test_4_and_5_three_segments_relu_and_the_epsilon_are_honoured(original, preset):
    again = kbert.BertBackbone.from_preset(preset)
    inputs = random_bert.inputs()
    assert inputs["segment_ids"].max() == 2
    states, _, pooled = bert_reference.forward(
        inputs,
        random_bert.weights(original.backbone),
        num_layers=1,
        num_heads=SIZES["num_heads"],
        activation="relu",
        epsilon=0.5,
    )
    sequence, found = random_bert.run(again, inputs)
    np.testing.assert_allclose(found, pooled, rtol=0, atol=1e-5)
    text = inputs["padding_mask"] == 1
    np.testing.assert_allclose(sequence[text], states[-1][text], rtol=0, atol=1e-5)


@pytest.mark.parametrize("key", ["hidden_act", "position_embedding_type"])
def test_5_a_mathematics_that_kbert_has_not_is_refused(preset, key):
    path = preset / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: "odd"}))
    with pytest.raises(ValueError, match=f"{key}='odd'"):
        kbert.BertBackbone.from_preset(preset)


def test_6_the_three_dropouts_are_honoured(preset):
    again = kbert.BertClassifier.from_preset(preset)
    config = again.backbone.config
    assert (config.dropout, config.attention_dropout, again.dropout) == (0.2, 0.3, 0.4)


@pytest.mark.parametrize("kept", ["vocab.txt", "tokenizer.json"])
def test_7_without_do_lower_case(original, preset, kept, recwarn):
    for name in {"vocab.txt", "tokenizer.json"} - {kept}:
        (preset / name).unlink()
    (preset / "tokenizer_config.json").write_text("{}")
    again = kbert.BertTokenizer.from_preset(preset)
    assert again.lowercase
    texts = ["The FILM was good", "a film"]
    assert again(texts) == original.preprocessor.tokenizer(texts)
    assert [str(warning.message) for warning in recwarn] == []


def test_7_a_cased_vocabulary_without_do_lower_case_is_told(tmp_path):
    cased = ["A", "We", "It", "Film"]
    (tmp_path / "vocab.txt").write_text("\n".join([*tiny.VOCABULARY, *cased]))
    with pytest.warns(UserWarning, match=r'4 pieces.*\'Film\'.*"do_lower_case": fa'):
        assert kbert.BertTokenizer.from_preset(tmp_path).lowercase
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert not kbert.BertTokenizer.from_preset(tmp_path).lowercase


def test_8_a_pickle_alone_says_what_to_do(preset):
    (preset / "model.safetensors").rename(preset / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match="is a pickle.*allow_pickle=True"):
        kbert.BertClassifier.from_preset(preset)
