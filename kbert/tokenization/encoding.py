"""What goes into a tokenizer and what comes out."""

from typing import NamedTuple


class Encoding(NamedTuple):
    """One text cut into pieces.

    Args:
        ids: the id of each piece.
        pieces: the pieces as the vocabulary spells them.
        offsets: for each piece `(start, end)`, the smallest span of characters of
            the original string whose normalisation holds the piece; for an [UNK],
            the span of the word that is not in the vocabulary.
    """

    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]


class WordsEncoding(NamedTuple):
    """A text that came as words, cut into pieces.

    Args:
        ids: the id of each piece.
        pieces: the pieces as the vocabulary spells them.
        word_indices: for each piece, the index of the given word it belongs to.
        offsets_in_word: for each piece `(start, end)`, the span inside that word.
    """

    ids: list[int]
    pieces: list[str]
    word_indices: list[int]
    offsets_in_word: list[tuple[int, int]]


def as_text(text, index: int | tuple[int, int] | None = None) -> str:
    """Returns a text as a string, or says why it is none.

    Args:
        text: a `str`, or `bytes` in UTF-8.
        index: where it stands in a sequence or in rows of texts, for the error.

    Raises:
        TypeError: if it is neither.
        ValueError: if bytes are not UTF-8; names the position.
    """
    if isinstance(text, str):
        return text
    where = "" if index is None else f" at index {index}"
    if not isinstance(text, bytes):
        raise TypeError(
            "A text must be a string, or bytes in UTF-8. Received: "
            f"{text!r} of type {type(text).__name__}{where}."
        )
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            "A text given as bytes must be UTF-8. Received: the byte "
            f"0x{text[error.start]:02x} at position {error.start} of the text{where}; "
            "decode it with its own encoding first."
        ) from error
