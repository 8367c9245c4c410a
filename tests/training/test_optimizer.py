import contextlib
import pathlib

import keras
import numpy as np
import pytest

from kbert.training import AdamW, WarmupLinearDecay, adamw_update
from tests.training import reference

GOLDENS = pathlib.Path(__file__).parents[1] / "goldens"
NO_DECAY = ("bias", "norm")


def make_variables():
    """Returns {path: keras.Variable} of the reference problem."""
    variables = {}
    for path, value in reference.initial_values().items():
        *scopes, name = path.split("/")
        with contextlib.ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(keras.name_scope(scope))
            variables[path] = keras.Variable(value, name=name)
        assert variables[path].path == path
    return variables


def train(optimizer, gradients):
    """Applies gradients one after another; returns {path: array}."""
    variables = make_variables()
    for gradient in gradients:
        grads = [keras.ops.convert_to_tensor(g) for g in gradient.values()]
        optimizer.apply(grads, list(variables.values()))
    return {path: np.array(v.numpy()) for path, v in variables.items()}


def small_model(seed=0):
    keras.utils.set_random_seed(seed)
    ids = keras.Input((4,), dtype="int32")
    x = keras.layers.Embedding(6, 8, name="token_embedding")(ids)
    x = keras.layers.LayerNormalization(name="norm")(x)
    x = keras.layers.Dense(3, name="classifier")(x[:, 0] + x[:, 1])
    model = keras.Model(ids, x)
    for variable in model.variables:
        # A float16 policy aside, no value may be 0: decay would not show.
        variable.assign(np.random.RandomState(seed).uniform(0.5, 1.5, variable.shape))
    return model


def weights(model):
    return {v.path: np.array(v.numpy(), "float64") for v in model.variables}


IDS = np.random.RandomState(3).randint(0, 6, (24, 4)).astype("int32")
LABELS = np.random.RandomState(4).randint(0, 3, 24)


def compile_and_fit(optimizer, batch_size, epochs=2, model=None):
    model = model or small_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    model.fit(IDS, LABELS, batch_size, epochs, shuffle=False, verbose=0)
    return model


def test_without_bias_correction_it_is_googles_trajectory():
    optimizer = AdamW(WarmupLinearDecay(0.01, 100, 0.1), bias_correction=False)
    google = reference.GoogleAdam(reference.initial_values(), NO_DECAY)
    for step, gradient in enumerate(reference.gradients()):
        rate = reference.google_learning_rate(step, 0.01, 100, 10)
        google.step(gradient, rate)
    ours = train(optimizer, reference.gradients())
    assert reference.worst_relative_error(ours, google.values) < 1e-6
    moved = reference.worst_relative_error(reference.initial_values(), google.values)
    assert moved > 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"bias_correction": True},
        {"epsilon": 1e-3},
        {"global_clipnorm": None},
        {"weight_decay": 0.0},
        {"exclude_from_decay": ("bias",)},
        {"beta_2": 0.99},
    ],
)
def test_the_judge_would_see_another_optimizer(change):
    arguments = {"bias_correction": False, **change}
    optimizer = AdamW(WarmupLinearDecay(0.01, 100, 0.1), **arguments)
    google = reference.GoogleAdam(reference.initial_values(), NO_DECAY)
    for step, gradient in enumerate(reference.gradients()):
        google.step(gradient, reference.google_learning_rate(step, 0.01, 100, 10))
    ours = train(optimizer, reference.gradients())
    assert reference.worst_relative_error(ours, google.values) > 1e-5


def test_with_bias_correction_it_is_torchs_adamw():
    golden = dict(np.load(GOLDENS / "adamw_torch.npz"))
    optimizer = AdamW(WarmupLinearDecay(0.01, 100, 0.1))
    ours = train(optimizer, reference.gradients())
    assert set(golden) == set(ours)
    assert reference.worst_relative_error(ours, golden) < 2e-6


def test_the_first_corrected_step_is_the_learning_rate():
    # m' = g and sqrt(v') = |g|, so that the step is the sign times the rate.
    values = reference.initial_values()
    gradient = {path: np.full_like(value, 0.5) for path, value in values.items()}
    ours = train(AdamW(0.001, weight_decay=0.0, epsilon=1e-12), [gradient])
    for path, value in values.items():
        np.testing.assert_allclose(value - ours[path], 0.001, rtol=3e-4)


def test_corrections_keep_their_digits():
    step = keras.ops.convert_to_tensor(1.0)
    first, second = adamw_update.corrections(step, (0.9, 0.999))
    np.testing.assert_allclose(float(first), 0.1, rtol=1e-6)
    np.testing.assert_allclose(float(second) ** 2, 0.001, rtol=1e-6)


def test_decay_is_for_kernels_and_embeddings_only():
    variables = make_variables()
    optimizer = AdamW()
    decayed = {path for path, v in variables.items() if optimizer.decays(v)}
    assert decayed == set(reference.DECAYED)
    zeros = [{p: np.zeros(s, "float32") for p, s in reference.SHAPES.items()}]
    ours = train(AdamW(0.1, weight_decay=0.5), zeros)
    for path, value in reference.initial_values().items():
        left = 0.95 if path in reference.DECAYED else 1.0
        np.testing.assert_allclose(ours[path], value * left, rtol=1e-6)


def test_all_variables_may_be_excluded():
    values = reference.initial_values()
    zeros = [{path: np.zeros_like(value) for path, value in values.items()}]
    ours = train(AdamW(0.1, weight_decay=0.5, exclude_from_decay=["/"]), zeros)
    for path, value in values.items():
        np.testing.assert_array_equal(ours[path], value)


def test_a_token_that_occurs_twice_counts_once_in_the_norm():
    ids, gradients = np.array([[1, 1, 2, 1]]), {}
    for clip in (None, 1e-3):
        model = small_model()
        optimizer = AdamW(1e-3, global_clipnorm=clip, weight_decay=0.0)
        model.compile(optimizer, "mse")
        model.train_on_batch(ids, np.array([[0.0, 3.0, -3.0]]))
        gradients[clip] = [
            v.numpy() / 0.1 for v in optimizer.variables if "momentum" in v.name
        ]
    norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients[None]))
    assert norm > 1
    for free, clipped in zip(gradients[None], gradients[1e-3], strict=True):
        np.testing.assert_allclose(clipped, free * (1e-3 / norm), rtol=1e-5, atol=1e-12)


def test_accumulation_equals_the_large_batch():
    def run(k, batch_size):
        optimizer = AdamW(
            WarmupLinearDecay(0.05, 6, 0.4),
            gradient_accumulation_steps=k,
            use_ema=True,
            ema_momentum=0.7,
        )
        model = compile_and_fit(optimizer, batch_size)
        assert int(optimizer.iterations) == 6
        assert float(optimizer.learning_rate) == 0.0
        return weights(model)

    large = run(None, 8)
    small = run(4, 2)
    start = weights(small_model())
    for path, value in large.items():
        np.testing.assert_allclose(small[path], value, atol=5e-7)
        assert np.abs(start[path] - value).max() > 1e-2


def test_the_schedule_counts_updates_under_accumulation():
    optimizer = AdamW(WarmupLinearDecay(1.0, 10, 0.5), gradient_accumulation_steps=3)
    variable = keras.Variable(np.ones(2, "float32"), name="kernel")
    rates = []
    for _ in range(9):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([keras.ops.ones(2)], [variable])
    np.testing.assert_allclose(rates, [0, 0, 0, 0.2, 0.2, 0.2, 0.4, 0.4, 0.4])
    optimizer.learning_rate = WarmupLinearDecay(2.0, 10, 0.5)
    np.testing.assert_allclose(float(optimizer.learning_rate), 1.2)


def test_the_average_moves_once_an_update():
    optimizer = AdamW(
        0.1, gradient_accumulation_steps=2, use_ema=True, ema_momentum=0.5
    )
    variable = keras.Variable(np.ones(1, "float32"), name="kernel")
    values, average = [], None
    for call in range(8):
        optimizer.apply([keras.ops.ones(1)], [variable])
        if call % 2:
            value = float(variable.numpy()[0])
            average = value if average is None else 0.5 * average + 0.5 * value
            values.append(value)
    assert len(set(values)) == 4
    optimizer.finalize_variable_values([variable])
    np.testing.assert_allclose(variable.numpy(), [average], rtol=1e-6)


def test_averages_overwrite_the_weights_on_time():
    kwargs = {"use_ema": True, "ema_momentum": 0.5}
    model = compile_and_fit(AdamW(0.05, ema_overwrite_frequency=2, **kwargs), 8)
    other = compile_and_fit(AdamW(0.05, **kwargs), 8)
    assert any(
        np.abs(value - weights(other)[path]).max() > 1e-4
        for path, value in weights(model).items()
    )


NON_DEFAULT = {
    "learning_rate": 0.25,
    "weight_decay": 0.3,
    "beta_1": 0.8,
    "beta_2": 0.95,
    "epsilon": 1e-4,
    "global_clipnorm": None,
    "bias_correction": False,
    "exclude_from_decay": ["gamma", "classifier"],
    "gradient_accumulation_steps": 2,
    "use_ema": True,
    "ema_momentum": 0.6,
    "clipvalue": 0.4,
    "loss_scale_factor": 2.0,
    "name": "mine",
}


def test_every_argument_is_in_the_config_and_comes_back():
    optimizer = AdamW(**NON_DEFAULT)
    config = optimizer.get_config()
    assert {name: config[name] for name in NON_DEFAULT} == NON_DEFAULT
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(optimizer)
    )
    assert type(again) is AdamW
    assert again.get_config() == config


def test_a_schedule_under_accumulation_comes_back():
    optimizer = AdamW(WarmupLinearDecay(0.5, 9), gradient_accumulation_steps=2)
    again = AdamW.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    assert again.get_config()["learning_rate"]["class_name"] == "WarmupLinearDecay"


def test_a_saved_model_goes_on_as_if_it_had_not_been_saved(tmp_path):
    optimizer = AdamW(
        WarmupLinearDecay(0.05, 12, 0.2),
        weight_decay=0.9,
        exclude_from_decay=["token_embedding"],
        gradient_accumulation_steps=2,
        use_ema=True,
    )
    model = compile_and_fit(optimizer, 4)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.optimizer.exclude_from_decay == ("token_embedding",)
    assert int(again.optimizer.iterations) == 6
    for each in (model, again):
        each.fit(IDS, LABELS, 4, shuffle=False, verbose=0)
    for path, value in weights(model).items():
        np.testing.assert_allclose(weights(again)[path], value, rtol=1e-6)


def test_mixed_bfloat16_keeps_float32_weights():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = compile_and_fit(AdamW(1e-5), 8)
    keras.config.set_dtype_policy("float32")
    start = weights(small_model())
    assert {v.dtype for v in model.variables} == {"float32"}
    for path, value in weights(model).items():
        # 1e-5 is lost on a bfloat16 weight of 1.
        assert 1e-6 < np.abs(value - start[path]).max() < 1e-3


def test_mixed_float16_scales_the_loss():
    keras.config.set_dtype_policy("mixed_float16")
    model = compile_and_fit(AdamW(1e-3), 8)
    keras.config.set_dtype_policy("float32")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    start = weights(small_model())
    for path, value in weights(model).items():
        assert np.isfinite(value).all()
        assert np.abs(value - start[path]).max() > 1e-4


def test_frozen_weights_stay_and_have_no_moments():
    model = small_model()
    model.get_layer("token_embedding").trainable = False
    compile_and_fit(AdamW(0.1, weight_decay=0.5), 8, model=model)
    start = weights(small_model())["token_embedding/embeddings"]
    np.testing.assert_array_equal(weights(model)["token_embedding/embeddings"], start)
    assert not any("embedding" in v.path for v in model.optimizer.variables)


def test_lora_factors_are_trained_and_decay():
    model = small_model()
    model.get_layer("classifier").enable_lora(2)
    optimizer = AdamW(0.1)
    compile_and_fit(optimizer, 8, model=model)
    factors = [v for v in model.trainable_variables if "lora" in v.path]
    assert len(factors) == 2
    assert all(optimizer.decays(v) for v in factors)
    assert all(np.abs(v.numpy()).max() > 0 for v in factors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight_decay": None}, "weight_decay=None"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1"),
        ({"exclude_from_decay": "bias"}, "exclude_from_decay='bias'"),
        ({"exclude_from_decay": ["bias", ""]}, r"exclude_from_decay=\['bias', ''\]"),
        ({"exclude_from_decay": [1]}, r"exclude_from_decay=\[1\]"),
        ({"beta_1": 1.0}, "beta_1.*Received: 1.0"),
        ({"beta_2": -0.5}, "beta_2.*Received: -0.5"),
        (
            {"gradient_accumulation_steps": 2, "ema_overwrite_frequency": 3},
            "ema_overwrite_frequency=3, gradient_accumulation_steps=2",
        ),
        ({"gradient_accumulation_steps": 1}, "gradient_accumulation_steps=1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdamW(**arguments)
