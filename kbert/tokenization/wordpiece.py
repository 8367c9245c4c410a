"""BertTokenizer: text to WordPiece ids, exactly as Google's `tokenization.py`."""

import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kbert import presets
from kbert.strict_json import errors_naming
from kbert.tokenization import files
from kbert.tokenization.encoding import Encoding, WordsEncoding, as_text
from kbert.tokenization.executor import WordPieceExecutor
from kbert.tokenization.normalizer import Normalizer
from kbert.tokenization.vocabulary import (
    check_vocabulary,
    read_vocabulary,
    resolve_special_tokens,
)


class BertTokenizer:
    """Cuts text into the WordPieces of a BERT vocabulary.

    Ids equal those of google-research/bert's `tokenization.py` (Wu et al. 2016, greedy
    longest match first) under Python 3.11, whatever Python runs. Text is untrusted:
    a literal "[SEP]" in it is three pieces of text unless `special_tokens_in_text`.

    Lower-casing with accent stripping also takes the voiced marks of Japanese kana
    and decomposes Hangul, as the released uncased weights expect.

    Args:
        vocabulary: the path of a `vocab.txt`, or the pieces in the order of their ids.
        lowercase: whether text is lower-cased; must be what the weights saw.
        strip_accents: whether accents are stripped (canonical decomposition, then
            removal of non-spacing marks); None follows `lowercase`.
        split_on_cjk: whether every CJK ideograph is a word of its own.
        special_tokens_in_text: whether special tokens spelled out in a text become
            their ids: the leftmost, of those the longest, before anything else.
        special_tokens: spellings by role ("unk", "sep", "pad", "cls", "mask"), where
            they differ from "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]".
        max_word_length: a word of more characters is one "[UNK]".
        extra_special_tokens: more pieces of the vocabulary that are special.

    Raises:
        FileNotFoundError: if `vocabulary` is a path without a file.
        TypeError: if an argument has the wrong type.
        ValueError: if a special token is not in the vocabulary, or a piece is invalid.

    Example:
    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    >>> tokenizer = BertTokenizer(pieces + ["un", "##aff", "##able", "!"])
    >>> tokenizer.tokenize("Unaffable!")
    ['un', '##aff', '##able', '!']
    >>> tokenizer(["unaffable", "!"])
    [[5, 6, 7], [8]]
    >>> tokenizer.encode("Un-aff").offsets
    [(0, 2), (2, 3), (3, 6)]
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike | Sequence[str],
        lowercase: bool = True,
        *,
        strip_accents: bool | None = None,
        split_on_cjk: bool = True,
        special_tokens_in_text: bool = False,
        special_tokens: Mapping[str, str] | None = None,
        max_word_length: int = 200,
        extra_special_tokens: Sequence[str] = (),
    ):
        if isinstance(vocabulary, (str, os.PathLike)):
            vocabulary = read_vocabulary(vocabulary)
        _check_options(
            max_word_length,
            lowercase=lowercase,
            strip_accents=False if strip_accents is None else strip_accents,
            split_on_cjk=split_on_cjk,
            special_tokens_in_text=special_tokens_in_text,
        )
        self.vocabulary = check_vocabulary(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_on_cjk = split_on_cjk
        self.special_tokens_in_text = special_tokens_in_text
        self.special_tokens, self.extra_special_tokens = resolve_special_tokens(
            self.vocabulary, special_tokens, extra_special_tokens
        )
        self.max_word_length = max_word_length
        self._ids = {piece: index for index, piece in enumerate(self.vocabulary)}
        self.normalizer = Normalizer(
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else strip_accents,
            split_on_cjk=split_on_cjk,
        )
        self._executor = WordPieceExecutor(
            self._ids,
            self.normalizer,
            special_pieces=self.special_pieces if special_tokens_in_text else (),
            unk_id=self.unk_id,
            max_word_length=max_word_length,
        )

    @property
    def vocabulary_size(self) -> int:
        """The number of pieces; every id is below it."""
        return len(self.vocabulary)

    @property
    def pad_id(self) -> int:
        """The id of the piece that fills unused positions."""
        return self._ids[self.special_tokens["pad"]]

    @property
    def unk_id(self) -> int:
        """The id of a word that the vocabulary cannot spell."""
        return self._ids[self.special_tokens["unk"]]

    @property
    def cls_id(self) -> int:
        """The id of the piece that begins a sequence."""
        return self._ids[self.special_tokens["cls"]]

    @property
    def sep_id(self) -> int:
        """The id of the piece that ends a text."""
        return self._ids[self.special_tokens["sep"]]

    @property
    def mask_id(self) -> int:
        """The id of the piece that hides another in pre-training."""
        return self._ids[self.special_tokens["mask"]]

    @property
    def special_pieces(self) -> tuple[str, ...]:
        """The special tokens' spellings, each once, the extra ones last."""
        spellings = [*self.special_tokens.values(), *self.extra_special_tokens]
        return tuple(dict.fromkeys(spellings))

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of all special tokens, in the order of `special_pieces`."""
        return tuple(self._ids[piece] for piece in self.special_pieces)

    def __call__(self, texts: str | bytes | Iterable) -> list:
        """Turns texts into ids, without [CLS] and [SEP].

        Args:
            texts: one text, any sequence of texts (list, array, Series), or rows of
                texts (nested lists, a matrix). A text is a `str`, or UTF-8 `bytes`.

        Returns:
            The ids of one text, in as many lists as `texts` has axes.

        Raises:
            TypeError: if a text is neither `str` nor `bytes`; names its index.
            ValueError: if bytes are not UTF-8; names the position.
        """
        if getattr(texts, "ndim", 1) != 1:  # a matrix, or one text as an array
            texts = np.asarray(texts).tolist()
        if isinstance(texts, (str, bytes)):
            return self._executor.ids(as_text(texts))
        if not isinstance(texts, Iterable) or isinstance(texts, (Mapping, set)):
            raise TypeError(
                "`texts` must be a string or a sequence of strings. Received: "
                f"{texts!r} of type {type(texts).__name__}."
            )
        find = self._executor.ids
        return [
            find(text) if type(text) is str else self._ids_of_item(text, index)
            for index, text in enumerate(texts)
        ]

    def _ids_of_item(self, item, index: int) -> list:
        """Returns the ids of one item of a sequence: a text, or a row of texts."""
        if not isinstance(item, (list, tuple, np.ndarray)):
            return self._executor.ids(as_text(item, index))
        return [
            self._executor.ids(as_text(text, (index, column)))
            for column, text in enumerate(item)
        ]

    def tokenize(self, text: str | bytes) -> list[str]:
        """Cuts one text into pieces, as the vocabulary spells them."""
        return [self.vocabulary[i] for i in self._executor.ids(as_text(text))]

    def encode(self, text: str | bytes) -> Encoding:
        """Cuts one text into pieces that know where they come from.

        Args:
            text: a `str`, or UTF-8 `bytes`; offsets count characters, not bytes.

        Returns:
            An `Encoding` of ids, pieces and offsets.
        """
        traced = list(self._executor.trace(as_text(text)))
        ids = [i for i, _ in traced]
        pieces = [self.vocabulary[i] for i in ids]
        return Encoding(ids, pieces, [span for _, span in traced])

    def encode_words(self, words: Sequence[str | bytes]) -> WordsEncoding:
        """Cuts words that were split beforehand, as tagged data has them.

        Args:
            words: the words of one text; each is cut as a text of its own.

        Returns:
            A `WordsEncoding` of ids, pieces, word indices and offsets in the word.
        """
        encodings = [self.encode(as_text(w, index)) for index, w in enumerate(words)]
        return WordsEncoding(
            [i for encoding in encodings for i in encoding.ids],
            [piece for encoding in encodings for piece in encoding.pieces],
            [n for n, encoding in enumerate(encodings) for _ in encoding.ids],
            [span for encoding in encodings for span in encoding.offsets],
        )

    def decode(self, ids: Iterable[int]) -> str:
        """Joins pieces: one blank between words, none before a continuation.

        Nothing else is added or removed, and special tokens stay, so that the result
        depends on the pieces alone. A continuation that follows no word (at the
        beginning, or after a special token) keeps its "##".

        Args:
            ids: ids below `vocabulary_size`.

        Returns:
            The text; blanks of the original that were no word borders are not known.

        Raises:
            ValueError: if an id is out of range; names its position.
        """
        special, joined, follows_word = set(self.special_ids), [], False
        for position, i in enumerate(ids):
            piece = self.id_to_piece(i, position)
            if follows_word and piece.startswith("##") and len(piece) > 2:
                joined[-1] += piece[2:]
            else:
                joined.append(piece)
            follows_word = i not in special
        return " ".join(joined)

    def piece_to_id(self, piece: str) -> int:
        """Returns the id of a piece.

        Raises:
            ValueError: if it is not in the vocabulary.
        """
        if piece not in self._ids:
            raise ValueError(
                "The piece must be in the vocabulary. Received: "
                f"{piece!r}, not among its {self.vocabulary_size} pieces."
            )
        return self._ids[piece]

    def id_to_piece(self, i: int, position: int | None = None) -> str:
        """Returns the piece with an id.

        Args:
            i: the id.
            position: where the id stands in a sequence, for the error.

        Raises:
            ValueError: if the id is negative, or not below `vocabulary_size`.
        """
        if not 0 <= i < self.vocabulary_size:
            where = "" if position is None else f" at position {position}"
            raise ValueError(
                f"An id must be at least 0 and below {self.vocabulary_size}, the "
                f"size of the vocabulary. Received: {i}{where}."
            )
        return self.vocabulary[i]

    def get_config(self) -> dict:
        """Returns every argument, the vocabulary included, as JSON can hold it."""
        return {
            "vocabulary": list(self.vocabulary),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_on_cjk": self.split_on_cjk,
            "special_tokens_in_text": self.special_tokens_in_text,
            "special_tokens": dict(self.special_tokens),
            "max_word_length": self.max_word_length,
            "extra_special_tokens": list(self.extra_special_tokens),
        }

    @classmethod
    def from_config(cls, config: dict) -> "BertTokenizer":
        """Makes a tokenizer from what `get_config` returned."""
        return cls(**config)

    def __reduce__(self):
        """Pickles and copies by configuration: tables and cache are made anew."""
        return type(self).from_config, (self.get_config(),)

    @classmethod
    def from_preset(cls, spec: str | os.PathLike) -> "BertTokenizer":
        """Reads the tokenizer of a preset, named as for `presets.find_preset`."""
        return cls.from_files(presets.find_preset(spec))

    @classmethod
    def from_files(cls, preset: presets.Preset) -> "BertTokenizer":
        """Reads the tokenizer in a preset (see `files.read_tokenizer`)."""
        with errors_naming(preset.folder):
            return cls(**files.read_tokenizer(preset))

    def to_files(self, model_max_length: int | None = None) -> dict[str, bytes]:
        """Returns the files of a preset that hold this tokenizer.

        Args:
            model_max_length: the positions of the model it goes with, if known;
                transformers truncates there.

        Returns:
            The contents of `vocab.txt`, `tokenizer_config.json` and
            `tokenizer.json`, by name; transformers reads them too.
        """
        return files.write_tokenizer(self.get_config(), model_max_length)


def _check_options(max_word_length: int, **switches: bool) -> None:
    """Checks the arguments that are plain values."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise TypeError(
                f"`{name}` must be True or False. Received: {name}={value!r}."
            )
    if isinstance(max_word_length, bool) or not isinstance(max_word_length, int):
        raise TypeError(
            "`max_word_length` must be an integer. Received: "
            f"max_word_length={max_word_length!r}."
        )
    if max_word_length < 1:
        raise ValueError(
            "`max_word_length` must be at least 1. Received: "
            f"max_word_length={max_word_length}."
        )
