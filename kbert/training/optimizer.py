"""AdamW as BERT is trained with it, the same on every backend."""

import functools
import re
from typing import Any

import keras
from keras import ops

from kbert.training.adamw_update import Numbers, squared_norm, update
from kbert.training.distribution import are_apart, joint_gradients
from kbert.training.schedules import PerUpdate, in_updates

# Where a variable of the encoder is; what is no part of it is above.
_LAYER = re.compile(r"(?:^|/)(?:encoder_layer_(\d+)|embeddings)/")


@keras.saving.register_keras_serializable(package="kbert")
class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay (Devlin et al. 2018, appendix A.2).

    One update of a variable w with gradient g, after all gradients were scaled down
    together to a global norm of at most `global_clipnorm`:

        m <- beta_1 m + (1 - beta_1) g
        v <- beta_2 v + (1 - beta_2) g^2
        w <- w - learning_rate (m' / (sqrt(v') + epsilon) + weight_decay w)

    with m' = m / (1 - beta_1^t) and v' = v / (1 - beta_2^t), or, with
    `bias_correction=False`, m' = m and v' = v: that is `optimization.py` of
    google-research/bert, step for step. Weights in `exclude_from_decay` have no decay.

    It differs from `keras.optimizers.AdamW` where that would train another BERT: the
    exclusions match the variable's path and survive saving; a learning rate schedule
    and the moving average count updates of the weights, not micro-batches; and the
    norm counts a token that occurs twice in a batch as TensorFlow's sparse gradients
    of an embedding do not. Replicas (`tf.distribute`, `torch.distributed`) clip the
    gradient of the whole batch, not each its own.

    Args:
        learning_rate: a float, a `keras.optimizers.schedules.LearningRateSchedule`
            such as `kbert.WarmupLinearDecay`, or a callable without arguments.
        weight_decay: the rate of decay, multiplied by the learning rate.
        beta_1: decay of the first moment m.
        beta_2: decay of the second moment v.
        epsilon: added to the root of v'.
        global_clipnorm: the highest global norm of the gradients; None for no limit.
        bias_correction: whether to correct m and v for starting at 0.
        exclude_from_decay: a variable does not decay if one of these strings occurs
            in its path (`encoder_layer_0/attention_norm/gamma`). The default leaves
            the decay to kernels and embeddings.
        layer_decay: factor of the learning rate from a layer of the encoder to the one
            below it: L layers have layer_decay^L, in the first, to layer_decay, in the
            last, the embeddings layer_decay^(L + 1), and pooler and heads all of it;
            1.0 for one rate (Howard and Ruder 2018, https://arxiv.org/abs/1801.06146,
            section 3.2). Weight decay follows the rate.
        gradient_accumulation_steps: update the weights once in so many calls, with
            the mean of their gradients; None for every call.
        use_ema: whether to keep an exponential moving average of the weights.
        ema_momentum: its momentum for one update of the weights.
        ema_overwrite_frequency: updates after which the weights are overwritten by
            their average; not possible under accumulation.
        **kwargs: further arguments of `keras.optimizers.Optimizer`: `clipnorm`,
            `clipvalue`, `loss_scale_factor`, `name`.

    Raises:
        ValueError: if `weight_decay` is no number of at least 0, `exclude_from_decay`
            is one string or holds anything else than non-empty strings, a beta lies
            outside [0, 1), `layer_decay` outside (0, 1], or `ema_overwrite_frequency`
            is asked for together with `gradient_accumulation_steps`.

    Example:
    >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    >>> schedule = kbert.WarmupLinearDecay(5e-5, total_steps=100)
    >>> model.compile(kbert.AdamW(schedule), "mse")
    >>> model.optimizer.get_config()["exclude_from_decay"]
    ['bias', 'norm']
    """

    def __init__(
        self,
        learning_rate=5e-5,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        global_clipnorm=1.0,
        bias_correction=True,
        exclude_from_decay=("bias", "norm"),
        layer_decay=1.0,
        gradient_accumulation_steps=None,
        use_ema=False,
        ema_momentum=0.99,
        ema_overwrite_frequency=None,
        **kwargs,
    ):
        check_decay(weight_decay, exclude_from_decay)
        for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0 <= beta < 1:
                raise ValueError(f"`{name}` must lie in [0, 1). Received: {beta!r}.")
        if not 0 < layer_decay <= 1:
            raise ValueError(
                f"`layer_decay` must lie in (0, 1]. Received: {layer_decay!r}."
            )
        if gradient_accumulation_steps and ema_overwrite_frequency:
            raise ValueError(
                "`ema_overwrite_frequency` must be None with "
                "`gradient_accumulation_steps`, since Keras would overwrite the "
                "weights between two updates. Received: ema_overwrite_frequency="
                f"{ema_overwrite_frequency}, gradient_accumulation_steps="
                f"{gradient_accumulation_steps}."
            )
        super().__init__(
            learning_rate=in_updates(learning_rate, gradient_accumulation_steps),
            # `update_step` decays. Told of it, Keras would decay a second time.
            weight_decay=None,
            global_clipnorm=global_clipnorm,
            gradient_accumulation_steps=gradient_accumulation_steps,
            use_ema=use_ema,
            ema_momentum=ema_momentum,
            ema_overwrite_frequency=ema_overwrite_frequency,
            **kwargs,
        )
        self._gradient_scale = None
        self._numbers_of: Any = None
        self.decoupled_weight_decay = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.exclude_from_decay = tuple(exclude_from_decay)
        self.layer_decay = layer_decay

    @property
    def learning_rate(self):
        """The learning rate of the update that comes next."""
        return super().learning_rate

    @learning_rate.setter
    def learning_rate(self, value):
        value = in_updates(value, self.gradient_accumulation_steps)
        keras.optimizers.Optimizer.learning_rate.fset(self, value)

    @property
    def ema_momentum(self):
        """The momentum of the moving average at this call.

        Keras averages at every call. Between two updates under accumulation the
        momentum is 1, which leaves the average as it is.
        """
        if not self.gradient_accumulation_steps:
            return self._ema_momentum
        calls = self._iterations + 1
        updates = ops.equal(calls % self.gradient_accumulation_steps, 0)
        return ops.where(updates, self._ema_momentum, 1.0)

    @ema_momentum.setter
    def ema_momentum(self, value):
        self._ema_momentum = value

    def decays(self, variable) -> bool:
        """Says whether weight decay applies to a Keras variable."""
        return not any(part in variable.path for part in self.exclude_from_decay)

    def build(self, variables):
        """Makes the moments of every variable.

        Args:
            variables: list of `keras.Variable`, the trainable ones.
        """
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        self._decay_rates = tuple(
            self.decoupled_weight_decay if self.decays(variable) else 0.0
            for variable in variables
        )
        self._rate_factors = rate_factors(variables, self.layer_decay)

    def apply(self, grads, trainable_variables=None):
        """Updates the variables from their gradients.

        Args:
            grads: list of tensors, each shaped as its variable, or None.
            trainable_variables: list of `keras.Variable`; None for those that the
                optimizer was built with.
        """
        # A sparse gradient lists a token as often as it occurs; only the dense sum
        # has the norm that the clipping is about.
        variables = trainable_variables or self._trainable_variables
        grads = [
            g if g is None else dense(g, variable.shape)
            for g, variable in zip(grads, variables, strict=True)
        ]
        super().apply(grads, trainable_variables)
        self._gradient_scale = None  # of this step; in a graph it means nothing after

    def _clip_gradients(self, grads):
        """Leaves the scaling to `update_step`, which reads every gradient anyway.

        Replicas first join their gradients, as the norm is that of the whole batch's,
        and scale as Keras does: in a graph they share what this object keeps.
        """
        if are_apart():
            return super()._clip_gradients(joint_gradients(grads))
        if not self.global_clipnorm:
            return super()._clip_gradients(grads)
        squares = [ops.cast(squared_norm(g), "float32") for g in grads]
        norm = ops.sqrt(ops.sum(ops.stack(squares)))
        # NaN where the norm is no finite number, as Keras's is.
        scale = ops.minimum(self.global_clipnorm / norm, 1.0) + (norm - norm)
        self._gradient_scale = scale
        return grads

    def _all_reduce_sum_gradients(self, grads_and_vars):
        """Returns the gradients as they are: `_clip_gradients` has joined them."""
        return grads_and_vars

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        """Updates every variable, with scalars that those of one dtype share."""
        scale, step = self._gradient_scale, None
        if self.bias_correction:
            step = self.iterations + 1

        @functools.cache
        def numbers_of(dtype, factor):
            return Numbers(
                None if scale is None else ops.cast(scale, dtype),
                ops.cast(learning_rate, dtype) * factor,
                step,
                (self.beta_1, self.beta_2),
                self.epsilon,
            )

        self._numbers_of = numbers_of
        super()._backend_update_step(grads, trainable_variables, learning_rate)
        self._numbers_of = None  # in a graph its tensors mean nothing after the step

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its moments, within a step.

        Args:
            gradient: tensor, shaped as `variable`.
            variable: the variable, in TensorFlow the backend's own.
            learning_rate: scalar tensor.
        """
        index = self._get_variable_index(variable)
        dtype = keras.backend.standardize_dtype(variable.dtype)
        update(
            variable,
            self._momentums[index],
            self._velocities[index],
            ops.cast(gradient, dtype),
            self._numbers_of(dtype, self._rate_factors[index]),
            self._decay_rates[index],
        )

    def finalize_variable_values(self, var_list):
        """Ends a training: sets the weights to their average, if there is one."""
        super().finalize_variable_values(var_list)
        if self.use_ema:
            # On JAX a weight would share its average's buffer, and the next `fit`
            # would fail to donate that twice.
            for variable in var_list:
                variable.assign(ops.copy(variable))

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        config = super().get_config()
        rate = self._learning_rate
        if isinstance(rate, PerUpdate):
            config["learning_rate"] = keras.saving.serialize_keras_object(rate.schedule)
        config.update(
            weight_decay=self.decoupled_weight_decay,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
            exclude_from_decay=list(self.exclude_from_decay),
            layer_decay=self.layer_decay,
            ema_momentum=self._ema_momentum,
        )
        return config


def rate_factors(variables, layer_decay: float) -> tuple[float, ...]:
    """Returns the factor of the learning rate for each variable; see `AdamW`.

    Args:
        variables: list of `keras.Variable`; their paths say where they are.
        layer_decay: factor from one layer to the one below.
    """
    found = [_LAYER.search(variable.path) for variable in variables]
    layers = [int(match[1]) if match and match[1] else None for match in found]
    above = 1 + max((layer for layer in layers if layer is not None), default=-1)
    depths = [
        0 if match is None else above + 1 if layer is None else above - layer
        for match, layer in zip(found, layers, strict=True)
    ]
    return tuple(layer_decay**depth for depth in depths)


def dense(gradient, shape):
    """Sums the rows of TensorFlow's sparse gradient; leaves any other as it is.

    In a graph, the sparse gradient itself may not know how many rows the whole has.
    """
    return ops.reshape(gradient, shape)


def check_decay(weight_decay, exclude_from_decay):
    """Checks two arguments of an optimizer.

    Args:
        weight_decay: the rate of decay.
        exclude_from_decay: strings in the paths of what does not decay.

    Raises:
        ValueError: if the first is no number of at least 0, or the second is one string
            or holds anything else than non-empty strings.
    """
    if isinstance(weight_decay, bool) or not isinstance(weight_decay, int | float):
        raise ValueError(
            "`weight_decay` must be a number; use 0.0 for none. "
            f"Received: weight_decay={weight_decay!r}."
        )
    if not weight_decay >= 0:
        raise ValueError(
            "`weight_decay` must be at least 0. "
            f"Received: weight_decay={weight_decay!r}."
        )
    strings = not isinstance(exclude_from_decay, str) and all(
        isinstance(part, str) and part for part in exclude_from_decay
    )
    if not strings:
        raise ValueError(
            "`exclude_from_decay` must be a list of non-empty strings. "
            f"Received: exclude_from_decay={exclude_from_decay!r}."
        )
