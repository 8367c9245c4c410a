"""One vector a text, near to those of texts that mean the same."""

import functools

import keras
import numpy as np

from kbert.checkpoints import embedders
from kbert.layers.pooling import TextPooling
from kbert.preprocessing.choices import choices_of_arrays
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.raw_text import is_raw, read_raw, split_pair
from kbert.preprocessing.text_pairs import EncodedPairs, equal_texts, lay_pairs
from kbert.tasks import feeding
from kbert.tasks.base import BertTask
from kbert.tasks.compiling import layout_for
from kbert.tasks.feeds import Texts
from kbert.tasks.replicas import check_one_device
from kbert.training.contrastive import (
    InBatchAccuracy,
    InBatchNegatives,
    check_temperature,
)


@keras.saving.register_keras_serializable(package="kbert")
class BertEmbedder(BertTask):
    """The mean of a text's last hidden states, or another pooling, of length 1.

    `predict` and `embed` take texts. `fit` and `evaluate` take pairs that mean the same
    or belong together, a question and its answer for example: x is the pair of lists
    `(firsts, seconds)`, and there is no y. Each text is read by itself, and the second
    texts of the other pairs in a batch are what a first text's own is told from: large
    batches teach more. Loss and accuracy depend on the batches for the same reason.
    `kbert.training.contrastive` has the loss.

    The pooler has no part in this task: it stays as it is, untrained, and is not saved.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only.
        pooling: "mean" or "max" over the positions of a text, or "cls", what stands at
            [CLS], as `kbert.layers.pooling` has them.
        normalize: whether embeddings have the length 1.
        special_tokens: whether [CLS] and [SEP] count in "mean" and "max", as they do in
            sentence-transformers and KerasHub.
        temperature: of the loss.
        symmetric: whether in the loss the second texts look for their first ones too.
        name: of the model.

    `from_preset` takes all of these but the first two, and `long_text`. A folder of
    sentence-transformers or of KerasHub's `BertTextEmbedder` says how it pools.

    Call arguments, a dictionary: those of `BertBackbone`, and
        first_positions: int32 (texts,), where each text's [CLS] lies in the rows laid
            end to end; absent or None for one text a row.

    Returns:
        Embeddings, float32 (texts, H). Beside ready arrays for `fit`, each (N, 2, S).

    Raises:
        ValueError: if `pooling` is none, or `temperature` not positive.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> embedder = BertEmbedder(backbone)
    >>> ids = np.array([[2, 5, 3, 0]], "int32")
    >>> inputs = {"token_ids": ids, "padding_mask": np.array([[1, 1, 1, 0]], "int32")}
    >>> vectors = embedder.predict(inputs, verbose=0)
    >>> vectors.shape, round(float((vectors**2).sum()), 4)
    ((1, 8), 1.0)

    Reference: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084.
    """

    uses_pooler = False
    is_served = True
    preset_arguments = (
        "pooling",
        "normalize",
        "special_tokens",
        "temperature",
        "symmetric",
        "long_text",
    )

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        pooling="mean",
        normalize=True,
        special_tokens=True,
        temperature=0.05,
        symmetric=False,
        name=None,
        **kwargs,
    ):
        check_temperature(temperature)
        if pooling == "cls":
            backbone.config.require_both_directions("BertEmbedder with pooling='cls'")
        inputs = dict(backbone.input)
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        # Float32 in every policy: the loss is computed from these.
        head = TextPooling(
            pooling, normalize, special_tokens, dtype="float32", name="pooling"
        )
        embeddings = head(
            backbone.output["sequence_output"],
            inputs["segment_ids"],
            inputs["padding_mask"],
            first_positions,
        )
        super().__init__(
            {**inputs, "first_positions": first_positions},
            embeddings,
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        backbone.pooler.trainable = False
        self.pooling = pooling
        self.normalize = normalize
        self.special_tokens = special_tokens
        self.temperature = temperature
        self.symmetric = symmetric
        self.compile()

    def embed(self, texts, batch_size=None) -> np.ndarray:
        """Returns the embedding of every text, in order: float32 (N, H).

        Args:
            texts: a text, or a list of texts.
            batch_size: texts a step.
        """
        return self.predict(texts, batch_size=batch_size, verbose=0)

    def similarity(self, firsts, seconds, batch_size=None) -> np.ndarray:
        """Returns the cosine of every first with every second: float32 (N, M).

        Args:
            firsts: a text, a list of N texts, or their embeddings (N, H).
            seconds: a text, a list of M texts, or their embeddings (M, H).
            batch_size: texts a step.

        Raises:
            ValueError: if embeddings are not of the model's width.
        """
        one, other = (self._unit(each, batch_size) for each in (firsts, seconds))
        return one @ other.T

    def _unit(self, given, batch_size):
        """Returns embeddings of length 1, (N, H), of texts or of embeddings."""
        vectors = given
        if is_raw(given):
            vectors = self.embed(given, batch_size)
        vectors = keras.ops.convert_to_numpy(vectors).astype("float32")
        width = self.backbone.config.hidden_dim
        if vectors.ndim != 2 or vectors.shape[1] != width:
            raise ValueError(
                f"Embeddings must have the shape (N, {width}). Received: "
                f"{vectors.shape}."
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, 1e-12)

    # Data ----------------------------------------------------------------------------

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns texts to embed, or pairs to learn from; see `BertTask.read`."""
        if targets:
            return _read_pairs(self, x, y, sample_weight, training)
        if is_raw(x) and split_pair(x)[1] is not None:
            raise ValueError(
                "Texts are embedded one by one: pass a list of them, or two lists to "
                "`similarity`. Received: a pair."
            )
        return feeding.read(self, x, None, None, training, targets)

    def default_loss(self):
        """Returns the cross-entropy of finding each text's partner in the batch."""
        return InBatchNegatives(self.temperature, self.symmetric)

    def default_metrics(self):
        """Returns how often the partner is the most alike in the batch."""
        return [InBatchAccuracy()]

    # Files ---------------------------------------------------------------------------

    def head_weights(self):
        """Returns nothing: pooling has no weights."""
        return {}

    def hugging_face_head(self):
        """Returns what transformers and sentence-transformers read."""
        return {"architectures": ["BertModel"]}

    def serving_outputs(self, embeddings):
        """Returns the one output that `kbert.export.saved_model` lists."""
        return {"embedding": embeddings}

    def settings(self):
        """Returns the constructor's own arguments, which a preset keeps."""
        return {
            "pooling": self.pooling,
            "normalize": self.normalize,
            "special_tokens": self.special_tokens,
            "temperature": self.temperature,
            "symmetric": self.symmetric,
        }

    def preset_metadata(self):
        """Returns the settings of embedding."""
        return {"embedding": self.settings()}

    def preset_files(self):
        """Returns the files by which sentence-transformers knows how to embed."""
        if not self.special_tokens:
            return {}  # it has no such pooling
        return embedders.files(
            self.pooling,
            self.normalize,
            self.backbone.config.hidden_dim,
            self.require_preprocessor().max_length,
        )

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self.settings()}

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the settings asked for, or else those of the preset.

        A length that the preset says for embeddings is the preprocessor's, where no
        other is asked for.
        """
        said = dict(embedders.saved_settings(parts.preset) or {})
        longest = said.pop("longest", None)
        preprocessor = parts.preprocessor
        if longest is not None and preprocessor.sequence_length is None:
            longest = min(longest, preprocessor.max_sequence_length)
            preprocessor.max_sequence_length = longest
        told = {key: value for key, value in asked.items() if value is not None}
        return {**said, **told}, ""


def _read_pairs(task, x, y, sample_weight, training) -> Texts:
    """Returns pairs of texts, or ready arrays (N, 2, S), as `fit` learns from them.

    Two texts lie one behind the other in a row, where the model has positions for both;
    else each in a row of its own.
    """
    check_one_device(task)
    if y is not None:
        raise ValueError(
            "An embedder learns from pairs without targets: pass x=(firsts, seconds), "
            "in a dataset ((firsts, seconds),), and no `y`. Received: a y of type "
            f"{type(y).__name__}."
        )
    if is_raw(x):
        texts = task.require_preprocessor().encode(_interleaved(x))
    else:
        encoded = choices_of_arrays(feeding.grouped_arrays(x, task.backbone.config))
        texts = encoded.texts
        if encoded.num_choices != 2:
            raise ValueError(
                "Ready arrays of pairs must have the shape (N, 2, S). Received: "
                f"{encoded.num_choices} texts beside each other."
            )
    apart = EncodedPairs(texts, together=False)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, len(apart))
    both = EncodedPairs(texts, together=True)
    fits = both.lengths.max() <= task.backbone.config.max_sequence_length
    packs = task.choices.rows != "single" and fits
    return Texts(
        both if packs else apart,
        equal_texts(texts),
        sample_weight,
        pad_id=task.backbone.config.pad_token_id,
        choose_layout=functools.partial(
            layout_for, task, training, rows="packed" if packs else "single"
        ),
        lay=lay_pairs,
        single=apart,
    )


def _interleaved(x) -> list[str]:
    """Returns the texts of raw pairs, those of one pair after those of another."""
    raw = read_raw(x)
    if raw.second is None:
        raise ValueError(
            "An embedder learns from pairs: x=(firsts, seconds), two lists of equal "
            "length. Received: single texts."
        )
    return [text for pair in zip(raw.first, raw.second, strict=True) for text in pair]
