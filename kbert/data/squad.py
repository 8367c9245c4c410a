"""Files of SQuAD 1.1, SQuAD 2.0 and XQuAD to questions, contexts and answers.

The format is that of https://rajpurkar.github.io/SQuAD-explorer: articles of paragraphs
of questions, as one JSON object. Version 2.0 has questions that the paragraph does not
answer, which `is_impossible` marks; the file says by itself which version it is.
"""

import collections
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

_LARGEST_FILE = 1 << 30  # bytes; the training set of 2.0 has 42 MB
_NAMED = 5


class Answer(NamedTuple):
    """An answer as it stands in its context.

    Args:
        text: the answer.
        start: index of its first character in the context.
    """

    text: str
    start: int


class SquadExample(NamedTuple):
    """A question with the paragraph that may answer it.

    Args:
        id: of the question.
        question: the question.
        context: the paragraph.
        answers: those that people gave, none where the context holds no answer or the
            file hides it.
        is_impossible: whether the context is said to hold no answer.
        title: of the article.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    is_impossible: bool
    title: str


@dataclasses.dataclass(frozen=True)
class SquadReport:
    """What became of the questions of a file.

    Args:
        path: the file.
        version: as the file spells it, "" where it does not.
        num_questions: questions in it.
        num_kept: questions that were read.
        num_impossible: those among them without an answer in the context.
        skipped: reason -> ids of the questions left out for it.
        notes: what a reader should know of the questions that were kept.
    """

    path: str
    version: str
    num_questions: int
    num_kept: int
    num_impossible: int
    skipped: dict[str, list[str]]
    notes: list[str]

    def lines(self) -> list[str]:
        """The report as sentences, one a line."""
        told = [
            f"{self.path}: {self.num_kept:,} of {self.num_questions:,} questions read, "
            f"{self.num_impossible:,} of them without an answer in the context."
        ]
        for reason, ids in self.skipped.items():
            told.append(f"Skipped {len(ids):,}: {reason} ({_named(ids)}).")
        return told + self.notes


@dataclasses.dataclass(frozen=True)
class Squad:
    """The questions of a file.

    Args:
        examples: the questions, in the order of the file.
        report: what was read and what was skipped.
    """

    examples: list[SquadExample]
    report: SquadReport

    @property
    def questions(self) -> list[str]:
        """The question of every example."""
        return [example.question for example in self.examples]

    @property
    def contexts(self) -> list[str]:
        """The context of every example."""
        return [example.context for example in self.examples]

    @property
    def answers(self) -> list[list[Answer]]:
        """The answers of every example, [] where there is none."""
        return [list(example.answers) for example in self.examples]


def read_squad(path: str | os.PathLike, *, keep_unanswered: bool = False) -> Squad:
    r"""Reads a JSON file of SQuAD 1.1, SQuAD 2.0 or XQuAD.

    Offsets count characters of the context as it stands, line ends and blanks included.

    Args:
        path: the file.
        keep_unanswered: keep questions without an answer that are not marked as
            impossible, as test sets that hide their answers have them; otherwise they
            are skipped and told.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no JSON in that format, or has no question to keep;
            names the place.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "dev.json"
    >>> _ = path.write_text('{"data": [{"paragraphs": [{"context": "It was in May.", '
    ...     '"qas": [{"id": "1", "question": "When?", "answers": '
    ...     '[{"text": "May", "answer_start": 10}]}]}]}]}')
    >>> read_squad(path).examples[0].answers
    (Answer(text='May', start=10),)
    >>> folder.cleanup()
    """
    path = pathlib.Path(path)
    content = _parse(path)
    examples: list[SquadExample] = []
    skipped: dict[str, list[str]] = {}
    ids = []
    for example, reason in _examples(content, path):
        ids.append(example.id)
        if reason is None or keep_unanswered:
            examples.append(example)
        else:
            skipped.setdefault(reason, []).append(example.id)
    if not examples:
        reasons = [f"{len(found):,} where {why}" for why, found in skipped.items()]
        raise ValueError(
            "A file of SQuAD must have at least one question with its answer. "
            f"Received: {path} with {' and '.join(reasons) or 'no question'}. "
            "`keep_unanswered=True` keeps questions whose answers are hidden."
        )
    version = content.get("version", "")
    return Squad(
        examples,
        SquadReport(
            path=str(path),
            version=version if isinstance(version, str) else "",
            num_questions=len(ids),
            num_kept=len(examples),
            num_impossible=sum(example.is_impossible for example in examples),
            skipped=skipped,
            notes=_notes(examples, ids),
        ),
    )


def stands_there(answer: Answer, context: str) -> bool:
    """Says whether an answer's text stands where its start says.

    White space may differ in kind, as in run_squad.py of google-research/bert.

    >>> stands_there(Answer("in May", 7), "It was in May.")
    True
    >>> stands_there(Answer("in May", 0), "It was in May.")
    False
    """
    text, start = answer
    found = context[start : start + len(text)] if start >= 0 else ""
    return found == text or _plain(found) == _plain(text)


def _plain(text: str) -> str:
    return "".join(" " if character.isspace() else character for character in text)


def _parse(path: pathlib.Path) -> dict:
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ValueError(
            f"A file of SQuAD may have {_LARGEST_FILE:,} bytes. Received: {path} with "
            f"{size:,}."
        )
    try:
        content = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError too
        raise ValueError(
            f"A file of SQuAD must be JSON in UTF-8. Received: {path}: {error}."
        ) from error
    if not isinstance(content, dict) or "data" not in content:
        keys = list(content)[:10] if isinstance(content, dict) else type(content)
        raise ValueError(
            'A file of SQuAD must be a JSON object with the key "data". Received: '
            f"{path} with {keys}. In lines of JSON or a table, read the columns "
            "yourself."
        )
    return content


def _examples(
    content: dict, path: pathlib.Path
) -> Iterator[tuple[SquadExample, str | None]]:
    """Yields every question, with the reason to skip it or None."""
    for article, at in _items(content, "data", str(path)):
        title = article.get("title", "")
        for paragraph, there in _items(article, "paragraphs", at):
            context = _get(paragraph, "context", str, there)
            for question, place in _items(paragraph, "qas", there):
                example = _example(question, context, title, place)
                unmarked = not example.answers and not example.is_impossible
                reason = "no answer, and not marked as impossible"
                yield example, reason if unmarked else None


def _example(question: dict, context: str, title: Any, place: str) -> SquadExample:
    impossible = question.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise _wrong(place, "is_impossible", bool, impossible)
    answers = []
    if not impossible and question.get("answers") is not None:
        for answer, there in _items(question, "answers", place):
            text = _get(answer, "text", str, there)
            answers.append(Answer(text, _get(answer, "answer_start", int, there)))
    return SquadExample(
        id=_get(question, "id", str, place),
        question=_get(question, "question", str, place),
        context=context,
        answers=tuple(answers),
        is_impossible=impossible,
        title=title if isinstance(title, str) else "",
    )


def _items(parent: dict, key: str, place: str) -> Iterator[tuple[dict, str]]:
    """Yields the objects in a list, each with its place."""
    for index, item in enumerate(_get(parent, key, list, place)):
        there = f"{place}, {key}[{index}]"
        if not isinstance(item, dict):
            raise ValueError(
                f"It must be a JSON object. Received: {str(item)[:60]!r} at {there}."
            )
        yield item, there


def _get(parent: dict, key: str, kind: type, place: str) -> Any:
    value = parent.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong(place, key, kind, value)
    return value


def _wrong(place: str, key: str, kind: type, value) -> ValueError:
    return ValueError(
        f'"{key}" must be of type {kind.__name__}. Received: {str(value)[:60]!r} at '
        f"{place}."
    )


def _notes(examples: list[SquadExample], ids: list[str]) -> list[str]:
    notes = []
    misplaced = [
        example.id
        for example in examples
        if not all(stands_there(answer, example.context) for answer in example.answers)
    ]
    if misplaced:
        notes.append(
            f"{len(misplaced):,} questions have an answer that does not stand where "
            f"answer_start says ({_named(misplaced)}); `fit` leaves those out that "
            "have no other."
        )
    twice = [id for id, count in collections.Counter(ids).items() if count > 1]
    if twice:
        notes.append(
            f"{len(twice):,} ids stand for several questions ({_named(twice)})."
        )
    return notes


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"
