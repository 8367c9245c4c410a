"""Documents of sentences from every format, and what is told of them."""

import json
import sys
import types

import pytest

from kbert.data.corpus import CorpusFormat, CorpusReport, read_corpus, sentence_splitter


def read(path, content, **arguments):
    """The documents of a file with that content, and what is told of them."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    report = CorpusReport()
    found = list(read_corpus(path, CorpusFormat(**arguments), report))
    assert report.documents == len(found)
    assert report.sentences == sum(map(len, found))
    return found, report


def test_googles_format(tmp_path):
    text = "\ufeffOne.\n  Two. \r\n\nOther.\u2028Same.\n\n \t\n\u3000\nLast."
    found, report = read(tmp_path / "a.txt", text)
    assert found == [["One.", "Two."], ["Other.\u2028Same."], ["Last."]]
    assert report.lines() == [
        "The corpus has 3 documents of 4 sentences.",
        "Left out 2 empty documents.",
    ]


def test_a_blank_line_at_the_end_makes_no_document(tmp_path):
    # Case 132: Google's reader begins a document there, and drops it as empty.
    for end in ("", "\n", "\n\n"):
        found, report = read(tmp_path / "a.txt", f"One.\n\nTwo.{end}")
        assert (found, report.empty_documents) == ([["One."], ["Two."]], 0)
    found, report = read(tmp_path / "a.txt", "\nOne.\n\n\n\nTwo.\n\n\n")
    assert (found, report.empty_documents) == ([["One."], ["Two."]], 4)


@pytest.mark.parametrize(
    ("invalid", "count"), [(b"\xff", 1), (b"\xc3", 1), (b"\xed\xa0\x80", 3)]
)
def test_bytes_that_are_no_utf_8_are_counted(tmp_path, invalid, count):
    # Case 132 again: not fatal, as they are not in Google's reader.
    found, report = read(tmp_path / "a.txt", b"a" + invalid + b"b\nsch\xc3\xb6n\n")
    assert found == [["ab", "sch\u00f6n"]]
    assert report.invalid_bytes == count
    assert f"Left out {count} bytes that were not UTF-8." in report.lines()


def test_paragraphs_become_sentences(tmp_path):
    text = "Mr. Smith came. He saw it!\nWas it good? Yes.\n\nOne more.\n"
    found, _ = read(tmp_path / "a.txt", text, kind="paragraphs")
    assert found == [
        ["Mr. Smith came.", "He saw it!", "Was it good?", "Yes."],
        ["One more."],
    ]
    found, _ = read(tmp_path / "a.txt", "Das ist z. B. gut. Ja.", kind="paragraphs")
    assert found[0][-1] == "Ja."


def test_other_languages_have_other_sentences():
    assert sentence_splitter("ja")("はい。いいえ。") == ["はい。", "いいえ。"]


def test_paragraphs_may_stay_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One. Two.\n\nOther.\n")
    found = list(read_corpus(path, CorpusFormat("paragraphs"), split=False))
    assert found == [["One. Two."], ["Other."]]


def test_json_lines(tmp_path):
    records = [
        {"body": "One. Two.\nThree.", "text": 1},
        {"body": ["As is. Whole.", " "]},
        {"body": None},
        {"body": ""},
    ]
    content = "\n".join(["", *map(json.dumps, records)])
    found, report = read(tmp_path / "a.jsonl", content, field="body")
    assert found == [["One.", "Two.", "Three."], ["As is. Whole."]]
    assert report.empty_documents == 2


@pytest.mark.parametrize(
    ("line", "received"),
    [
        ('{"text": ', r"a.jsonl, at byte 14: Expecting value"),
        ("[1]", r"a.jsonl, at byte 14: \[1\]"),
        ('{"body": "a"}', r"a.jsonl, at byte 14, whose fields are \['body'\]"),
        ('{"text": 3}', r"a.jsonl, at byte 14: '3'"),
        ('{"text": ["a", 3]}', r"a.jsonl, at byte 14: \"\['a', 3\]\""),
    ],
)
def test_lines_that_are_no_documents(tmp_path, line, received):
    with pytest.raises(ValueError, match=received):
        read(tmp_path / "a.jsonl", f'{{"text": "a"}}\n{line}\n')


def test_a_dataset_of_hugging_face(tmp_path, monkeypatch):
    (tmp_path / "state.json").write_text("{}")
    rows = [{"text": "One. Two."}, {"text": ""}, {"text": "Three."}]
    loaded = []
    package = types.SimpleNamespace(
        load_from_disk=lambda path: loaded.append(path) or rows
    )
    monkeypatch.setitem(sys.modules, "datasets", package)
    report = CorpusReport()
    found = list(read_corpus(tmp_path, report=report))
    assert found == [["One.", "Two."], ["Three."]]
    assert loaded == [str(tmp_path.resolve())] and report.empty_documents == 1
    with pytest.raises(ValueError, match=r"row 0, whose fields are \['text'\]"):
        list(read_corpus(tmp_path, CorpusFormat(field="body")))


@pytest.mark.parametrize(
    ("package", "name", "kind", "advice"),
    [
        ("sentencex", "a.txt", "paragraphs", r"keras-kbert\[pretrain\]"),
        ("zstandard", "a.txt.zst", "lines", r"keras-kbert\[pretrain\]"),
        ("datasets", "state.json", "auto", "pip install datasets"),
    ],
)
def test_packages_that_are_missing(tmp_path, monkeypatch, package, name, kind, advice):
    path = tmp_path / name
    path.write_text("One.")
    monkeypatch.setitem(sys.modules, package, None)
    source = tmp_path if name == "state.json" else path
    with pytest.raises(ImportError, match=f"{package}.*{advice}"):
        list(read_corpus(source, CorpusFormat(kind)))


def test_what_makes_next_sentences_impossible_is_told(tmp_path):
    _, report = read(tmp_path / "a.txt", "One.\n\nTwo.\n\nThree.\n")
    assert "Every document has one sentence" in report.lines()[-1]
    _, report = read(tmp_path / "a.txt", "One.\nTwo.\n")
    assert "There is one document" in report.lines()[-1]
    _, report = read(tmp_path / "a.txt", "One.\nTwo.\n\nThree.\n")
    assert len(report.lines()) == 1


def test_reports_of_parts_add_up():
    total = CorpusReport(1, 2, 3, 4, 5)
    total.add(CorpusReport(10, 20, 30, 40, 50))
    assert total == CorpusReport(11, 22, 33, 44, 55)


def test_memory_is_that_of_a_document(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("A sentence of some length.\n\n" * 1000)
    documents = read_corpus(path)
    assert next(documents) == ["A sentence of some length."]
    path.write_text("")  # what was not asked for was not read
    assert sum(1 for _ in documents) < 999
