"""Part the documents of a corpus in two: to learn from, and to judge by."""

import pathlib
import zlib
from collections.abc import Iterable

from kbert.data.corpus import CorpusFormat, read_corpus

# One document in so many is held out, by a checksum of its text: the same ones in every
# run, whatever else the corpus holds. A novel is never: it would take too much away.
ONE_IN = 20
LONGEST = 100_000  # characters


def is_held_out(document: list[str]) -> bool:
    """Say whether a document, its paragraphs, is to judge by."""
    text = "\n".join(document)
    return len(text) <= LONGEST and zlib.crc32(text.encode()) % ONE_IN == 0


def part(sources: list[str], learn: pathlib.Path, held_out: pathlib.Path) -> list[int]:
    """Write the documents of some files into two, a paragraph a line.

    Args:
        sources: files of paragraphs, with blank lines between documents.
        learn: the file to learn from.
        held_out: the file to judge by.

    Returns:
        How many documents and how many words are in each: two numbers, then two.
    """
    counts = [0, 0, 0, 0]
    with learn.open("w", encoding="utf-8") as first:
        with held_out.open("w", encoding="utf-8") as second:
            for document in documents(sources):
                judges = is_held_out(document)
                file = second if judges else first
                file.writelines(f"{paragraph}\n" for paragraph in [*document, ""])
                counts[2 * judges] += 1
                counts[2 * judges + 1] += sum(len(each.split()) for each in document)
    return counts


def documents(sources: list[str]) -> Iterable[list[str]]:
    """Yield the paragraphs of every document."""
    for document in read_corpus(sources, CorpusFormat("paragraphs"), split=False):
        yield list(document)
