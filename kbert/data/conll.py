"""Files of tagged words, a word a line, as CoNLL-2003 and its successors have them.

A blank line ends a sentence. Of the columns, which blanks or a tab separate, the first
is the word and the last its tag. A line "-DOCSTART-" begins a document; it is no
sentence. (Tjong Kim Sang and De Meulder 2003.)
"""

import dataclasses
import os
import pathlib
import re
from collections.abc import Sequence

from kbert.data.rows import name_rows, read_text

DOCUMENT = "-DOCSTART-"
OUTSIDE = "O"


@dataclasses.dataclass(frozen=True)
class ConllReport:
    """What a file of tagged words holds.

    Args:
        path: the file.
        num_sentences: sentences that were read.
        num_words: their words.
        num_documents: 1 where nothing marks them.
        scheme: of the tags in the file: "BIO", "IOB1", "IOBES"; "" where they mark no
            entities.
        notes: what a reader should know.
    """

    path: str
    num_sentences: int
    num_words: int
    num_documents: int
    scheme: str
    notes: list[str]

    def lines(self) -> list[str]:
        """The report as sentences, one a line."""
        told = (
            f"{self.path}: {self.num_sentences:,} sentences of {self.num_words:,} "
            f"words, {self.num_documents:,} document"
            f"{'s' if self.num_documents != 1 else ''}."
        )
        return [told, *self.notes]


@dataclasses.dataclass(frozen=True)
class Conll:
    """The sentences of a file.

    Args:
        words: for each of N sentences its words.
        tags: for each of them a tag a word; B-, I- and O where the file has IOB1.
        documents: N numbers of the documents that they stand in, from 0.
        report: what was read.
    """

    words: list[list[str]]
    tags: list[list[str]]
    documents: list[int]
    report: ConllReport


def read_conll(path: str | os.PathLike) -> Conll:
    r"""Reads a file of tagged words.

    Args:
        path: the file, UTF-8.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8, a line has no tag, or there is no word.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "eng.train"
    >>> _ = path.write_text("-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsits VB I-VP O\n")
    >>> conll = read_conll(path)
    >>> conll.words, conll.tags, conll.report.scheme
    ([['EU', 'sits']], [['B-ORG', 'O']], 'IOB1')
    >>> folder.cleanup()
    """
    path = pathlib.Path(path)
    content, _ = read_text(path, may_choose=False)
    words: list[list[str]] = []
    tags: list[list[str]] = []
    documents: list[int] = []
    untagged: list[int] = []
    document, sentence = 0, []
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        columns = _columns(line)
        if columns and columns[0] != DOCUMENT:
            if len(columns) < 2 or not (columns[0] and columns[-1].strip()):
                untagged.append(number)
            sentence.append((columns[0], columns[-1]))
            continue
        if sentence:
            words.append([word for word, _ in sentence])
            tags.append([tag for _, tag in sentence])
            documents.append(document)
            sentence = []
        document += bool(columns and words)
    if untagged or not words:
        lines = name_rows(untagged).replace("row", "line") if untagged else "all"
        raise ValueError(
            "A file of tagged words must have a word and its tag in every line but for "
            f"blank ones and {DOCUMENT}. Received: {path}, which lacks them in {lines}."
        )
    scheme = _scheme(tags)
    notes = []
    if scheme == "IOB1":
        tags = [_to_bio(sentence) for sentence in tags]
        notes.append(
            "Its tags are IOB1, and were made BIO: every entity begins with B-."
        )
    count = sum(len(sentence) for sentence in words)
    report = ConllReport(
        str(path), len(words), count, len(set(documents)), scheme, notes
    )
    return Conll(words, tags, documents, report)


def _columns(line: str) -> list[str]:
    """Returns the columns of a line: between tabs where there is one, else blanks."""
    line = line.removesuffix("\r")
    if not line.strip():
        return []
    return line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))


def _scheme(tags: Sequence[Sequence[str]]) -> str:
    """Returns how the tags mark entities."""
    letters = {tag[0] for sentence in tags for tag in sentence if tag[1:2] == "-"}
    if not letters & set("BIESLU"):
        return ""
    if letters & set("ESLU"):
        return "IOBES"
    return "BIO" if all(_is_bio(sentence) for sentence in tags) else "IOB1"


def _is_bio(tags: Sequence[str]) -> bool:
    """Returns whether no entity begins with I-."""
    return all(
        not tag.startswith("I-") or before[2:] == tag[2:]
        for before, tag in zip([OUTSIDE, *tags], tags, strict=False)
    )


def _to_bio(tags: Sequence[str]) -> list[str]:
    """Returns tags with B- where an entity begins."""
    return [
        f"B-{tag[2:]}" if tag.startswith("I-") and before[2:] != tag[2:] else tag
        for before, tag in zip([OUTSIDE, *tags], tags, strict=False)
    ]
