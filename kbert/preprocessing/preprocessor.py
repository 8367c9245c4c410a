"""From raw text to `token_ids`, `segment_ids` and `padding_mask`."""

import functools
from collections.abc import Callable

import keras
import numpy as np

from kbert.config import BertConfig
from kbert.preprocessing.graph_packing import TextGraph, as_tensors, is_symbolic
from kbert.preprocessing.masking import check_blanks, ids_with_blanks
from kbert.preprocessing.packing import (
    EncodedTexts,
    check_long_text,
    check_room,
    pack,
)
from kbert.preprocessing.raw_text import (
    RawTexts,
    is_raw,
    is_tensorflow,
    read_raw,
    split_pair,
)
from kbert.preprocessing.rows import lay, one_a_row
from kbert.presets import find_preset
from kbert.tokenization.wordpiece import BertTokenizer

# Texts tokenized at once, so that Python lists of ids never hold a whole corpus.
_CHUNK = 8192


@keras.saving.register_keras_serializable(package="kbert")
class BertPreprocessor(keras.layers.Layer):
    """Turns text into what BERT reads: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

    Takes strings on every backend, and TensorFlow string tensors wherever TensorFlow
    is installed: `dataset.map(preprocessor)` computes the same ids inside the graph.
    The text is untrusted: how special tokens in it are read is the tokenizer's choice.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: S, the width of the result. None for the longest text of the
            batch, `max_sequence_length` at most.
        max_sequence_length: positions of the model.
        long_text: "truncate" keeps the beginning of a text that is too long,
            "head_tail" its first quarter and the rest from its end. Of a pair the
            longer text loses tokens first.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        x: a string, a list (numpy array, pandas Series, …) of strings or UTF-8 bytes,
            or a pair: the tuple (firsts, seconds) or `{"first": …, "second": …}`. Or
            the same with TensorFlow string tensors of rank 0 or 1.

    Returns:
        Dictionary of int32 arrays `(B, S)`, or `(S,)` for one string: `token_ids`,
        `segment_ids` (1 behind the first [SEP]) and `padding_mask` (0 where there is
        padding). Numpy arrays; TensorFlow tensors where `x` holds such.

    Raises:
        TypeError: if something is no text; its index is named.
        ValueError: if there is no text, `x` could mean two things, or a length is out
            of range.

    Example:
    >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film"]
    >>> preprocessor = BertPreprocessor(BertTokenizer(vocabulary), sequence_length=6)
    >>> preprocessor(["a film"])["token_ids"].tolist()
    [[2, 5, 6, 3, 0, 0]]
    >>> preprocessor((["a film"], ["a"]))["segment_ids"].tolist()
    [[0, 0, 0, 0, 1, 1]]
    """

    def __init__(
        self,
        tokenizer,
        sequence_length=None,
        *,
        max_sequence_length=512,
        long_text="truncate",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_long_text(long_text)
        check_room(max_sequence_length, pair=False, name="max_sequence_length")
        if sequence_length is not None:
            check_room(sequence_length, pair=False, name="sequence_length")
            if sequence_length > max_sequence_length:
                raise ValueError(
                    "`sequence_length` must not exceed the positions of the model. "
                    f"Received: sequence_length={sequence_length}, "
                    f"max_sequence_length={max_sequence_length}."
                )
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.max_sequence_length = max_sequence_length
        self.long_text = long_text
        self._graph = None  # the tokenizer as TensorFlow ops, made when first needed

    @property
    def max_length(self) -> int:
        """Most positions a text takes: `sequence_length`, else the model's."""
        if self.sequence_length is None:
            return self.max_sequence_length
        return self.sequence_length

    def encode(self, x) -> EncodedTexts:
        """Tokenizes and packs raw text, without padding.

        Args:
            x: as in a call.

        Returns:
            `EncodedTexts`; its `num_truncated` says how many texts were too long.

        Raises:
            TypeError, ValueError: as in a call.
        """
        return self._encode(read_raw(x), self.tokenizer)

    def encode_blanks(self, x) -> EncodedTexts:
        """Does the same for texts in which "[MASK]" marks what is to be filled in.

        Args:
            x: as in a call.

        Raises:
            TypeError, ValueError: as in a call; also if a text has no [MASK], or one
                that lies behind the tokens that fit.
        """
        texts = read_raw(x)
        encoded = self._encode(
            texts, functools.partial(ids_with_blanks, self.tokenizer)
        )
        check_blanks(texts, encoded, self.tokenizer)
        return encoded

    def _encode(self, texts: RawTexts, tokenize: Callable) -> EncodedTexts:
        parts = []
        for at in range(0, len(texts.first), _CHUNK):
            second = None
            if texts.second is not None:
                second = tokenize(texts.second[at : at + _CHUNK])
            first = tokenize(texts.first[at : at + _CHUNK])
            parts.append(pack(first, second, **self._rule()))
        return EncodedTexts.concatenate(parts)

    def _rule(self) -> dict:
        return {
            "cls_id": self.tokenizer.cls_id,
            "sep_id": self.tokenizer.sep_id,
            "max_length": self.max_length,
            "long_text": self.long_text,
        }

    def __call__(self, x, *, training=None):
        """Preprocesses a batch or one text, before Keras could convert it.

        Args:
            x: see the class.
            training: without effect; functional models pass it to every layer.

        Returns:
            See the class.
        """
        parts = [part for part in split_pair(x) if part is not None]
        if any(isinstance(part, keras.KerasTensor) for part in parts):
            return self._in_functional_model(x, parts)
        from_tensorflow = any(map(is_tensorflow, parts))
        if not is_raw(x):
            raise TypeError(_not_text(parts))
        if from_tensorflow and any(map(is_symbolic, parts)):
            return self.call(x)
        texts = read_raw(x)
        encoded = self._encode(texts, self.tokenizer)
        width = self.sequence_length or int(encoded.lengths.max())
        count = len(encoded)
        placement = one_a_row(count, width)
        batch = lay(encoded, np.arange(count), placement, self.tokenizer.pad_id)
        del batch["first_positions"]  # that of the tasks' batches
        if texts.scalar:
            batch = {name: array[0] for name, array in batch.items()}
        return as_tensors(batch) if from_tensorflow else batch

    def call(self, x):
        """Preprocesses symbolic TensorFlow strings, as `tf.data` passes them."""
        if self._graph is None:
            self._graph = TextGraph(self.tokenizer)
        return self._graph(
            *split_pair(x), sequence_length=self.sequence_length, **self._rule()
        )

    def _in_functional_model(self, x, parts):
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "Text inside a functional model needs the TensorFlow backend. Call "
                "the preprocessor on the text before the model, or put "
                "kbert.layers.SentencePairPacker into it, which takes ids. Received: "
                f"{parts[0]} on the backend {keras.backend.backend()!r}."
            )
        if not is_raw(x):
            raise TypeError(_not_text(parts))
        return super().__call__(x)

    def get_config(self):
        """Returns every constructor argument, the vocabulary included."""
        return {
            **super().get_config(),
            "tokenizer": self.tokenizer.get_config(),
            "sequence_length": self.sequence_length,
            "max_sequence_length": self.max_sequence_length,
            "long_text": self.long_text,
        }

    @classmethod
    def from_config(cls, config):
        """Returns the layer that `get_config` described."""
        tokenizer = BertTokenizer.from_config(config["tokenizer"])
        return cls(**{**config, "tokenizer": tokenizer})

    @classmethod
    def from_preset(cls, spec, **overrides):
        """Reads tokenizer and settings from a preset.

        Args:
            spec: as for `kbert.presets.find_preset`.
            **overrides: constructor arguments that replace the preset's.

        Raises:
            ValueError: as the constructor does.
        """
        preset = find_preset(spec)
        config = BertConfig.from_hugging_face(preset.read_json("config.json"))
        settings = {
            "tokenizer": BertTokenizer.from_files(preset),
            "max_sequence_length": config.max_sequence_length,
            **preset.metadata().get("preprocessing", {}),
        }
        return cls(**{**settings, **overrides})


def _not_text(parts) -> str:
    told = ", ".join(f"{type(part).__name__} of {_dtype(part)}" for part in parts)
    return (
        "BertPreprocessor takes text: strings, or tensors of strings. For ids use "
        f"kbert.layers.SentencePairPacker. Received: {told}."
    )


def _dtype(part) -> str:
    return f"dtype {part.dtype}" if hasattr(part, "dtype") else repr(part)[:60]
