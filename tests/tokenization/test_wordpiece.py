"""BertTokenizer: ids, offsets, special tokens, decoding, inputs."""

import copy
import json
import pickle
import random

import numpy as np
import pandas
import pytest

from kbert.tokenization import BertTokenizer, executor
from tests.tokenization.toy import PIECES, SMALL, SPECIALS, goldens, non_default, small

TOKENIZER = BertTokenizer(PIECES)
GOLDENS = goldens()


@pytest.mark.parametrize("name", GOLDENS["ids"])
def test_ids_of_google(name):
    tokenizer = BertTokenizer.from_preset(name)
    for text, ids in zip(GOLDENS["texts"], GOLDENS["ids"][name], strict=True):
        assert tokenizer(text) == ids, ascii(text)
        assert tokenizer.encode(text).ids == ids, ascii(text)
    assert tokenizer(GOLDENS["texts"]) == GOLDENS["ids"][name]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("unwanted", ["un", "##want", "##ed"]),
        ("Unaffable!", ["un", "##aff", "##able", "!"]),
        ("unwantedé", ["un", "##want", "##ed", "##e"]),
        ("unwantedβ", ["[UNK]"]),  # the matched beginning is not kept
        ("βun un", ["[UNK]", "un"]),
        ("💩💩💩", ["[UNK]"]),
        ("the [MASK] fox", ["the", "[", "mask", "]", "fox"]),
        ("##ed", ["#", "#", "e", "##d"]),
        ("\ud800", ["[UNK]"]),
        ("a\x00b", ["a", "##b"]),
        ("ΑΣ ασα", ["α", "##ς", "α", "##σ", "##α"]),
        ("한", ["ᄒ", "##ᅡ", "##ᆫ"]),
        ("a\u302e\u1b44", ["a", "##\u1b44", "##\u302e"]),
        ("", []),
        (" \t\r\n\u3000", []),
    ],
)
def test_tokenize(text, expected):
    assert TOKENIZER.tokenize(text) == expected
    assert TOKENIZER.encode(text).pieces == expected


def test_cased_and_accents():
    cased = BertTokenizer(PIECES, lowercase=False)
    assert cased.tokenize("É é The") == ["[UNK]", "é", "T", "##h", "##e"]
    keeping = BertTokenizer(PIECES, strip_accents=False)
    assert keeping.tokenize("É") == ["é"]
    stripping = BertTokenizer(PIECES, lowercase=False, strip_accents=True)
    assert stripping.tokenize("É") == ["E"]
    whole = BertTokenizer(PIECES, split_on_cjk=False)
    assert whole.tokenize("中文") == ["[UNK]"]


@pytest.mark.parametrize("length,expected", [(200, 200), (201, 1)])
@pytest.mark.parametrize("letter", ["a", "é", "e\u0301"])
def test_longest_word(letter, length, expected):
    assert len(TOKENIZER(letter * length)) == expected


def test_longest_word_is_an_option():
    assert BertTokenizer(PIECES, max_word_length=3)("abc abcd the") == [
        *TOKENIZER("abc"),
        1,
        TOKENIZER.piece_to_id("the"),
    ]
    assert BertTokenizer(PIECES, max_word_length=2)("the") == [1]


@pytest.mark.parametrize(
    "text,spans",
    [
        ("Un-the", [(0, 2), (2, 3), (3, 6)]),
        ("  un\u00adwanted ", [(2, 4), (5, 9), (9, 11)]),
        ("\u00adfox\u00ad", [(1, 4)]),
        ("한x", [(0, 1), (0, 1), (0, 1), (1, 2)]),
        ("fo\u0301x\u0301", [(0, 4)]),
        ("a\u302e\u1b44b", [(0, 1), (2, 3), (1, 2), (3, 4)]),
        ("a" * 201 + ".", [(0, 201), (201, 202)]),
        ("\u00adβ\x00β\u0301 fox", [(1, 4), (6, 9)]),
        ("中豈，", [(0, 1), (1, 2), (2, 3)]),
        ("İ", [(0, 1)]),
        ("ΑΣ'Α", [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("a 💩💩💩.", [(0, 1), (2, 5), (5, 6)]),
        # The last accent, at 403, leaves nothing in the word.
        ("x " + "e\u0301" * 201 + " y", [(0, 1), (2, 403), (405, 406)]),
    ],
)
def test_offsets(text, spans):
    assert TOKENIZER.encode(text).offsets == spans


def test_offsets_are_the_smallest_span_that_normalises_to_the_piece():
    generator = random.Random(5)
    pool = "abunéÅ.'\u0301\u0327\u00ad\x00 \u3000中한fox\ufffd豈≠"
    tokenizer = BertTokenizer([*PIECES, "="])
    for _ in range(300):
        text = "".join(generator.choices(pool, k=generator.randint(1, 9)))
        encoding = tokenizer.encode(text)
        for piece, (start, end) in zip(encoding.pieces, encoding.offsets, strict=True):
            if piece == "[UNK]":
                continue
            spelled = piece.removeprefix("##")

            def holds(first, last, text=text, spelled=spelled):
                words = tokenizer.normalizer.words(text[first:last])
                return spelled in "".join(word.text for word in words)

            assert holds(start, end)
            assert not holds(start + 1, end) or end - start == 1
            assert not holds(start, end - 1) or end - start == 1


def test_words_split_beforehand():
    encoding = TOKENIZER.encode_words(["unwanted", "", "Fox!", "\u00adun"])
    assert encoding.pieces == ["un", "##want", "##ed", "fox", "!", "un"]
    assert encoding.word_indices == [0, 0, 0, 2, 2, 3]
    assert encoding.offsets_in_word == [(0, 2), (2, 6), (6, 8), (0, 3), (3, 4), (1, 3)]
    assert encoding.ids == TOKENIZER("unwanted fox! un")


class TestSpecialTokensInText:
    tokenizer = BertTokenizer(
        [*PIECES, "[MASK][MASK]", "<e>", "<e>x"],
        special_tokens_in_text=True,
        extra_special_tokens=["<e>", "<e>x", "[MASK][MASK]"],
    )

    @pytest.mark.parametrize(
        "text,expected",
        [
            ("the [MASK] fox", ["the", "[MASK]", "fox"]),
            ("[MASK]", ["[MASK]"]),
            ("fox[SEP]un[CLS]", ["fox", "[SEP]", "un", "[CLS]"]),
            ("[MASK][MASK][MASK]", ["[MASK][MASK]", "[MASK]"]),
            ("<e>x<e>", ["<e>x", "<e>"]),
            ("[mask]", ["[", "mask", "]"]),
            ("[MA\x01SK]", ["[", "mask", "]"]),
            ("ΑΣ[SEP]Α", ["α", "##ς", "[SEP]", "α"]),
        ],
    )
    def test_one_id_wherever_it_stands(self, text, expected):
        assert self.tokenizer.tokenize(text) == expected
        assert self.tokenizer.encode(text).pieces == expected

    def test_offsets(self):
        encoding = self.tokenizer.encode(" é[MASK] fox")
        assert encoding.offsets == [(1, 2), (2, 8), (9, 12)]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("l'e un", "l ' e un"),
        ("Unwanted!", "unwanted !"),
        ("β fox", "[UNK] fox"),
        ("", ""),
    ],
)
def test_decode(text, expected):
    assert TOKENIZER.decode(TOKENIZER(text)) == expected


def test_decode_gives_the_words_of_the_normalizer():
    generator, unknown = random.Random(9), 0
    pool = "aabun .'éÅ\u0301\u00ad\u3000中한fox豈β#\u302e\u1b44"
    for _ in range(500):
        text = "".join(generator.choices(pool, k=generator.randint(0, 20)))
        words = [word.text for word in TOKENIZER.normalizer.words(text)]
        spelled = [word if 1 not in TOKENIZER(word) else "[UNK]" for word in words]
        assert TOKENIZER.decode(TOKENIZER(text)) == " ".join(spelled), ascii(text)
        unknown += "[UNK]" in spelled
    assert 100 < unknown < 400


def test_decode_never_merges_words_and_keeps_special_tokens():
    ids = [TOKENIZER.piece_to_id(p) for p in ("##ed", "[SEP]", "##ed", "un", "##ed")]
    assert TOKENIZER.decode(np.array(ids)) == "##ed [SEP] ##ed uned"


@pytest.mark.parametrize("wrong", [-1, len(PIECES)])
def test_decode_out_of_range(wrong):
    with pytest.raises(ValueError, match=f"Received: {wrong} at position 1"):
        TOKENIZER.decode([5, wrong])
    with pytest.raises(ValueError, match=rf"Received: {wrong}\."):
        TOKENIZER.id_to_piece(wrong)


def test_unknown_piece():
    with pytest.raises(ValueError, match="'zebra', not among"):
        TOKENIZER.piece_to_id("zebra")


def test_ids_of_special_tokens():
    assert TOKENIZER.vocabulary_size == len(PIECES)
    assert TOKENIZER.special_ids == (1, 3, 0, 2, 4)
    assert TOKENIZER.pad_id == 0 and TOKENIZER.unk_id == 1 and TOKENIZER.mask_id == 4
    assert TOKENIZER.id_to_piece(2) == "[CLS]"


@pytest.mark.parametrize(
    "texts",
    [
        ["the fox", b"un", "é"],
        ("the fox", "un", "é"),
        np.array(["the fox", "un", "é"]),
        np.array(["the fox", "un", "é"], object),
        (text for text in ["the fox", "un", "é"]),
    ],
    ids=["list and bytes", "tuple", "array", "objects", "generator"],
)
def test_sequences_of_texts(texts):
    assert TOKENIZER(texts) == [TOKENIZER("the fox"), TOKENIZER("un"), TOKENIZER("e")]


SQUARE = [["the fox", ""], ["", "the fox"], ["", ""]]


@pytest.mark.parametrize(
    "texts",
    [
        SQUARE,
        tuple(tuple(row) for row in SQUARE),
        np.array(SQUARE),
        np.array(SQUARE, "S"),
        np.array(SQUARE, object),
        [np.array(row) for row in SQUARE],
        pandas.DataFrame(SQUARE),
    ],
)
def test_ranks(texts):
    ids = TOKENIZER("the fox")
    assert TOKENIZER(texts) == [[ids, []], [[], ids], [[], []]]
    row, single = np.asarray(texts)[0], np.asarray(texts)[0, 0]
    assert TOKENIZER(row) == TOKENIZER(list(row)) == TOKENIZER(tuple(row)) == [ids, []]
    assert TOKENIZER(single) == TOKENIZER(np.array(single)) == ids


def test_rows_of_any_length():
    ids = TOKENIZER("un")
    assert TOKENIZER([["un"], [], ["", "un"]]) == [[ids], [], [[], ids]]
    assert TOKENIZER([]) == TOKENIZER(np.array([], str)) == []


def test_bytes():
    assert TOKENIZER("é中".encode()) == TOKENIZER("é中")
    assert TOKENIZER.encode("é中".encode()).offsets == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    "call,error,received",
    [
        (lambda: TOKENIZER(["a", None]), TypeError, "None of type NoneType at index 1"),
        (lambda: TOKENIZER([["a"], ["b", 3]]), TypeError, r"3 .* at index \(1, 1\)"),
        (lambda: TOKENIZER([[["a"]]]), TypeError, r"\['a'\] .* at index \(0, 0\)"),
        (lambda: TOKENIZER(np.array([[["a"]]])), TypeError, r"list at index \(0, 0\)"),
        (lambda: TOKENIZER(np.array(3)), TypeError, "3 of type int"),
        (lambda: TOKENIZER(None), TypeError, "None of type NoneType"),
        (lambda: TOKENIZER({"a": 1}), TypeError, "of type dict"),
        (lambda: TOKENIZER.tokenize(3), TypeError, "3 of type int"),
        (lambda: TOKENIZER.encode_words(["a", 2.5]), TypeError, "2.5 .* at index 1"),
        (lambda: TOKENIZER(["a", b"ab\xff"]), ValueError, "0xff at position 2 .*x 1"),
        (
            lambda: BertTokenizer(PIECES, max_word_length=0),
            ValueError,
            "max_word_length=0",
        ),
        (
            lambda: BertTokenizer(PIECES, max_word_length="9"),
            TypeError,
            "max_word_length='9'",
        ),
        (lambda: BertTokenizer(PIECES, "False"), TypeError, "lowercase='False'"),
        (
            lambda: BertTokenizer(PIECES, strip_accents=1),
            TypeError,
            "strip_accents=1",
        ),
    ],
)
def test_bad_input(call, error, received):
    with pytest.raises(error, match=received):
        call()


def test_config_holds_every_argument():
    arguments = non_default()
    config = json.loads(json.dumps(BertTokenizer(**arguments).get_config()))
    special = config.pop("special_tokens")
    assert special == arguments.pop("special_tokens")
    assert config == arguments
    code = BertTokenizer.__init__.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    assert {*config, "special_tokens"} == set(names)


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies(again):
    tokenizer = BertTokenizer(**non_default())
    assert again(tokenizer).get_config() == tokenizer.get_config()


class TestMemory:
    def test_is_bounded(self, monkeypatch):
        monkeypatch.setattr(executor, "_CACHE_SIZE", 10)
        tokenizer = BertTokenizer(PIECES)
        cache = tokenizer._executor._cache
        known = len(cache)
        texts = [f"{a}{b}" for a in "abcdefg" for b in "hijklmn"]
        for text in texts:
            assert tokenizer(text) == TOKENIZER(text)
            assert len(cache) <= known + 10
        assert cache["the"] == (PIECES.index("the"),)

    def test_holds_no_long_token(self):
        tokenizer = BertTokenizer(PIECES)
        before = len(tokenizer._executor._cache)
        tokenizer(["a" * 150, "é" * 150])
        assert len(tokenizer._executor._cache) == before

    def test_knows_whole_words_that_normalise_to_themselves_alone(self):
        known = TOKENIZER._executor._cache
        fresh = BertTokenizer(PIECES)._executor._cache
        assert "fox" in fresh and "!" in fresh
        assert not {"A", "##ed", "[UNK]", "é", "中"} & fresh.keys()
        assert known["fox"] == fresh["fox"]


@pytest.mark.parametrize(
    "text,count",
    [
        ("a" * 300_000, 1),
        ("é" * 300_000, 1),
        ("a," * 50_000, 100_000),
        ("中" * 50_000, 50_000),
        ("a" + "\u302e\u1b44" * 100_000, 1),
        ("\u0316\u0302" * 100_000, 0),
        ("ΑΣ'" * 30_000, 90_000),
        ("\x00" * 300_000, 0),
    ],
    ids=[
        "ASCII word",
        "word",
        "symbols",
        "ideographs",
        "marks that move",
        "marks that go",
        "sigmas",
        "nothing",
    ],
)
def test_huge_texts_take_linear_time(text, count):
    assert len(TOKENIZER(text)) == count  # quadratic time would not end


@pytest.mark.parametrize("size,place", SMALL)
def test_small_vocabularies_with_the_unknown_piece_anywhere(size, place):
    tokenizer = BertTokenizer(small(size, place))
    spelled = {
        "a": ["a"],
        "ab": ["a", "##b"] if size > 6 else ["[UNK]"],
        "b": ["b"] if size > 7 else ["[UNK]"],
        "c": ["[UNK]"],
    }
    for text, pieces in spelled.items():
        assert tokenizer.tokenize(text) == pieces
        assert tokenizer(text) == [tokenizer.piece_to_id(piece) for piece in pieces]
    assert tokenizer.unk_id == place


def test_special_tokens_are_escaped_in_the_pattern():
    vocabulary = [*SPECIALS, "a.b", "x", "a", ".", "##b"]
    tokenizer = BertTokenizer(
        vocabulary, special_tokens_in_text=True, extra_special_tokens=["a.b"]
    )
    assert tokenizer.tokenize("a.b axb") == ["a.b", "[UNK]"]
