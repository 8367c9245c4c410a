"""Windows over contexts, and answers as spans of tokens: there and back exactly."""

import numpy as np
import pytest

import kbert
from kbert.data.squad import Answer, read_squad
from kbert.preprocessing import spans
from tests import tiny

WORDS = "a b c d e f g h i j".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, *WORDS, "cafe", "un", "##aff", "##able", "(", ")", "中", "文"]
TOKENIZER = kbert.BertTokenizer(PIECES)
CLS, SEP = TOKENIZER.cls_id, TOKENIZER.sep_id


def windows_of(question, context, max_length=12, doc_stride=4, tokenizer=TOKENIZER):
    return spans.make_windows(
        [question], [context], tokenizer, max_length=max_length, doc_stride=doc_stride
    )


def rows(windows):
    """The ids of every window."""
    splits = windows.encoded.row_splits
    return np.split(windows.encoded.token_ids, splits[1:-1])


def there_and_back(windows, example, answer):
    """The answer as every window that points to it would give it."""
    found = spans.find_targets(
        windows,
        [[answer] if i == example else [] for i in range(len(windows.contexts))],
    )
    texts = set()
    for window in windows.of_example(example):
        if not found.positions[window].any():
            continue
        shift = windows.starts[window] - windows.begins[window]
        first, last = (found.positions[window] + shift).tolist()
        start, end = windows.characters_of(example, first, last)
        texts.add((windows.contexts[example][start:end], start))
    return texts


def test_question_first_then_windows_every_stride():
    windows = windows_of("a b", "a b c d e f g h i j", max_length=9, doc_stride=3)
    head = [CLS, *TOKENIZER("a b"), SEP]
    assert [row.tolist() for row in rows(windows)] == [
        [*head, *TOKENIZER(part), SEP] for part in ("a b c d", "d e f g", "g h i j")
    ]
    assert windows.encoded.second_starts.tolist() == [4, 4, 4]
    assert windows.starts.tolist() == [0, 3, 6]
    assert windows.counts.tolist() == [4, 4, 4]
    assert windows.begins.tolist() == [4, 4, 4]
    assert windows.encoded.num_truncated == 0


def test_several_questions_have_windows_of_their_own():
    windows = spans.make_windows(
        ["a", "a b c", "b"],
        ["a b c d e f", "", "a"],
        TOKENIZER,
        max_length=8,
        doc_stride=2,
    )
    assert windows.examples.tolist() == [0, 0, 1, 2]
    assert [list(windows.of_example(i)) for i in range(3)] == [[0, 1], [2], [3]]
    assert rows(windows)[2].tolist() == [CLS, *TOKENIZER("a b c"), SEP]
    assert windows.counts.tolist() == [4, 4, 0, 1]


def test_most_context():
    # By hand: token 4 has one neighbour at least in windows 0 and 1, and the first
    # counts; so has token 7 in windows 1 and 2, of which the first is longer.
    owners = spans.most_context(10, np.array([0, 3, 6]), 6)
    assert owners.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("length", [0, 1, 5, 6, 7, 23])
@pytest.mark.parametrize("room", [1, 5, 6])
@pytest.mark.parametrize("stride", [1, 3, 6, 50])
def test_windows_cover_the_context(length, room, stride):
    starts = spans.window_starts(length, room, stride)
    covered = {t for s in starts.tolist() for t in range(s, min(s + room, length))}
    assert covered == set(range(length))
    assert len(starts) == 1 or starts[-2] + room < length  # none is needless
    owners = spans.most_context(length, starts, room)
    held = starts[owners]
    assert ((held <= np.arange(length)) & (np.arange(length) < held + room)).all()


# --- answers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ("a b c d e f g h i j", "e f"),
        ("a b c d e f g h i j", "a"),
        ("a b c d e f g h i j", "j"),  # the very last token
        ("a b c d e f g h i j\n", "j"),
        ("  a  b\r\nc   d", "b\r\nc"),
        ("\r\n\r\na b", "a"),
        ("a (unaffable) b", "unaffable"),
        ("a (unaffable) b", "(unaffable)"),
        ("a (unaffable) b", "aff"),  # a piece of a word: Google's improved span
        ("the unknowable b", "unknowable"),  # [UNK]
        ("a café b", "café"),
        ("a cafe\u0301 b", "cafe\u0301"),  # the accent is a character of its own
        ("a 中文 b", "文"),
        ("a\u00a0b\u3000c", "b"),
        ("a\ufeff b \u200bc", "c"),
        ("💩💩 a", "💩💩"),
    ],
)
def test_there_and_back(context, text):
    windows = windows_of("a", context, max_length=10, doc_stride=3)
    start = context.index(text)
    assert there_and_back(windows, 0, Answer(text, start)) == {(text, start)}


def test_windows_without_the_answer_point_to_cls():
    windows = windows_of("a", "a b c d e f g h i j", max_length=8, doc_stride=4)
    found = spans.find_targets(windows, [[Answer("i j", 16)]])
    assert found.positions.tolist() == [[0, 0], [0, 0], [3, 4]]
    assert windows.starts.tolist() == [0, 4, 8]
    nothing = spans.find_targets(windows, [[]])
    assert nothing.positions.tolist() == [[0, 0]] * 3
    assert nothing.unplaced == nothing.cut == []


def test_an_answer_over_a_border_is_told():
    windows = windows_of("a", "a b c d e f g h", max_length=8, doc_stride=4)
    found = spans.find_targets(windows, [[Answer("d e", 6)]])
    assert (found.cut, found.positions.any()) == ([0], False)


@pytest.mark.parametrize(
    "answer", [Answer("b", 0), Answer("b", 99), Answer("x", 0), Answer("a b", 2)]
)
def test_an_answer_elsewhere_is_told(answer):
    windows = windows_of("a", "a b c")
    found = spans.find_targets(windows, [[answer]])
    assert (found.unplaced, found.positions.any()) == ([0], False)


def test_an_answer_without_a_token_is_told():
    windows = windows_of("a", "a \u200b b")
    assert spans.find_targets(windows, [[Answer("\u200b", 2)]]).unplaced == [0]


def test_the_first_answer_in_place_counts():
    windows = windows_of("a", "a b c")
    answers = [Answer("c", 0), Answer("b", 2), Answer("c", 4)]
    assert spans.find_targets(windows, [answers]).positions.tolist() == [[4, 4]]


# --- questions -----------------------------------------------------------------------


def test_a_question_may_leave_room_for_one_token():
    windows = windows_of("a b c d e", "a b c", max_length=9)
    assert [row.tolist()[-2:] for row in rows(windows)] == [
        [i, SEP] for i in TOKENIZER("a b c")
    ]
    answer = Answer("c", 4)
    assert there_and_back(windows, 0, answer) == {answer}


def test_a_question_that_fills_its_window_is_refused():
    with pytest.raises(
        ValueError, match="question 1 of 6 tokens, where windows have 9.*1 such"
    ):
        spans.make_windows(
            ["a", "a b c d e f"], ["a", "b"], TOKENIZER, max_length=9, doc_stride=3
        )


def test_leading_blanks_of_a_question_do_not_count():
    plain = rows(windows_of("a b", "a b c"))[0]
    assert rows(windows_of(" " * 500 + "a b", "a b c"))[0].tolist() == plain.tolist()


# --- real text -----------------------------------------------------------------------


@pytest.mark.parametrize("length", [64, 128, 384])
def test_every_answer_of_xquad_survives(shared, length):
    read = read_squad(shared / "data" / "xquad" / "xquad.en.json")
    tokenizer = kbert.BertTokenizer(shared / "vocab" / "uncased_en.txt")
    windows = spans.make_windows(
        read.questions,
        read.contexts,
        tokenizer,
        max_length=length,
        doc_stride=max(1, length // 3),
    )
    assert windows.encoded.lengths.max() <= length
    changed = {
        answer: there_and_back(windows, index, answer)
        for index, (answer,) in enumerate(read.answers)
        if there_and_back(windows, index, answer) != {answer}
    }
    # One of 1,190 ends within a number, hence within a token: "(2,70" of "(2,700,000".
    whole = ("7,000,000 square kilometres (2,700", 338)
    assert changed == {Answer(whole[0][:-1], 338): {whole}}


def test_tiny_answers_survive():
    questions, contexts, answers = tiny.questions(40)
    windows = spans.make_windows(
        questions,
        contexts,
        tiny.preprocessor().tokenizer,
        max_length=12,
        doc_stride=3,
    )
    for index, given in enumerate(answers):
        for answer in given:
            assert there_and_back(windows, index, answer) == {answer}
