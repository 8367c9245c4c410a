"""Running text to documents of sentences, streamed: what pre-training learns from.

The first format is that of google-research/bert's `create_pretraining_data.py`: one
sentence a line, a blank line between documents. Its reader drops empty documents and
bytes that are not UTF-8; so does this one, but it counts them.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Sequence

from kbert.data.corpus_files import DATASET, Piece, find_parts, read_lines

Document = list[str]
"""The sentences of a document, none of them blank."""


@dataclasses.dataclass(frozen=True)
class CorpusFormat:
    """How the files of a corpus are documents.

    Args:
        kind: "lines" for one sentence a line and blank lines between documents;
            "paragraphs" for one paragraph a line, which is split into sentences;
            "jsonl" for a JSON object a line, each a document; "auto" for "jsonl" where
            a file's name ends in .jsonl or .ndjson, else "lines". A folder that
            Hugging Face's `Dataset.save_to_disk` wrote is read as such.
        field: of a JSON object or of a row, where the text stands: a string, whose
            lines are paragraphs, or a list of sentences.
        language: of the text, as ISO 639-1 says ("en"), to split paragraphs by.
    """

    kind: str = "auto"
    field: str = "text"
    language: str = "en"


@dataclasses.dataclass
class CorpusReport:
    """What was found in a corpus, counted while it is read.

    Args:
        documents: that have a sentence.
        sentences: of these.
        empty_documents: left out.
        single_sentences: documents of one sentence.
        invalid_bytes: left out, since they were not UTF-8.
    """

    documents: int = 0
    sentences: int = 0
    empty_documents: int = 0
    single_sentences: int = 0
    invalid_bytes: int = 0

    def add(self, other: "CorpusReport") -> None:
        """Adds the counts of another part of the corpus."""
        for field in dataclasses.fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)

    def left_out(self) -> list[str]:
        """What was left out as sentences, one a line."""
        told = []
        if self.empty_documents:
            told.append(f"Left out {self.empty_documents:,} empty documents.")
        if self.invalid_bytes:
            told.append(f"Left out {self.invalid_bytes:,} bytes that were not UTF-8.")
        return told

    def lines(self) -> list[str]:
        """The report as sentences, one a line, warnings last."""
        told = [
            f"The corpus has {self.documents:,} documents of {self.sentences:,} "
            "sentences.",
            *self.left_out(),
        ]
        if self.documents and self.single_sentences == self.documents:
            told.append(
                "Every document has one sentence, so that no sentence has a next one. "
                "If these are paragraphs, read them as such; if blank lines stand "
                "between sentences, take them out."
            )
        elif self.documents == 1:
            told.append(
                "There is one document, so that no sentence can come from another: put "
                "blank lines between documents."
            )
        return told


def read_corpus(
    sources: str | os.PathLike | Sequence[str | os.PathLike],
    format: CorpusFormat | None = None,
    report: CorpusReport | None = None,
    *,
    split: bool = True,
) -> Iterator[Document]:
    r"""Yields the documents of a corpus one by one; memory is that of one document.

    Args:
        sources: files, folders of `datasets`, or patterns such as `wiki/**/*.gz`;
            .gz, .xz and .zst are unpacked on the way.
        format: how they are documents; None for Google's format or JSON lines.
        report: where to count what is found.
        split: whether paragraphs are split into sentences; else they stay whole.

    Raises:
        FileNotFoundError: if a source names no file.
        ValueError: if a file cannot be read as `format` says.
        ImportError: if a package that the format needs is missing.

    Example:
    >>> import pathlib, tempfile
    >>> from kbert.data.corpus import CorpusReport, read_corpus
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "corpus.txt"
    >>> _ = path.write_bytes(b"One.\nTwo\xff.\n\nOther.\n\n")
    >>> report = CorpusReport()
    >>> list(read_corpus(path, report=report))
    [['One.', 'Two.'], ['Other.']]
    >>> report.lines()
    ['The corpus has 2 documents of 3 sentences.',
     'Left out 1 bytes that were not UTF-8.']
    >>> folder.cleanup()
    """
    format = CorpusFormat() if format is None else format
    report = CorpusReport() if report is None else report
    for part in find_parts(sources, format.kind):
        yield from read_part(part, format, report, split=split)


def read_part(
    part: Sequence[Piece],
    format: CorpusFormat,
    report: CorpusReport,
    *,
    split: bool = True,
) -> Iterator[Document]:
    """Yields the documents of one part of a corpus; see `read_corpus`.

    Args:
        part: as `corpus_files.find_parts` returned it.
        format: how its files are documents.
        report: where to count what is found.
        split: whether paragraphs are split into sentences.
    """
    for piece in part:
        splitter = _whole
        if split and piece.kind != "lines":
            splitter = sentence_splitter(format.language)
        if piece.kind == DATASET:
            documents = _rows_of_dataset(piece, format, splitter)
        elif piece.kind == "jsonl":
            documents = _json_documents(piece, format, splitter, report)
        else:
            documents = _blank_line_documents(piece, splitter, report)
        for document in documents:
            if document:
                report.documents += 1
                report.sentences += len(document)
                report.single_sentences += len(document) == 1
                yield document
            else:
                report.empty_documents += 1


def sentence_splitter(language: str) -> Callable[[str], list[str]]:
    """Returns a function that splits a paragraph into sentences.

    By sentencex, which Wikimedia keeps for its own translations: rules for some 300
    languages, nothing to download, and where a full stop may end an abbreviation it
    rather leaves two sentences together than cut one in the middle.

    Args:
        language: code of the language.

    Raises:
        ImportError: if the package is missing.
    """
    try:
        import sentencex
    except ImportError as error:
        raise ImportError(
            "Splitting paragraphs into sentences needs the package sentencex. To "
            "install it: pip install 'keras-kbert[pretrain]'. Or write one sentence a "
            "line, and read the files as lines."
        ) from error

    def split(paragraph: str) -> list[str]:
        stripped = (part.strip() for part in sentencex.segment(language, paragraph))
        return [sentence for sentence in stripped if sentence]

    return split


def _whole(paragraph: str) -> list[str]:
    return [paragraph]


def _decode(raw: bytes, report: CorpusReport) -> str:
    """Returns bytes as text, without those that are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        text = raw.decode(errors="ignore")
        report.invalid_bytes += len(raw) - len(text.encode())
        return text


def _blank_line_documents(piece, splitter, report) -> Iterator[Document]:
    """Yields what stands between blank lines; of two in a row an empty document."""
    document: Document = []
    for position, raw in read_lines(piece):
        line = _decode(raw, report)
        if not position:
            line = line.removeprefix("\ufeff")
        line = line.strip()
        if line:
            document += splitter(line)
        else:
            yield document
            document = []
    if document:
        yield document


def _json_documents(piece, format, splitter, report) -> Iterator[Document]:
    for position, raw in read_lines(piece):
        line = _decode(raw, report).removeprefix("\ufeff")
        if not line.strip():
            continue
        where = f"{piece.path}, at byte {position}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"Every line must be a JSON object. Received: {where}: {error}."
            ) from error
        if not isinstance(record, dict):
            raise ValueError(
                f"Every line must be a JSON object. Received: {where}: "
                f"{line.strip()[:40]}."
            )
        yield _document_of(record, format.field, splitter, where)


def _rows_of_dataset(piece, format, splitter) -> Iterator[Document]:
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "A folder that `Dataset.save_to_disk` wrote needs the package datasets. To "
            f"install it: pip install datasets. Received: {piece.path}."
        ) from error
    rows = datasets.load_from_disk(piece.path)
    for number, row in enumerate(rows):
        where = f"{piece.path}, row {number}"
        yield _document_of(row, format.field, splitter, where)


def _document_of(record, field, splitter, where) -> Document:
    """Returns the sentences in a field, none if it is null or blank."""
    if field not in record:
        raise ValueError(
            f'Every document must have the field "{field}". Received: {where}, whose '
            f"fields are {list(record)[:10]}. Name the one with the text."
        )
    text = record[field]
    if text is None:
        return []
    if isinstance(text, list) and all(isinstance(item, str) for item in text):
        return [sentence for item in text if (sentence := item.strip())]
    if not isinstance(text, str):
        raise ValueError(
            f'The field "{field}" must be a string or a list of sentences. Received: '
            f"{where}: {str(text)[:60]!r}."
        )
    paragraphs = (line.strip() for line in text.split("\n"))
    return [part for line in paragraphs if line for part in splitter(line)]
