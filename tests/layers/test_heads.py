import keras
import numpy as np
import pytest
from keras import ops

from kbert.config import ACTIVATIONS
from kbert.layers import BertPooler, ChoiceLogits, MaskedLMHead, SpanHead
from kbert.layers.heads import RULED_OUT
from tests import bert_reference
from tests.layer_checks import check_config, check_layer, check_policy

KWARGS = {"hidden_dim": 6, "initializer_range": 0.5}
X = np.random.RandomState(0).normal(size=(2, 4, 6)).astype("float32")
FIRST = np.array([0, 2, 4], "int32")  # two texts in row 0, one in row 1


def test_layer_with_one_text_a_row():
    output = check_layer(BertPooler, KWARGS, (X,), (2, 6))
    assert np.abs(output).max() < 1


def test_layer_with_several_texts_a_row():
    check_layer(BertPooler, KWARGS, (X, FIRST), (3, 6))


def test_equals_numpy():
    layer = BertPooler(6)
    pooled = ops.convert_to_numpy(layer(X, FIRST))
    kernel, bias = (v.numpy() for v in layer.weights)
    first = np.stack([X[0, 0], X[0, 2], X[1, 0]])
    np.testing.assert_allclose(pooled, np.tanh(first @ kernel + bias), atol=1e-6)
    plain = ops.convert_to_numpy(layer(X))
    np.testing.assert_allclose(plain, pooled[[0, 2]], atol=1e-7)


def test_choices_lie_beside_each_other():
    logits = np.arange(6, dtype="float32").reshape(6, 1)
    mask = np.array([[1, 1, 1], [1, 1, 0]], "int32")
    check_config(ChoiceLogits, {})  # no weight that a step could move
    check_policy(ChoiceLogits, {}, (logits, mask), (2, 3), "float32")
    output = ops.convert_to_numpy(ChoiceLogits()(logits, mask))
    np.testing.assert_array_equal(output, [[0, 1, 2], [3, 4, RULED_OUT]])
    assert ChoiceLogits()(logits).shape == (6, 1)


SEGMENTS = np.array([[0, 0, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1]], "int32")
MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]], "int32")
ANSWERABLE = np.array([[1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]], bool)
STATES = np.random.RandomState(1).normal(size=(2, 6, 4)).astype("float32")


def test_span_head():
    check_layer(
        SpanHead,
        {"initializer_range": 0.5},
        (STATES, SEGMENTS, MASK),
        (2, 2, 6),
        last_is_known=False,
    )


def test_span_head_equals_numpy():
    layer = SpanHead(0.5)
    masked = ops.convert_to_numpy(layer(STATES, SEGMENTS, MASK))
    kernel, bias = (v.numpy() for v in layer.weights)
    expected = (STATES @ kernel + bias).transpose(0, 2, 1)
    np.testing.assert_allclose(
        masked, np.where(ANSWERABLE[:, None], expected, RULED_OUT), atol=1e-6
    )
    trained = ops.convert_to_numpy(layer(STATES, SEGMENTS, MASK, training=True))
    np.testing.assert_allclose(
        trained, np.where(MASK[:, None] > 0, expected, RULED_OUT), atol=1e-6
    )


def test_span_head_without_a_second_text():
    layer = SpanHead()
    logits = ops.convert_to_numpy(layer(STATES, np.zeros_like(SEGMENTS), MASK))
    assert (logits[:, :, 1:] == RULED_OUT).all() and (logits[:, :, 0] > RULED_OUT).all()


# --- masked tokens -------------------------------------------------------------------

POSITIONS = np.array([7, 0, 2, 2], "int32")  # of the rows laid end to end


def embedding():
    layer = keras.layers.Embedding(5, 6, embeddings_initializer="random_normal")
    layer.build((None, None))
    return layer


def masked_head(**changes):
    kwargs = {
        "token_embedding": embedding(),
        "activation": "tanh",
        "layer_norm_epsilon": 1e-3,
        "initializer_range": 0.5,
    }
    return {**kwargs, **changes}


def test_masked_head():
    check_layer(MaskedLMHead, masked_head(), (X, POSITIONS), (4, 5))


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("epsilon", [1e-12, 0.1])
def test_masked_head_equals_numpy(activation, epsilon):
    kwargs = masked_head(activation=activation, layer_norm_epsilon=epsilon)
    layer = MaskedLMHead(**kwargs, name="mlm")
    layer.build(X.shape)
    random = np.random.RandomState(3)
    for variable in layer.weights:
        variable.assign(random.normal(size=variable.shape))
    weights = {v.path: ops.convert_to_numpy(v) for v in layer.weights}
    table = ops.convert_to_numpy(kwargs["token_embedding"].embeddings)
    weights["embeddings/token_embedding/embeddings"] = table
    expected = bert_reference.masked_logits(
        X, POSITIONS, weights, activation=activation, epsilon=epsilon
    )
    output = ops.convert_to_numpy(layer(X, POSITIONS))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_the_decoder_stays_tied_in_a_file(tmp_path):
    table = embedding()
    ids = keras.Input((None,), dtype="int32")
    positions = keras.Input((), dtype="int32")
    logits = MaskedLMHead(table, name="mlm")(table(ids), positions)
    keras.Model([ids, positions], logits).save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    tables = [w for w in again.weights if tuple(w.shape) == (5, 6)]
    assert len(tables) == 1 and len(again.weights) == 1 + 5
    inputs = [np.array([[1, 2]], "int32"), np.array([1], "int32")]
    before = ops.convert_to_numpy(again(inputs))
    tables[0].assign(tables[0] * 2.0)
    again.get_layer("mlm").norm.beta.assign(np.ones(6))
    assert not np.allclose(ops.convert_to_numpy(again(inputs)), before)
    assert again.get_layer("mlm").token_embedding.embeddings is tables[0]
