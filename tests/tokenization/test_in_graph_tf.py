"""The in-graph executor against the Python one."""

import random
import sys

import pytest
import tensorflow as tf

from kbert.tokenization import BertTokenizer
from kbert.tokenization.in_graph import WordPieceGraph
from tests.tokenization import google
from tests.tokenization.toy import PIECES, SMALL, SPECIALS, goldens, small

GOLDENS = goldens()
# Ops that only tensorflow-text, lookup tables or XLA bring.
FOREIGN = ("Text>", "CaseFold", "Normalize", "Wordpiece", "HashTable", "Lookup", "Xla")


@pytest.fixture(scope="module")
def graph():
    return WordPieceGraph(BertTokenizer(PIECES))


@pytest.mark.parametrize(
    "name", ["bert_base_en_uncased", "bert_base_multilingual_cased", "bert_base_zh"]
)
def test_ids_of_google(name):
    graph = WordPieceGraph(BertTokenizer.from_preset(name))
    pairs = zip(GOLDENS["texts"], GOLDENS["ids"][name], strict=True)
    pairs = [
        (t, ids) for t, ids in pairs if not any("\ud800" <= c < "\ue000" for c in t)
    ]
    got = graph([text.encode() for text, _ in pairs]).to_list()
    for (text, ids), found in zip(pairs, got, strict=True):
        assert found == ids, ascii(text)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lowercase": False},
        {"strip_accents": False},
        {"lowercase": False, "strip_accents": True},
        {"split_on_cjk": False},
        {"max_word_length": 3},
        {"special_tokens_in_text": True, "extra_special_tokens": ["fox", "a.b", "."]},
    ],
    ids=str,
)
def test_equals_python_on_random_text(options):
    tokenizer = BertTokenizer([*PIECES, "a.b"], **options)
    generator = random.Random(11)
    pools = [
        "abfoxun ",
        "ΑΣασς'.\u00ad\x00\u0301 ",
        "a\u302e\u1b44\u0300\u034f\u302f\U0001d165\U0001d160中\x01\ufffd",
        "éÅİß한豈≠，\u3000\u2028\x0b#",
        ["[SEP]", "[MASK]", "a.b", "fox", "[MA\x01SK]", "\x02", "["],
    ]
    texts = []
    for _ in range(1_500):
        pool = [c for p in generator.sample(pools, 2) for c in p]
        texts.append("".join(generator.choices(pool, k=generator.randint(0, 14))))
    texts += ["".join(generator.choices(texts, k=30))]
    got = WordPieceGraph(tokenizer)([text.encode() for text in texts]).to_list()
    for text, found, ids in zip(texts, got, tokenizer(texts), strict=True):
        assert found == ids, ascii(text)


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_equals_python(lowercase):
    tokenizer = BertTokenizer(PIECES, lowercase)
    texts = [f"a{chr(code)}b" for code in google.CODES]
    got = WordPieceGraph(tokenizer)(texts).to_list()
    for text, found, ids in zip(texts, got, tokenizer(texts), strict=True):
        assert found == ids, ascii(text)


def test_rows_do_not_touch(graph):
    texts = ["ΑΣ", "Α", "a", "b", "\u302e", "\u1b44", "", "un", "wanted"]
    assert graph(texts).to_list() == BertTokenizer(PIECES)(texts)


@pytest.mark.parametrize("length", [200, 201])
def test_longest_word(graph, length):
    texts = ["a" * length, "e\u0301" * length, "é" * length + " fox"]
    assert graph(texts).to_list() == BertTokenizer(PIECES)(texts)


def test_ranks(graph):
    ids = BertTokenizer(PIECES)("the fox")
    scalar = graph("the fox")
    assert scalar.dtype == tf.int32 and scalar.numpy().tolist() == ids
    assert graph(["the fox", ""]).dtype == tf.int32
    assert graph(["the fox", ""]).to_list() == [ids, []]
    square = graph([["the fox", ""], ["", "the fox"], ["", ""]])
    assert square.shape.rank == 3
    assert square.to_list() == [[ids, []], [[], ids], [[], []]]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_no_texts(graph, shape):
    ids = graph(tf.zeros(shape, tf.string))
    assert ids.shape.rank == len(shape) + 1
    assert ids.to_list() == [[] for _ in range(shape[0])]


@pytest.mark.parametrize(
    "data,text",
    [
        (b"fo\xffx", "fox"),
        (b"\xc3", ""),
        (b"a\xed\xa0\x80b", "ab"),
        (b"un\xf0\x9f the", "un the"),
        (b"a\xc0\xafb", "ab"),
    ],
)
def test_bytes_that_are_not_utf8_are_dropped(graph, data, text):
    assert graph([data]).to_list() == [BertTokenizer(PIECES)(text)]


@pytest.mark.parametrize(
    "texts,error,received",
    [
        ([1, 2], TypeError, "int32"),
        (tf.zeros((1, 1, 1), tf.string), ValueError, r"\(1, 1, 1\)"),
    ],
)
def test_bad_input(graph, texts, error, received):
    with pytest.raises(error, match=received):
        graph(texts)


def test_without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match="Install tensorflow"):
        WordPieceGraph(BertTokenizer(PIECES))


def test_in_a_dataset(graph):
    texts = ["the fox", "", "Unwanted!", "ΑΣ é"]
    expected = BertTokenizer(PIECES)(texts)
    dataset = tf.data.Dataset.from_tensor_slices(texts)
    single = [ids.numpy().tolist() for ids in dataset.map(graph)]
    assert single == expected
    batched = [ids.to_list() for ids in dataset.batch(3).map(graph)]
    assert batched == [expected[:3], expected[3:]]


def test_made_inside_of_a_dataset():
    tokenizer = BertTokenizer(PIECES)
    dataset = tf.data.Dataset.from_tensor_slices(["the fox", "unwanted"])
    dataset = dataset.map(lambda text: WordPieceGraph(tokenizer)(text))
    assert [ids.numpy().tolist() for ids in dataset] == tokenizer(
        ["the fox", "unwanted"]
    )


@pytest.mark.parametrize("special", [False, True])
def test_in_a_saved_model_of_core_ops(tmp_path, special):
    tokenizer = BertTokenizer(PIECES, special_tokens_in_text=special)
    graph = WordPieceGraph(tokenizer)
    module = tf.Module()
    module.serve = tf.function(
        lambda texts: {"ids": graph(texts).to_tensor(tokenizer.pad_id)},
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, tmp_path, signatures=module.serve)
    loaded = tf.saved_model.load(tmp_path)
    texts = ["the [SEP] fox", "ΑΣ é\u302e\u1b44", "", "Unwanted!"]
    ids = loaded.signatures["serving_default"](tf.constant(texts))["ids"]
    rows = [[i for i in row if i] for row in ids.numpy().tolist()]
    assert rows == tokenizer(texts)
    definition = loaded.signatures["serving_default"].graph.as_graph_def()
    ops = {node.op for node in definition.node}
    ops |= {n.op for f in definition.library.function for n in f.node_def}
    assert not [op for op in ops if any(name in op for name in FOREIGN)]
    assert "UnicodeDecode" in " ".join(ops)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "a," * 50_000,
        "β" * 300_000,
        "a\u302e\u1b44" + "\u302e\u1b44" * 50_000,
        "ΑΣ'" * 20_000,
        "中" * 100_000,
    ],
    ids=["ASCII word", "symbols", "word", "marks", "sigmas", "ideographs"],
)
def test_huge_texts(graph, text):
    assert graph([text, "fox"]).to_list() == BertTokenizer(PIECES)([text, "fox"])


def test_vocabulary_of_special_tokens_alone():
    assert WordPieceGraph(BertTokenizer(SPECIALS))(["a, b"]).to_list() == [[1, 1, 1]]


@pytest.fixture
def untraced():
    """Runs the same ops one by one, where many vocabularies see few texts."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("size,place", SMALL)
def test_small_vocabularies_with_the_unknown_piece_anywhere(size, place):
    tokenizer = BertTokenizer(small(size, place))
    texts = ["a", "ab", "ba", "b", "c", "a, c"]
    assert WordPieceGraph(tokenizer)(texts).to_list() == tokenizer(texts)
