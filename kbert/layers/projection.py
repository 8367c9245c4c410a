"""A dense layer whose LoRA factors survive saving."""

import keras

from kbert.layers._backend import linear


@keras.saving.register_keras_serializable(package="kbert")
class BertProjection(keras.layers.Dense):
    """`keras.layers.Dense`, but a file keeps LoRA as LoRA.

    Keras merges the two factors into the kernel when it saves and sets both to zero
    when it loads, after which neither has a gradient. Here the file holds the kernel
    and the factors apart, and loading a file that has none leaves the fresh factors
    as they are.

    Takes the arguments of `keras.layers.Dense`. Call arguments: float (..., in).
    Returns: float (..., units).

    Reference: Hu et al. 2021, https://arxiv.org/abs/2106.09685.
    """

    def call(self, inputs, training=None):
        """Projects; see the class for shapes."""
        if self.quantization_mode is not None:
            return self.quantized_call(inputs)
        x = linear(inputs, self.kernel, self.bias)
        return x if self.activation is None else self.activation(x)

    def save_own_variables(self, store):
        """Writes kernel and bias under Keras's numbers, LoRA factors by name."""
        if not self.lora_enabled:
            super().save_own_variables(store)
            return
        own = {variable.name: variable for variable in self.variables}
        numbered = ["kernel", "bias"] if self.use_bias else ["kernel"]
        for number, name in enumerate(numbered):
            store[str(number)] = own.pop(name)
        for name, variable in own.items():
            store[name] = variable

    def load_own_variables(self, store):
        """Reads them back."""
        if not self.lora_enabled:
            super().load_own_variables(store)
            return
        factors = {
            variable.name: variable
            for variable in self.variables
            if variable.name in ("lora_kernel_a", "lora_kernel_b")
        }
        values = {
            name: store[name][...] if name in store else keras.ops.copy(variable)
            for name, variable in factors.items()
        }
        super().load_own_variables(store)
        for name, variable in factors.items():
            variable.assign(values[name])
