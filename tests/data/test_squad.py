"""The reader of SQuAD's files: what it keeps, what it skips, what it refuses."""

import json

import pytest

from kbert.data import squad

CONTEXT = "It was  in\r\nMay, in\u202fParis."


def question(id="1", **fields):
    return {"id": id, "question": "When?", **fields}


def answer(text, start):
    return {"text": text, "answer_start": start}


MAY = answer("May", CONTEXT.index("May"))


def written(path, *questions, **top):
    paragraph = {"context": CONTEXT, "qas": list(questions)}
    content = {"data": [{"title": "T", "paragraphs": [paragraph]}], **top}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_version_1(tmp_path):
    several = [MAY, answer("in\r\nMay", 8)]
    path = written(tmp_path / "dev.json", question(answers=several), version="1.1")
    read = squad.read_squad(path)
    assert read.examples == [
        squad.SquadExample(
            "1",
            "When?",
            CONTEXT,
            (squad.Answer("May", 12), squad.Answer("in\r\nMay", 8)),
            False,
            "T",
        )
    ]
    assert (read.questions, read.contexts) == (["When?"], [CONTEXT])
    assert read.answers == [[("May", 12), ("in\r\nMay", 8)]]
    assert read.report.version == "1.1"
    assert read.report.lines() == [
        f"{path}: 1 of 1 questions read, 0 of them without an answer in the context."
    ]


def test_version_2(tmp_path):
    path = written(
        tmp_path / "dev.json",
        question("a", answers=[MAY], is_impossible=False),
        question("b", answers=[], is_impossible=True, plausible_answers=[MAY]),
        question("c", is_impossible=True),
        question("d", answers=[MAY], is_impossible=True),
    )
    read = squad.read_squad(path)
    assert read.answers == [[("May", 12)], [], [], []]
    assert [e.is_impossible for e in read.examples] == [False, True, True, True]
    assert read.report.num_impossible == 3


def test_hidden_answers_are_skipped_and_told(tmp_path):
    path = written(
        tmp_path / "test.json",
        question("a", answers=[MAY]),
        question("b"),
        question("c", answers=[]),
    )
    read = squad.read_squad(path)
    assert [example.id for example in read.examples] == ["a"]
    assert read.report.lines()[1] == (
        "Skipped 2: no answer, and not marked as impossible (b, c)."
    )
    everything = squad.read_squad(path, keep_unanswered=True)
    assert everything.answers == [[("May", 12)], [], []]
    assert not any(example.is_impossible for example in everything.examples)


def test_only_hidden_answers_are_refused(tmp_path):
    path = written(tmp_path / "test.json", question())
    with pytest.raises(ValueError, match="1 where no answer.*keep_unanswered=True"):
        squad.read_squad(path)


def test_answers_elsewhere_and_ids_that_come_twice_are_told(tmp_path):
    path = written(
        tmp_path / "x.json",
        question("a", answers=[answer("May", 0)]),
        question("b", answers=[answer("in Paris", 17)]),  # U+202F is white space
        question("b", answers=[answer("May", 500)]),
    )
    report = squad.read_squad(path).report
    assert report.num_kept == 3
    assert len(report.notes) == 2
    assert "2 questions have an answer that does not stand" in report.notes[0]
    assert "(a, b)" in report.notes[0]
    assert report.notes[1] == "1 ids stand for several questions (b)."


def test_many_are_named_in_part(tmp_path):
    path = written(
        tmp_path / "x.json",
        question("kept", answers=[MAY]),
        *(question(str(index)) for index in range(7)),
    )
    assert "(0, 1, 2, 3, 4 and 2 more)" in squad.read_squad(path).report.lines()[1]


def test_a_byte_order_mark(tmp_path):
    path = written(tmp_path / "x.json", question(answers=[MAY]))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(squad.read_squad(path).examples) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "JSON in UTF-8"),
        ('{"data": [', "JSON in UTF-8"),
        ("[" * 100_000, "JSON in UTF-8"),
        ("[]", 'key "data".*list'),
        ('{"rows": []}', r"key \"data\".*\['rows'\]"),
        ('{"data": []}', "at least one question"),
        ('{"data": {}}', '"data" must be of type list'),
        ('{"data": [1]}', r"JSON object. Received: '1' at .*, data\[0\]"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r'"context".*paragraphs\[0\]'),
    ],
)
def test_what_is_no_squad_is_refused(tmp_path, content, message):
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        squad.read_squad(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": 3}, r'"id" must be of type str. Received: \'3\' at .*qas\[0\]'),
        ({"question": None}, '"question" must be of type str'),
        ({"answers": MAY}, '"answers" must be of type list'),
        ({"answers": [answer("May", "12")]}, r'"answer_start".*int.*answers\[0\]'),
        ({"answers": [answer("May", True)]}, '"answer_start" must be of type int'),
        ({"answers": [answer(None, 1)]}, '"text" must be of type str'),
        ({"is_impossible": "no"}, '"is_impossible" must be of type bool'),
    ],
)
def test_a_question_of_the_wrong_kind_is_refused(tmp_path, fields, message):
    path = written(tmp_path / "x.json", {**question(answers=[MAY]), **fields})
    with pytest.raises(ValueError, match=message):
        squad.read_squad(path)


def test_latin_1_is_refused(tmp_path):
    (tmp_path / "x.json").write_bytes('{"data": "é"}'.encode("latin-1"))
    with pytest.raises(ValueError, match="JSON in UTF-8"):
        squad.read_squad(tmp_path / "x.json")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        squad.read_squad(tmp_path / "absent.json")


def test_xquad(shared):
    read = squad.read_squad(shared / "data" / "xquad" / "xquad.en.json")
    assert (len(read.examples), len(set(read.contexts))) == (1190, 240)
    assert read.report.skipped == {} and read.report.notes == []
