"""Texts as words: what counts as such, and the pieces and windows they become.

A text comes as a list of words, or as a string that is cut into words here: at blanks,
at punctuation and round ideographs, as the tokenizer does before it cuts pieces. Of
every word the first piece stands for it (Devlin et al. 2018, section 5.3). A word that
vanishes in normalisation, such as a lone variation selector, is one [UNK], so that
words and tags stay in line. A text of more pieces than the model reads lies in windows
that overlap by half, and each of its pieces counts in the window that shows most of
what surrounds it; nothing is truncated.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Set, Sized
from typing import NamedTuple

import numpy as np

from kbert.preprocessing.packing import EncodedTexts, pack
from kbert.preprocessing.raw_text import is_tensorflow, read_raw
from kbert.preprocessing.rows import entries
from kbert.tokenization.encoding import as_text

# What stands for no word: any other token than a first piece, and a text's [CLS], by
# which texts in one row are told apart.
NO_WORD, TEXT_BEGINS = -1, -2


class RawWords(NamedTuple):
    """N texts as words.

    Attributes:
        texts: N strings; words that came as a list are joined by blanks.
        words: the words of each.
        spans: for each word `(start, end)`, characters of its text.
        are_given: whether the words came as lists.
    """

    texts: list[str]
    words: list[list[str]]
    spans: list[list[tuple[int, int]]]
    are_given: bool


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedWords:
    """N texts of words as pieces, in windows that the model can read.

    A text's positions are those of `[CLS] pieces [SEP]`, as if it lay in one window.

    Attributes:
        windows: the windows, those of one text after those of another.
        num_windows: int64 `(N,)`, windows of each text.
        row_splits: int64 `(N + 1,)`, where each text's positions begin, all laid end
            to end.
        sources: int64 `(row_splits[-1],)`, for each position the token of `windows`
            where it counts.
        word_splits: int64 `(N + 1,)`, where each text's words begin, all laid end to
            end.
        first_pieces: int64 `(word_splits[-1],)`, for each word the position of its
            first piece, in positions laid end to end.
    """

    windows: EncodedTexts
    num_windows: np.ndarray
    row_splits: np.ndarray
    sources: np.ndarray
    word_splits: np.ndarray
    first_pieces: np.ndarray

    def __len__(self) -> int:
        """N, the number of texts."""
        return len(self.num_windows)

    @property
    def num_split(self) -> int:
        """How many texts lie in more than one window."""
        return int((self.num_windows > 1).sum())

    def words_at(self) -> np.ndarray:
        """Returns the word that each token of the windows stands for.

        Returns:
            int64 `(windows.num_tokens,)`: the index of a word, all laid end to end;
            `TEXT_BEGINS` at every [CLS], `NO_WORD` elsewhere.
        """
        words = np.full(self.windows.num_tokens, NO_WORD, np.int64)
        words[self.windows.row_splits[:-1]] = TEXT_BEGINS
        words[self.sources[self.first_pieces]] = np.arange(len(self.first_pieces))
        return words

    def windows_of(self, texts) -> np.ndarray:
        """Returns the windows that some texts lie in, integers, in order.

        Args:
            texts: integers `(M,)`.
        """
        return entries(_splits(self.num_windows), texts)

    def select(self, texts) -> "EncodedWords":
        """Returns the texts at `texts`, integers `(M,)`, in that order."""
        chosen = self.windows_of(texts)
        windows = self.windows.select(chosen)
        moved = np.empty(self.windows.num_tokens, np.int64)  # where each token goes
        moved[entries(self.windows.row_splits, chosen)] = np.arange(windows.num_tokens)
        positions = entries(self.row_splits, texts)
        words = entries(self.word_splits, texts)
        row_splits = _splits(np.diff(self.row_splits)[texts])
        word_splits = _splits(np.diff(self.word_splits)[texts])
        shift = np.repeat(
            row_splits[:-1] - self.row_splits[texts], np.diff(word_splits)
        )
        return EncodedWords(
            windows,
            self.num_windows[texts],
            row_splits,
            moved[self.sources[positions]],
            word_splits,
            self.first_pieces[words] + shift,
        )


def read_words(x, tokenizer) -> RawWords:
    """Reads every kind of raw text or words.

    Args:
        x: a string; a sequence (list, array, Series) of strings; or one of lists of
            words, ragged tensors too. A sequence of strings is several texts.
        tokenizer: the `BertTokenizer` that says where a text's words end.

    Returns:
        `RawWords`.

    Raises:
        TypeError: if something is no text and no list of words; its index is named.
        ValueError: if there is no text, or a list has no words.
    """
    if isinstance(x, tuple | Mapping):
        raise TypeError(
            "Texts to tag must be a list of texts, or a list of lists of words; a "
            f"tuple or dictionary would be a pair. Received: a {type(x).__name__}."
        )
    if isinstance(x, str | bytes):
        return _cut(x, tokenizer)
    items = listed(x, "Texts")
    if not any(_is_list(item) for item in items):
        return _cut(items, tokenizer)
    words = []
    for index, item in enumerate(items):
        if not _is_list(item):
            raise TypeError(
                "Every text must be a list of words where one is. Received: "
                f"{item!r} as text {index}."
            )
        if not len(item):
            raise ValueError(
                f"Every text must have at least one word. Received: none in text "
                f"{index}."
            )
        words.append([as_text(word, (index, place)) for place, word in enumerate(item)])
    spans = []
    for text in words:
        ends = np.cumsum([len(word) + 1 for word in text]) - 1
        spans.append(
            [(int(e) - len(w), int(e)) for w, e in zip(text, ends, strict=True)]
        )
    return RawWords([" ".join(text) for text in words], words, spans, True)


def encode_words(raw: RawWords, tokenizer, max_length: int) -> EncodedWords:
    """Cuts words into pieces and lays them in windows.

    Args:
        raw: the words.
        tokenizer: a `BertTokenizer`.
        max_length: most positions of a window, with [CLS] and [SEP].

    Returns:
        `EncodedWords`.

    Raises:
        ValueError: if `max_length` leaves no room for a piece.
    """
    if max_length < 3:
        raise ValueError(
            "`sequence_length` must be at least 3, for [CLS], a piece and [SEP]. "
            f"Received: {max_length}."
        )
    pieces, counts = [], []
    for text in raw.words:
        found = [ids or [tokenizer.unk_id] for ids in tokenizer(text)]
        pieces.append([i for ids in found for i in ids])
        counts.append([len(ids) for ids in found])
    word_splits = _splits([len(text) for text in raw.words])
    row_splits = _splits([len(ids) + 2 for ids in pieces])
    room = max_length - 2
    begins = [_begins(len(ids), room) for ids in pieces]
    windows = pack(
        [
            ids[begin : begin + room]
            for ids, starts in zip(pieces, begins, strict=True)
            for begin in starts
        ],
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        max_length=max_length,
    )
    num_windows = np.array([len(starts) for starts in begins])
    firsts = windows.row_splits[_splits(num_windows)]
    sources = np.arange(row_splits[-1])
    for text, starts in enumerate(begins):
        part = slice(row_splits[text], row_splits[text + 1])
        if len(starts) == 1:
            sources[part] += firsts[text] - row_splits[text]
        else:
            sources[part] = firsts[text] + _sources(len(pieces[text]), starts, room)
    first_pieces = [
        row_splits[text] + 1 + _splits(lengths)[:-1]
        for text, lengths in enumerate(counts)
    ]
    return EncodedWords(
        windows,
        num_windows,
        row_splits,
        sources,
        word_splits,
        np.concatenate(first_pieces),
    )


def _cut(x, tokenizer) -> RawWords:
    """Cuts texts into words, as the tokenizer does."""
    texts, _, _ = read_raw(x)
    words, spans = [], []
    for text in texts:
        encoding, found = tokenizer.encode(text), []
        for piece, (start, end) in zip(encoding.pieces, encoding.offsets, strict=True):
            if found and piece.startswith("##") and len(piece) > 2:
                start = min(start, found[-1][0])
                found[-1] = (start, max(end, found[-1][1]))
            else:
                found.append((start, end))
        spans.append(found)
        words.append([text[start:end] for start, end in found])
    return RawWords(texts, words, spans, False)


def listed(x, what: str) -> list:
    """Returns the items of any sequence: a list, an array, a Series, a ragged tensor.

    Args:
        x: the sequence.
        what: what it holds, for the error.

    Raises:
        TypeError: if it is none.
    """
    if is_tensorflow(x):
        x = x.numpy()
    to_list = getattr(x, "to_list", None)  # pandas; TensorFlow's ragged values
    if to_list is not None:
        return to_list()
    sequence = isinstance(x, Iterable) and isinstance(x, Sized)
    if not sequence or isinstance(x, str | bytes | Mapping | Set):
        raise TypeError(
            f"{what} must be a list with an item for each text. Received: "
            f"{x!r} of type {type(x).__name__}."
        )
    return x.tolist() if isinstance(x, np.ndarray) else list(x)


def _is_list(item) -> bool:
    return isinstance(item, list | tuple | np.ndarray)


def _begins(count: int, room: int) -> list[int]:
    """Returns where the windows of `count` pieces begin, so many a window."""
    if count <= room:
        return [0]
    step = room - room // 2
    return [*range(0, count - room, step), count - room]


def _sources(count: int, begins: list[int], room: int) -> np.ndarray:
    """Returns which token stands for each position of a text of several windows.

    Args:
        count: pieces of the text.
        begins: the first piece of each window.
        room: pieces of a window.

    Returns:
        int64 `(count + 2,)`, counted from the first window's [CLS].
    """
    piece = np.arange(count)
    left = piece - np.array(begins)[:, None]  # (windows, count)
    window = np.minimum(left, room - 1 - left).argmax(axis=0)
    inside = window * (room + 2) + 1 + left[window, piece]
    return np.concatenate([[0], inside, [len(begins) * (room + 2) - 1]])


def _splits(lengths) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
