"""Fixed features of every token, for a model of one's own (section 5.3)."""

import dataclasses
import math
import numbers

import keras
import numpy as np

from kbert.backbone import INPUTS, freeze, frozen_paths
from kbert.layers.attention import visible
from kbert.preprocessing.raw_text import is_raw
from kbert.tasks import feeding, token_feed
from kbert.tasks.base import BertTask

# The six rows of table 7, of a model of L layers: layers as transformers counts them (0
# for the embeddings), and whether they are summed up or laid end to end.
TABLE_7 = {
    "embeddings": ((0,), "concatenated"),
    "second_to_last": ((-2,), "concatenated"),
    "last": ((-1,), "concatenated"),
    "weighted_sum_last_four": ((-1, -2, -3, -4), "summed"),
    "concat_last_four": ((-1, -2, -3, -4), "concatenated"),
    "weighted_sum_all": (None, "summed"),  # all but the embeddings
}


@dataclasses.dataclass(frozen=True)
class TokenFeatures:
    """The features of one text.

    Args:
        pieces: its tokens, with [CLS] and [SEP].
        vectors: float32 (tokens, D), a vector for each.
    """

    pieces: tuple[str, ...]
    vectors: np.ndarray = dataclasses.field(repr=False)


@keras.saving.register_keras_serializable(package="kbert")
class BertFeatureExtractor(BertTask):
    """The hidden states of chosen layers at every token, with weights that stay fixed.

    For a BiLSTM, a CRF or a nearest-neighbour search over what `features` or `predict`
    return; or, called on the inputs of a `BertPreprocessor`, as the first layer of a
    Keras model of your own. The backbone is frozen, so give it one of its own; set
    `backbone.trainable` to train it there.

    Args:
        backbone: a `BertBackbone`; it is frozen.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only.
        layers: numbers of hidden states, laid end to end in this order: 0 for the
            embeddings, 1 to L for the layers, or -1 for the last and so on; or a
            combination of the paper's table 7: "embeddings", "second_to_last", "last",
            "weighted_sum_last_four", "concat_last_four" or "weighted_sum_all".
        mix: the weights of a weighted sum, one a layer, from the last one down, of all
            from the first one up; None for equal ones, whose sum is 1.
        name: of the model.

    `from_preset` takes `layers`, `mix` and `long_text`.

    Call arguments, a dictionary: those of `BertBackbone`.

    Returns:
        Features, float32 (B, S, D), for a row of one or several texts; D is H for each
        layer that is laid end to end. `predict` returns (texts, S, D): those of [CLS],
        of each piece, and of [SEP]; 0 behind the end.

    Raises:
        TypeError, ValueError: if a layer is none of the backbone's, or `mix` is not one
            number a layer of a weighted sum.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=2, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> extractor = BertFeatureExtractor(backbone, layers=[-1, -2])
    >>> ids = np.array([[2, 5, 3, 0]], "int32")
    >>> inputs = {"token_ids": ids, "padding_mask": np.array([[1, 1, 1, 0]], "int32")}
    >>> extractor.predict(inputs, verbose=0).shape
    (1, 4, 16)

    Reference: Devlin et al. 2018, section 5.3 and table 7; google-research/bert
    `extract_features.py`.
    """

    uses_pooler = False
    behind_end = 0
    preset_arguments = ("layers", "mix", "long_text")

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        layers="concat_last_four",
        mix=None,
        name=None,
        **kwargs,
    ):
        chosen, shares = _check(layers, mix, len(backbone.encoder_layers))
        inputs = {key: backbone.input[key] for key in INPUTS}
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        states = _hidden_states(backbone, inputs, max(chosen))
        parts = [states[number] for number in chosen]
        if shares is not None:
            weighed = zip(shares, parts, strict=True)
            parts = [sum(share * part for share, part in weighed)]
        features = keras.ops.concatenate(parts, axis=-1) if parts[1:] else parts[0]
        super().__init__(
            {**inputs, "first_positions": first_positions},
            keras.layers.Identity(dtype="float32", name="features")(features),
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        backbone.trainable = False
        # Keras has the name `layers` for its own.
        self.combination = layers if isinstance(layers, str) else tuple(layers)
        self.mix = None if mix is None else tuple(map(float, mix))
        self.compile()

    def features(self, texts, layers=None, batch_size=None) -> list[TokenFeatures]:
        """Returns the features of every text's tokens, in order.

        Args:
            texts: a text, a list of texts, or a pair `(firsts, seconds)`.
            layers: as for the constructor; None for its own. A model is made for
                others: make an extractor of them to ask more than once.
            batch_size: texts a step.
        """
        model = self if layers is None else self._other(layers)
        preprocessor = self.require_preprocessor()
        encoded = preprocessor.encode(texts)
        values = model.predict(texts, batch_size=batch_size, verbose=0)
        vocabulary = preprocessor.tokenizer.vocabulary
        ids = np.split(encoded.token_ids, encoded.row_splits[1:-1])
        return [
            TokenFeatures(
                tuple(vocabulary[number] for number in numbers),
                vectors[: len(numbers)],
            )
            for numbers, vectors in zip(ids, values, strict=True)
        ]

    def _other(self, layers):
        """Returns an extractor of other layers; what is not frozen stays so."""
        trains, frozen = self.backbone.trainable, frozen_paths(self.backbone)
        other = BertFeatureExtractor(self.backbone, self.preprocessor, layers=layers)
        if trains:
            self.backbone.trainable = True
            freeze(self.backbone, frozen)
        return other

    def call(self, inputs, training=None, mask=None):
        """Runs the functional model; without dropout as long as all is frozen."""
        if not self.backbone.trainable_weights:
            training = False
        return super().call(inputs, training, mask)

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns texts in rows of one width; refuses to learn."""
        if targets:
            raise ValueError(
                "A BertFeatureExtractor has nothing to learn or to be judged by: use "
                "`features` or `predict`, and train a model of your own on what they "
                "return, or with the extractor as its first layer. Received: a call "
                "of `fit`, `evaluate` or their kin."
            )
        if not is_raw(x):
            return feeding.read(self, x, None, None, training, targets)
        return token_feed.tokens_of(self, self.require_preprocessor().encode(x))

    def default_loss(self):
        """Returns None: there is nothing to learn."""

    def default_metrics(self):
        """Returns none."""
        return []

    def head_weights(self):
        """Returns nothing: there is no head."""
        return {}

    def hugging_face_head(self):
        """Returns what transformers' `BertModel` reads."""
        return {"architectures": ["BertModel"]}

    def settings(self):
        """Returns the constructor's own arguments, which a preset keeps."""
        layers = self.combination
        return {
            "layers": layers if isinstance(layers, str) else list(layers),
            "mix": None if self.mix is None else list(self.mix),
        }

    def preset_metadata(self):
        """Returns the chosen layers."""
        return {"features": self.settings()}

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self.settings()}

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the layers asked for, or else those of the preset."""
        said = parts.preset.metadata().get("features", {})
        if asked["layers"] is not None:
            said = {}  # another combination has other weights
        told = {key: value for key, value in asked.items() if value is not None}
        return {**said, **told}, ""


def _hidden_states(backbone, inputs, deepest):
    """Returns the embeddings and the outputs of the first layers, each (B, S, H)."""
    states = [
        backbone.embeddings(
            inputs["token_ids"], inputs["segment_ids"], inputs["padding_mask"]
        )
    ]
    mask = visible(inputs["padding_mask"], backbone.config.left_to_right)
    for layer in backbone.encoder_layers[:deepest]:
        states.append(layer(states[-1], mask))
    return states


def _check(layers, mix, num_layers):
    """Returns the numbers of the layers, from 0, and the shares of a sum, or None."""
    summed = False
    if isinstance(layers, str):
        if layers not in TABLE_7:
            raise ValueError(
                f"`layers` must be a list of numbers or one of {list(TABLE_7)}. "
                f"Received: layers={layers!r}."
            )
        given, way = TABLE_7[layers]
        summed = way == "summed"
        layers = range(1, num_layers + 1) if given is None else given
    if not isinstance(layers, list | tuple | range) or not layers:
        raise TypeError(
            "`layers` must be a list of numbers, at least one, or a name of table 7. "
            f"Received: layers={layers!r}."
        )
    found = [_check_layer(number, num_layers) for number in layers]
    if not summed:
        if mix is not None:
            raise ValueError(
                "`mix` weighs the layers of a weighted sum. Received: "
                f"mix={mix!r} with layers that are laid end to end."
            )
        return found, None
    if mix is None:
        return found, (1 / len(found),) * len(found)
    if (
        not isinstance(mix, list | tuple)
        or not all(map(_is_number, mix))
        or (len(mix) != len(found))
    ):
        raise ValueError(
            f"`mix` must be {len(found)} numbers, one a layer. Received: {mix!r}."
        )
    return found, tuple(map(float, mix))


def _is_number(share) -> bool:
    return isinstance(share, numbers.Real) and math.isfinite(share)


def _check_layer(number, num_layers) -> int:
    """Returns the number of a hidden state, counted from the embeddings."""
    integer = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not integer or not -num_layers - 1 <= number <= num_layers:
        raise ValueError(
            f"A layer must be a number from {-num_layers - 1} to {num_layers}: 0 for "
            f"the embeddings, {num_layers} or -1 for the last. Received: {number!r}."
        )
    return int(number) % (num_layers + 1)
