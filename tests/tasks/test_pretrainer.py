"""Masked tokens and next sentences at once, on ready arrays."""

import keras
import numpy as np
import pytest
from keras import ops

import kbert
from tests import bert_reference, random_bert, tiny

SIZES = random_bert.SIZES
V = SIZES["vocabulary_size"]


def instances(count=12, seed=0):
    """Random instances of 5 to 8 tokens with one to three masked ones."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 9, count)
    x = random_bert.inputs((np.arange(8) < lengths[:, None]).astype("int32"), seed)
    x["mask_positions"] = np.zeros((count, 3), "int32")
    for row, length in enumerate(lengths):
        chosen = rng.choice(np.arange(1, length), rng.integers(1, 4), replace=False)
        x["mask_positions"][row, : len(chosen)] = np.sort(chosen)
    y = {"mlm": rng.integers(0, V, (count, 3)), "nsp": rng.integers(0, 2, count)}
    return x, y


X, Y = instances()
IS_TOKEN = X["mask_positions"] > 0


def make(**changes):
    changes = {"dropout": 0.0, "attention_dropout": 0.0, "num_layers": 1, **changes}
    return kbert.BertPretrainer(random_bert.make(**changes))


@pytest.fixture(scope="module")
def model():
    model = make()
    model.compile(learning_rate=0.02)
    model.history_of_fit = model.fit(X, Y, 6, 15, verbose=0)
    return model


def losses(logits, labels):
    logits = logits.astype("float64")
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(labels)), labels]
    return each, logits.argmax(1) == labels


def test_the_numbers_are_those_of_the_reference(model):
    weights = {w.path: ops.convert_to_numpy(w) for w in model.weights}
    maths = {"activation": "gelu_tanh", "epsilon": SIZES["layer_norm_epsilon"]}
    states, _, pooled = bert_reference.forward(
        X, weights, num_layers=1, num_heads=2, **maths
    )
    rows, slots = np.nonzero(X["mask_positions"])
    flat = rows * 8 + X["mask_positions"][rows, slots]
    expected = bert_reference.masked_logits(states[-1], flat, weights, **maths)
    found = model.predict(X, batch_size=5, verbose=0)
    np.testing.assert_allclose(found["mlm"], expected, atol=1e-5)
    nsp = pooled @ weights["nsp/kernel"] + weights["nsp/bias"]
    np.testing.assert_allclose(found["nsp"], nsp, atol=1e-5)


def test_both_losses_and_accuracies_are_shown(model):
    logits = model.predict(X, verbose=0)
    mlm, right = losses(logits["mlm"], Y["mlm"][IS_TOKEN])
    nsp, next_right = losses(logits["nsp"], Y["nsp"])
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert found == pytest.approx(
        {
            "loss": mlm.mean() + nsp.mean(),
            "mlm_loss": mlm.mean(),
            "nsp_loss": nsp.mean(),
            "mlm_accuracy": right.mean(),
            "nsp_accuracy": next_right.mean(),
        },
        rel=1e-4,
    )


def test_fit_lowers_both_losses(model):
    history = model.history_of_fit.history
    for name in ("mlm_loss", "nsp_loss"):
        assert history[name][-1] < history[name][0]
    assert {"loss", "mlm_accuracy", "nsp_accuracy"} < set(history)


def test_a_dataset_of_batches(model):
    parts = [slice(0, 5), slice(5, 12)]
    batches = [
        ({k: v[part] for k, v in X.items()}, {k: v[part] for k, v in Y.items()})
        for part in parts
    ]
    told = [model.test_on_batch(*batch, return_dict=True) for batch in batches]
    assert all(set(logs) > {"mlm_loss", "nsp_accuracy"} for logs in told)
    found = model.evaluate(iter(batches), steps=2, verbose=0, return_dict=True)
    expected = model.evaluate(X, Y, verbose=0, return_dict=True)
    for name in ("mlm_accuracy", "nsp_accuracy"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)


def test_weights_of_instances(model):
    weights = np.where(np.arange(12) < 6, 3.0, 0.0)
    found = model.evaluate(X, Y, 12, 0, sample_weight=weights, return_dict=True)
    logits = model.predict(X, verbose=0)
    mlm, _ = losses(logits["mlm"], Y["mlm"][IS_TOKEN])
    nsp, _ = losses(logits["nsp"], Y["nsp"])
    of_tokens = np.repeat(weights, IS_TOKEN.sum(1))
    expected = (mlm * of_tokens).mean() + (nsp * weights).mean()
    assert found["loss"] == pytest.approx(expected, rel=1e-4)


def test_several_instances_a_row(model):
    x = {
        "token_ids": np.concatenate([X["token_ids"][0, :4], X["token_ids"][1, :4]]),
        "segment_ids": np.zeros(8, "int32"),
        "padding_mask": np.repeat([1, 2], 4),
    }
    packed = {key: value[None].astype("int32") for key, value in x.items()}
    apart = {key: value.reshape(2, 4).astype("int32") for key, value in x.items()}
    apart["padding_mask"][:] = 1
    positions = np.array([2, 5, 7], "int32")
    one = model(
        {
            **packed,
            "mask_positions": positions,
            "first_positions": np.array([0, 4], "int32"),
        }
    )
    two = model({**apart, "mask_positions": positions})
    for name in ("mlm", "nsp"):
        np.testing.assert_allclose(
            ops.convert_to_numpy(one[name]), ops.convert_to_numpy(two[name]), atol=1e-5
        )


@pytest.mark.parametrize(
    ("y", "received"),
    [
        (Y["mlm"], "ndarray"),
        ({"mlm": Y["mlm"]}, r"\['mlm'\]"),
        ({**Y, "nsp": np.full(12, 2)}, r"shape \(12,\) with \[2\]"),
        ({**Y, "nsp": np.zeros(5)}, r"shape \(5,\)"),
        ({**Y, "mlm": np.full((12, 3), V)}, f"values from {V} to {V}"),
    ],
)
def test_targets_that_do_not_fit(model, y, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        model.fit(X, y, verbose=0)


def test_text_and_other_things_are_refused():
    model = kbert.BertPretrainer(tiny.backbone(), tiny.preprocessor())
    with pytest.raises(ValueError, match="ready arrays.*Received: text"):
        model.fit(["a film"], verbose=0)
    with pytest.raises(ValueError, match="class_weight={1: 2.0}"):
        make().fit(X, Y, class_weight={1: 2.0}, verbose=0)
    with pytest.raises(NotImplementedError, match="BertPretrainer.*served"):
        model.export("served")


def test_files_keep_everything(tmp_path):
    backbone = tiny.backbone(activation="gelu_tanh")
    model = kbert.BertPretrainer(backbone, tiny.preprocessor(), head_epsilon=1e-5)
    random_bert.shake(model)
    model.freeze_backbone()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    assert {w.path for w in again.trainable_weights} == set(model.head_weights())
    model.save_to_preset(tmp_path / "preset")
    preset = kbert.BertPretrainer.from_preset(tmp_path / "preset")
    assert preset.head.layer_norm_epsilon == 1e-5
    for other in (again, preset):
        for ours, theirs in zip(other.weights, model.weights, strict=True):
            assert ours.path == theirs.path
            np.testing.assert_array_equal(
                ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs)
            )


def test_other_tasks_take_what_they_use(tmp_path, capfd):
    model = kbert.BertPretrainer(tiny.backbone(), tiny.preprocessor())
    model.save_to_preset(tmp_path)
    masked = kbert.BertMaskedLM.from_preset(tmp_path)
    told = capfd.readouterr().err
    assert "cls.seq_relationship.weight" in told and "pooler" in told
    np.testing.assert_array_equal(
        ops.convert_to_numpy(masked.head.bias), ops.convert_to_numpy(model.head.bias)
    )
    with pytest.warns(UserWarning, match="classifier/kernel.*stay random"):
        kbert.BertClassifier.from_preset(tmp_path, labels=tiny.LABELS)
    told = capfd.readouterr().err
    assert "cls.predictions.bias" in told and "cls.seq_relationship.bias" in told
    assert "which this BertClassifier does not use" in told
