"""The encoder of the paper: embeddings, L layers, pooler."""

import dataclasses

import keras
import numpy as np
from keras import ops

from kbert import presets
from kbert.checkpoints import folder, sizes
from kbert.config import BertConfig
from kbert.layers import BertEmbeddings, BertEncoderLayer, BertPooler
from kbert.layers._backend import warn_of_xla
from kbert.layers.attention import visible
from kbert.layers.initial_values import drawn

# The keys of a backbone's inputs, of which a task has one more.
INPUTS = ("token_ids", "segment_ids", "padding_mask")


@keras.saving.register_keras_serializable(package="kbert")
class BertBackbone(keras.Model):
    """BERT without a head (Devlin et al. 2018, section 3).

    Args: the fields of `kbert.BertConfig`, which explains and checks them, and
        remat: whether training keeps only the input of every encoder layer and computes
            the rest again for the gradients (Chen et al. 2016,
            https://arxiv.org/abs/1604.06174): less memory, more time.
        dtype: dtype or dtype policy of every layer, e.g. "mixed_bfloat16".

    Call arguments, a dictionary:
        token_ids: int32 (B, S), each in [0, vocabulary_size).
        segment_ids: int32 (B, S), each in [0, num_segments).
        padding_mask: int32 (B, S), 1 where there is text and 0 where there is none;
            or, for several texts in a row, the number of the text (1, 1, 2, 2, 2, 0).

    Returns, a dictionary:
        sequence_output: float (B, S, H), the last layer.
        pooled_output: float (B, H), tanh of a dense layer on each row's first position.

    Attributes:
        presets: {name: description, parameters, licence, sources, scores} of the
            built-in presets, as KerasHub's models have them.

    Raises:
        ValueError: if a key is missing or unknown, or numpy inputs hold an id, a
            segment or a length out of range, which the backends would treat differently
            and in silence.

    Example:
    >>> backbone = BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> ids = np.array([[2, 5, 3, 0]], "int32")
    >>> outputs = backbone({"token_ids": ids, "segment_ids": np.zeros_like(ids),
    ...     "padding_mask": np.array([[1, 1, 1, 0]], "int32")})
    >>> tuple(outputs["sequence_output"].shape), tuple(outputs["pooled_output"].shape)
    ((1, 4, 8), (1, 8))
    """

    presets = presets.Catalogue()

    def __init__(
        self,
        vocabulary_size=30522,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        activation="gelu",
        dropout=0.1,
        attention_dropout=0.1,
        classifier_dropout=None,
        max_sequence_length=512,
        num_segments=2,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        pad_token_id=0,
        left_to_right=False,
        remat=False,
        dtype=None,
        trainable=True,
        name=None,
        **kwargs,
    ):
        arguments = locals()
        if remat:
            warn_of_xla()
        config = BertConfig(
            **{f.name: arguments[f.name] for f in dataclasses.fields(BertConfig)}
        )
        embeddings, encoder_layers, pooler = _layers(config, remat, dtype)
        inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in INPUTS}
        x = embeddings(
            inputs["token_ids"], inputs["segment_ids"], inputs["padding_mask"]
        )
        mask = visible(inputs["padding_mask"], left_to_right)
        for layer in encoder_layers:
            x = layer(x, mask)
        outputs = {"sequence_output": x, "pooled_output": pooler(x)}
        super().__init__(inputs, outputs, name=name, **kwargs)
        self.config = config
        self.embeddings = embeddings
        self.encoder_layers = encoder_layers
        self.pooler = pooler
        self.remat = remat
        self.dtype_policy = keras.dtype_policies.get(dtype)
        self.trainable = trainable

    def __call__(self, inputs, *args, **kwargs):
        """Checks numpy inputs, then runs the model."""
        check_inputs(inputs, self.config)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs, training=None, mask=None):
        """Runs the functional model; see `__call__`."""
        check_keys(inputs)
        return super().call(inputs, training=training, mask=mask)

    def predict(self, x, *args, **kwargs):
        """Checks numpy inputs, then predicts as `keras.Model.predict`."""
        if isinstance(x, dict):  # else a dataset, whose batches `call` sees
            check_inputs(x, self.config)
        return super().predict(x, *args, **kwargs)

    def export(self, filepath, format="tf_saved_model", **kwargs):
        """Writes the encoder as `keras.Model.export`, from ids to vectors.

        Args:
            filepath: folder to write.
            format: as in Keras. A "tf_saved_model" has the signature `serving_default`,
                with the names of a call's arguments and results.
            **kwargs: as in Keras.

        Raises:
            ValueError: if a SavedModel is asked for on another backend than TensorFlow,
                where Keras cannot leave two sizes open in several inputs.
        """
        backend = keras.backend.backend()
        if format == "tf_saved_model" and backend != "tensorflow":
            raise ValueError(
                "A backbone becomes a SavedModel on the TensorFlow backend only. "
                f"Received: Keras on {backend!r}. Set KERAS_BACKEND=tensorflow, or "
                "export a task, which works on every backend."
            )
        super().export(filepath, format=format, **kwargs)

    def pooled(self, inputs, first_positions):
        """Returns the pooled output of every text, as a task's functional model wants.

        The last layer is computed at the first position of every text alone.

        Args:
            inputs: as for a call, symbolic.
            first_positions: int32 (texts,) or None, symbolic, as in `BertPooler`.

        Returns:
            Float (texts, H), symbolic.
        """
        x = self.embeddings(
            inputs["token_ids"], inputs["segment_ids"], inputs["padding_mask"]
        )
        mask = visible(inputs["padding_mask"], self.config.left_to_right)
        *layers, last = self.encoder_layers
        for layer in layers:
            x = layer(x, mask)
        return self.pooler(last(x, mask, first_positions, first_only=True))

    def hidden_states(self, inputs):
        """Returns the embeddings and the output of every layer.

        Args:
            inputs: as for a call.

        Returns:
            A list of L + 1 tensors (B, S, H), as transformers' `hidden_states`.
        """
        return self._intermediate(inputs)[0]

    def attentions(self, inputs):
        """Returns the attention probabilities of every layer, without dropout.

        Args:
            inputs: as for a call.

        Returns:
            A list of L tensors (B, N, S, S), as transformers' `attentions`.
        """
        states, mask = self._intermediate(inputs)
        return [
            layer.attention.probabilities(x, mask)
            for layer, x in zip(self.encoder_layers, states[:-1], strict=True)
        ]

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **dataclasses.asdict(self.config),
            "remat": self.remat,
            "frozen": frozen_paths(self),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Builds the model that `get_config` described."""
        config = dict(config)
        frozen = config.pop("frozen")
        backbone = cls(**config)
        freeze(backbone, frozen)
        return backbone

    @classmethod
    def from_preset(
        cls,
        preset,
        *,
        load_weights=True,
        allow_pickle=False,
        remat=False,
        dtype=None,
        name=None,
    ):
        """Builds the encoder of a preset.

        Args:
            preset: a name, a folder, Google's zip, hf://… (`presets.find_preset`).
            load_weights: False for random weights; then nothing but the architecture
                is read, and the network never used.
            allow_pickle: True to read `pytorch_model.bin` where there is no better
                file, through `torch.load(weights_only=True)`.
            remat: as for the constructor.
            dtype: dtype or dtype policy of every layer.
            name: of the model.

        Returns:
            A `BertBackbone`.
        """
        found = presets.find_preset(
            preset, network=load_weights, allow_pickle=allow_pickle
        )
        config = sizes.read_architecture(found, load_weights=load_weights)
        options = {"remat": remat, "dtype": dtype, "name": name}
        backbone = cls.from_architecture(
            config, random_weights=not load_weights, **options
        )
        if load_weights:
            folder.load_preset(found, {v.path: v for v in backbone.weights})
        return backbone

    @classmethod
    def from_architecture(
        cls, config, *, random_weights=True, remat=False, dtype=None, name=None
    ):
        """Builds the encoder of a `BertConfig`; zeros where nothing is to be random."""
        options = {"remat": remat, "dtype": dtype, "name": name}
        with drawn(random_weights):
            return cls(**dataclasses.asdict(config), **options)

    def _intermediate(self, inputs):
        check_inputs(inputs, self.config)
        inputs = {key: ops.convert_to_tensor(inputs[key]) for key in self.input}
        states = [
            self.embeddings(
                inputs["token_ids"],
                inputs["segment_ids"],
                inputs["padding_mask"],
                training=False,
            )
        ]
        mask = visible(inputs["padding_mask"], self.config.left_to_right)
        for layer in self.encoder_layers:
            states.append(layer(states[-1], mask, training=False))
        return states, mask


def frozen_paths(model):
    """Returns the paths of the weights that are not to be trained."""
    return [weight.path for weight in model.weights if not weight.trainable]


def freeze(model, paths):
    """Leaves the weights at `paths` untrained from now on.

    Keras's `.keras` file forgets which parts of a nested model were frozen; the
    configurations of kbert's models keep it by path.
    """
    for weight in model.weights:
        if weight.path in paths:
            weight.trainable = False


def check_keys(inputs, required=INPUTS, optional=()):
    """Refuses what is no dictionary of a model's inputs by name.

    Keras only warns, and takes the values in the order of their keys, whatever these
    are called.

    Args:
        inputs: a dictionary; a key with None counts as absent.
        required: the keys that it must have.
        optional: the ones that it may have.

    Raises:
        ValueError: if it is no dictionary, or a key is missing or unknown.
    """
    named = isinstance(inputs, dict)
    given = {key for key in inputs if inputs[key] is not None} if named else set()
    if not set(required) <= given <= {*required, *optional}:
        received = sorted(map(str, inputs)) if named else type(inputs).__name__
        beside = f" and may have {list(optional)}" if optional else ""
        raise ValueError(
            f"Inputs must be a dictionary with the keys {list(required)}{beside}. "
            f"Received: {received}."
        )


def check_inputs(inputs, config, optional=()):
    """Refuses inputs that the backends would get wrong in silence.

    JAX turns an id out of range into NaN and every backend takes -1 for the last row.

    Args:
        inputs: a dictionary; of the values only numpy arrays are looked at.
        config: the `BertConfig` that sets the limits.
        optional: keys that it may have beside `INPUTS`.

    Raises:
        ValueError: if a key is missing or unknown, a value out of range, or a row too
            long.
    """
    check_keys(inputs, optional=optional)
    limits = {
        "token_ids": ("vocabulary_size", config.vocabulary_size),
        "segment_ids": ("num_segments", config.num_segments),
        "padding_mask": ("", np.inf),  # as many texts as a row holds
    }
    for key, (limit_name, limit) in limits.items():
        values = inputs[key]
        if not isinstance(values, np.ndarray) or values.size == 0:
            continue
        if values.dtype.kind not in "iub":
            raise ValueError(f"`{key}` must be integers. Received: {values.dtype}.")
        if values.ndim != 2:
            raise ValueError(
                f"`{key}` must have the shape (batch, length). "
                f"Received: {values.shape}."
            )
        if values.shape[1] > config.max_sequence_length:
            raise ValueError(
                f"A row may be at most max_sequence_length="
                f"{config.max_sequence_length} long. Received: `{key}` of shape "
                f"{values.shape}."
            )
        if values.min() < 0 or values.max() >= limit:
            below = f" and below {limit_name}={limit}" if limit_name else ""
            raise ValueError(
                f"`{key}` must be at least 0{below}. Received: values from "
                f"{values.min()} to {values.max()}."
            )


def _layers(config, remat, dtype):
    """Returns the embeddings, the list of encoder layers, and the pooler."""
    embeddings = BertEmbeddings(
        config.vocabulary_size,
        config.hidden_dim,
        config.max_sequence_length,
        config.num_segments,
        config.dropout,
        config.layer_norm_epsilon,
        config.initializer_range,
        dtype=dtype,
        name="embeddings",
    )
    encoder_layers = [
        BertEncoderLayer(
            config.hidden_dim,
            config.num_heads,
            config.intermediate_dim,
            config.activation,
            config.dropout,
            config.attention_dropout,
            config.layer_norm_epsilon,
            config.initializer_range,
            remat,
            dtype=dtype,
            name=f"encoder_layer_{index}",
        )
        for index in range(config.num_layers)
    ]
    pooler = BertPooler(
        config.hidden_dim, config.initializer_range, dtype=dtype, name="pooler"
    )
    return embeddings, encoder_layers, pooler
