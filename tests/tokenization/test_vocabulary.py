"""Vocabulary files and special tokens."""

import warnings

import pytest

from kbert.tokenization import BertTokenizer
from kbert.tokenization.vocabulary import (
    check_vocabulary,
    parse_vocabulary,
    read_vocabulary,
    resolve_special_tokens,
    write_vocabulary,
)
from tests.tokenization.toy import PIECES, SPECIALS


def test_lines_end_at_line_feeds_alone():
    pieces = ["[PAD]", "\u2028", "##\u2028", "a\x85b", "a\x0cb", "a\x0bb", "a\u2029b"]
    assert parse_vocabulary(write_vocabulary(pieces), "vocab.txt") == pieces


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf[PAD]\n[UNK]\nthe\n",
        b"[PAD]\r\n[UNK]\r\nthe\r\n",
        b"[PAD]\n[UNK]\nthe",
        b"[PAD] \n[UNK]\t\n the\n",
        b"[PAD]\n[UNK]\nthe\n\n\n",
    ],
    ids=["byte-order mark", "CRLF", "no last line feed", "blanks", "blank end"],
)
def test_spellings_of_the_same_file(data):
    assert parse_vocabulary(data, "vocab.txt") == ["[PAD]", "[UNK]", "the"]


@pytest.mark.parametrize(
    ("data", "received"),
    [
        (b"[PAD]\n" + b"x" * 1001, "1000 characters. Received: v.txt with one of 1001"),
        (b"a\n" * 1_048_577, "1048576 pieces. Received: v.txt of 1048577 lines"),
    ],
)
def test_what_is_larger_than_any_vocabulary(data, received):
    with pytest.raises(ValueError, match=received):
        parse_vocabulary(data, "v.txt")


def test_a_large_file_is_not_read(tmp_path):
    path = tmp_path / "vocab.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="vocab.txt of 1099511627776 bytes"):
        read_vocabulary(path)


def test_blank_lines_and_duplicates_keep_the_numbering(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(write_vocabulary([*SPECIALS, "the", "", "fox", "the", "ox"]))
    with pytest.warns(UserWarning, match=r"1 pieces come .* 'the' at 5; 1 are .*: 6"):
        tokenizer = BertTokenizer(path)
    assert tokenizer(["the fox ox"]) == [[8, 7, 9]]
    assert tokenizer.vocabulary_size == 10


def test_a_good_vocabulary_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_vocabulary(PIECES) == tuple(PIECES)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_file(data):
    with pytest.raises(ValueError, match=rf"words\.txt of {len(data)} bytes"):
        parse_vocabulary(data, "words.txt")


def test_file_that_is_not_utf8():
    with pytest.raises(ValueError, match="byte 0xe9 at position 6"):
        parse_vocabulary(b"[PAD]\n\xe9t\xe9\n", "vocab.txt")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        read_vocabulary(tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    "vocabulary,error,received",
    [
        ([], ValueError, r"vocabulary=\(\)"),
        (["a", 3], TypeError, "3 of type int at index 1"),
        (["a", "b\nc"], ValueError, r"'b\\nc' at index 1"),
        (["\ud800"], ValueError, r"'\\ud800' at index 0"),
    ],
)
def test_bad_pieces(vocabulary, error, received):
    with pytest.raises(error, match=received):
        check_vocabulary(vocabulary)


def test_missing_special_tokens_are_named():
    with pytest.raises(ValueError, match=r"unk='\[UNK\]', cls='\[CLS\]'.*4 pieces"):
        resolve_special_tokens(["[PAD]", "[SEP]", "[MASK]", "<unk>"], None, ())


@pytest.mark.parametrize(
    "special,extra,error,received",
    [
        ({"bos": "<s>"}, (), ValueError, r"Received: \['bos'\]"),
        (None, ["[E1]"], ValueError, r"Received: \['\[E1\]'\]"),
        (None, "[E1]", TypeError, r"the string '\[E1\]'"),
    ],
)
def test_bad_special_tokens(special, extra, error, received):
    with pytest.raises(error, match=received):
        resolve_special_tokens(SPECIALS, special, extra)


def test_spellings_are_configurable():
    vocabulary = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "fox"]
    special = dict(pad="<pad>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>")
    tokenizer = BertTokenizer(vocabulary, special_tokens=special)
    assert (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id) == (2, 3, 4)
    assert tokenizer("the fox") == [1, 5]
