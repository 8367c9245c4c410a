"""Vocabularies: the file `vocab.txt`, the special tokens, and what is checked."""

import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping, Sequence

SPECIAL_TOKENS = {
    "unk": "[UNK]",
    "sep": "[SEP]",
    "pad": "[PAD]",
    "cls": "[CLS]",
    "mask": "[MASK]",
}
"""The spellings in Google's vocabularies, by the names that kbert gives the roles."""

_NUM_SHOWN = 5

# The largest of a BERT, LaBSE's, has 501,153 pieces in 5 MB. The longest word that
# Google's code cuts has 200 characters.
MAX_BYTES = 1 << 24
MAX_PIECES = 1 << 20
MAX_PIECE_LENGTH = 1000


def read_vocabulary(path: str | os.PathLike) -> list[str]:
    """Reads a `vocab.txt`: one piece a line, a piece's id is its line number.

    Args:
        path: the file.

    Returns:
        The pieces in the order of their ids.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is empty, not UTF-8, or larger than any BERT's.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            "`vocabulary` must be a list of pieces or the path of a vocab.txt. "
            f"Received: {str(path)!r}, and there is no such file."
        )
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(
            f"A vocabulary must have at most {MAX_BYTES} bytes. Received: {path} of "
            f"{path.stat().st_size} bytes."
        )
    return parse_vocabulary(path.read_bytes(), str(path))


def parse_vocabulary(data: bytes, name: str) -> list[str]:
    r"""Splits the content of a `vocab.txt` into pieces.

    Lines end with a line feed and nothing else: U+2028 or U+0085 inside a line belong
    to the piece (Google's Chinese vocabulary has U+2028 as piece 343). A byte-order
    mark is dropped, and so are blanks, tabs and carriage returns round a piece, as
    Google's `load_vocab` does. Blank lines keep their number; those after the last
    piece are no pieces.

    Args:
        data: the file's bytes.
        name: how errors call the file.

    Returns:
        The pieces in the order of their ids.

    Raises:
        ValueError: if there is no piece, a byte that is not UTF-8, or more or longer
            pieces than any BERT's.

    Example:
    >>> parse_vocabulary(b"[PAD]\r\n[UNK]\r\nthe\r\n", "vocab.txt")
    ['[PAD]', '[UNK]', 'the']
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A vocabulary must be UTF-8. Received: {name} with the byte "
            f"0x{data[error.start]:02x} at position {error.start}; "
            "save it again as UTF-8."
        ) from error
    lines = data.count(b"\n")
    if lines > MAX_PIECES:
        raise ValueError(
            f"A vocabulary must have at most {MAX_PIECES} pieces. Received: {name} of "
            f"{lines} lines."
        )
    pieces = [line.strip(" \t\r") for line in text.split("\n")]
    while pieces and not pieces[-1]:
        pieces.pop()
    if not pieces:
        raise ValueError(
            f"A vocabulary must hold at least the special tokens. Received: {name} "
            f"of {len(data)} bytes, without a single piece."
        )
    check_lengths(pieces, name)
    return pieces


def check_lengths(pieces: Iterable[str], name: str) -> None:
    """Refuses pieces from a file that are too long to be any.

    Args:
        pieces: the pieces.
        name: how errors call the file.

    Raises:
        ValueError: naming the longest.
    """
    longest = max(pieces, key=len)
    if len(longest) > MAX_PIECE_LENGTH:
        raise ValueError(
            f"A piece of a vocabulary must have at most {MAX_PIECE_LENGTH} characters. "
            f"Received: {name} with one of {len(longest)}: {longest[:40]!r}…"
        )


def write_vocabulary(vocabulary: Sequence[str]) -> bytes:
    """Returns the content of the `vocab.txt` that holds these pieces."""
    return "".join(f"{piece}\n" for piece in vocabulary).encode()


def check_vocabulary(vocabulary: Sequence[str]) -> tuple[str, ...]:
    """Checks pieces one by one, and tells of those that no text can reach.

    Duplicates and blank pieces keep their ids, since ids are line numbers; of
    duplicates the last is used (as in google-research/bert). One warning tells.

    Args:
        vocabulary: the pieces in the order of their ids.

    Returns:
        The same as a tuple.

    Raises:
        TypeError: if a piece is not a string.
        ValueError: if a piece holds a line feed or a lone surrogate, which no
            `vocab.txt` can hold, or if there is no piece.
    """
    vocabulary = tuple(vocabulary)
    if not vocabulary:
        raise ValueError(
            "A vocabulary must hold at least the special tokens. Received: "
            f"vocabulary={vocabulary!r}."
        )
    for index, piece in enumerate(vocabulary):
        if not isinstance(piece, str):
            raise TypeError(
                "Every piece of a vocabulary must be a string. Received: "
                f"{piece!r} of type {type(piece).__name__} at index {index}."
            )
    joined = "\n".join(vocabulary)
    if joined.count("\n") != len(vocabulary) - 1 or not _is_encodable(joined):
        for index, piece in enumerate(vocabulary):
            if "\n" in piece or not _is_encodable(piece):
                raise ValueError(
                    "A piece of a vocabulary must be valid Unicode without line "
                    f"feeds. Received: {piece!r} at index {index}."
                )
    _warn_of_unreachable(vocabulary)
    return vocabulary


def _is_encodable(text: str) -> bool:
    """Tells whether a string has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _warn_of_unreachable(vocabulary: tuple[str, ...]) -> None:
    """Warns once of blank and repeated pieces, with examples."""
    last = {piece: index for index, piece in enumerate(vocabulary)}
    blank = [index for index, piece in enumerate(vocabulary) if not piece]
    hidden = [
        (piece, index)
        for index, piece in enumerate(vocabulary)
        if piece and last[piece] != index
    ]
    told = []
    if hidden:
        examples = ", ".join(
            f"{piece!r} at {index}" for piece, index in hidden[:_NUM_SHOWN]
        )
        told.append(
            f"{len(hidden)} pieces come again later, and the last one is used: "
            f"{examples}"
        )
    if blank:
        examples = ", ".join(str(index) for index in blank[:_NUM_SHOWN])
        told.append(f"{len(blank)} are blank, so that no text gives them: {examples}")
    if told:
        warnings.warn(
            f"Of the {len(vocabulary)} pieces of the vocabulary {'; '.join(told)}. "
            "Ids stay line numbers.",
            stacklevel=4,
        )


def resolve_special_tokens(
    vocabulary: Sequence[str],
    special_tokens: Mapping[str, str] | None,
    extra_special_tokens: Sequence[str],
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Completes the spellings of the special tokens, and finds all in a vocabulary.

    Args:
        vocabulary: the pieces.
        special_tokens: spellings by role ("unk", "sep", "pad", "cls", "mask"), where
            they differ from Google's.
        extra_special_tokens: more tokens that are never cut into pieces.

    Returns:
        The spelling of every role, and the extra tokens.

    Raises:
        ValueError: if a role is unknown, or a token is not in the vocabulary.
        TypeError: if the extra tokens are one string.
    """
    special_tokens = dict(special_tokens or {})
    unknown = sorted(set(special_tokens) - set(SPECIAL_TOKENS))
    if unknown:
        raise ValueError(
            f"The keys of `special_tokens` must be among {list(SPECIAL_TOKENS)}. "
            f"Received: {unknown}. Name other tokens in `extra_special_tokens`."
        )
    if isinstance(extra_special_tokens, str):
        raise TypeError(
            "`extra_special_tokens` must be a sequence of strings. Received: the "
            f"string {extra_special_tokens!r}."
        )
    spellings = SPECIAL_TOKENS | special_tokens
    known = set(vocabulary)
    missing = {k: token for k, token in spellings.items() if token not in known}
    if missing:
        raise ValueError(
            "The vocabulary must hold every special token. Missing: "
            + ", ".join(f"{k}={token!r}" for k, token in missing.items())
            + f". Received: {len(vocabulary)} pieces, the first of them "
            f"{list(vocabulary[:_NUM_SHOWN])}. If the vocabulary spells them "
            'otherwise, say so: special_tokens={"unk": "<unk>", ...}.'
        )
    absent = [token for token in extra_special_tokens if token not in known]
    if absent or "" in extra_special_tokens:
        raise ValueError(
            "Every token of `extra_special_tokens` must be a piece of the "
            f"vocabulary. Received: {absent or ['']}, not among its "
            f"{len(vocabulary)} pieces."
        )
    return spellings, tuple(extra_special_tokens)
