"""LAMB: Adam whose steps are as long as the weights are large, for large batches."""

import keras
from keras import ops

from kbert.training.adamw_update import corrections
from kbert.training.optimizer import check_decay, dense
from kbert.training.schedules import PerUpdate, in_updates


@keras.saving.register_keras_serializable(package="kbert")
class Lamb(keras.optimizers.Optimizer):
    """LAMB (You et al. 2019, https://arxiv.org/abs/1904.00962, algorithm 2).

    One update of a variable w with gradient g, after all gradients were scaled down
    together to a global norm of at most `global_clipnorm`:

        m <- beta_1 m + (1 - beta_1) g
        v <- beta_2 v + (1 - beta_2) g^2
        r <- m' / (sqrt(v') + epsilon) + weight_decay w
        w <- w - learning_rate |w| / |r| r

    with m' = m / (1 - beta_1^t) and v' = v / (1 - beta_2^t), or, with
    `bias_correction=False`, m' = m and v' = v. A ratio with a norm of 0 is 1. Weights
    in `exclude_from_decay` have no decay, and the ratio 1, as in the authors' code.

    `keras.optimizers.Lamb` decays apart from r, so that |r| does not know of it, scales
    every bias, and loses what is excluded when it is saved.

    Args:
        learning_rate: as for `kbert.AdamW`; the paper's for a batch of 32,768 is
            1.25e-2 / 2, twice as much or less for others by the root of the batch.
        weight_decay: the rate of decay, 0.01 in the paper.
        beta_1: decay of the first moment m.
        beta_2: decay of the second moment v.
        epsilon: added to the root of v'.
        global_clipnorm: the highest global norm of the gradients; None for no limit.
        bias_correction: whether to correct m and v for starting at 0.
        exclude_from_decay: as for `kbert.AdamW`.
        gradient_accumulation_steps: the same.
        **kwargs: further arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: as `kbert.AdamW`.

    Example:
    >>> from kbert.training.lamb import Lamb
    >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    >>> model.compile(Lamb(kbert.WarmupLinearDecay(1e-3, total_steps=100)), "mse")
    >>> model.optimizer.get_config()["exclude_from_decay"]
    ['bias', 'norm']
    """

    def __init__(
        self,
        learning_rate=1e-3,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        global_clipnorm=1.0,
        bias_correction=True,
        exclude_from_decay=("bias", "norm"),
        gradient_accumulation_steps=None,
        **kwargs,
    ):
        check_decay(weight_decay, exclude_from_decay)
        super().__init__(
            learning_rate=in_updates(learning_rate, gradient_accumulation_steps),
            weight_decay=None,  # Keras would decay a second time
            global_clipnorm=global_clipnorm,
            gradient_accumulation_steps=gradient_accumulation_steps,
            **kwargs,
        )
        self.rate_of_decay = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.exclude_from_decay = tuple(exclude_from_decay)

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
        self._excluded = [
            any(part in variable.path for part in self.exclude_from_decay)
            for variable in variables
        ]

    def apply(self, grads, trainable_variables=None):
        """Updates the variables from their gradients.

        Args:
            grads: list of tensors, each shaped as its variable, or None.
            trainable_variables: list of `keras.Variable`; None for those that the
                optimizer was built with.
        """
        variables = trainable_variables or self._trainable_variables
        grads = [
            g if g is None else dense(g, variable.shape)
            for g, variable in zip(grads, variables, strict=True)
        ]
        super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its moments.

        Args:
            gradient: tensor, shaped as `variable`.
            variable: the variable, in TensorFlow the backend's own.
            learning_rate: scalar tensor.
        """
        index = self._get_variable_index(variable)
        dtype = keras.backend.standardize_dtype(variable.dtype)
        g, rate = ops.cast(gradient, dtype), ops.cast(learning_rate, dtype)
        m, v = self._momentums[index], self._velocities[index]
        self.assign(m, m + (g - m) * (1.0 - self.beta_1))
        self.assign(v, v + (ops.square(g) - v) * (1.0 - self.beta_2))
        w = ops.convert_to_tensor(variable)
        r = self._direction(ops.convert_to_tensor(m), ops.convert_to_tensor(v))
        if not self._excluded[index]:
            r = r + self.rate_of_decay * w
            w_norm, r_norm = (ops.sqrt(ops.sum(ops.square(x))) for x in (w, r))
            both = ops.logical_and(w_norm > 0, r_norm > 0)
            rate = rate * ops.where(both, w_norm / ops.where(both, r_norm, 1.0), 1.0)
        self.assign(variable, w - rate * r)

    def _direction(self, m, v):
        """Returns m' / (sqrt(v') + epsilon)."""
        first = root_second = 1.0
        if self.bias_correction:
            step = ops.cast(self.iterations + 1, m.dtype)
            first, root_second = corrections(step, (self.beta_1, self.beta_2))
        return m / first / (ops.sqrt(v) / root_second + self.epsilon)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        config = super().get_config()
        rate = self._learning_rate
        if isinstance(rate, PerUpdate):
            config["learning_rate"] = keras.saving.serialize_keras_object(rate.schedule)
        config.update(
            weight_decay=self.rate_of_decay,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
            exclude_from_decay=list(self.exclude_from_decay),
        )
        return config
