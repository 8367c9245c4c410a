"""The tokenizer's files in a preset."""

import json

import pytest

from kbert.tokenization import BertTokenizer
from tests.tokenization.toy import PIECES, SPECIALS, UPPER, non_default


@pytest.fixture
def folder(tmp_path):
    """Writes files into a folder: dicts as JSON, lists as lines, bytes as they are."""

    def write(**files):
        for name, content in files.items():
            name, _, suffix = name.rpartition("_")
            if isinstance(content, dict):
                content = json.dumps(content).encode()
            elif isinstance(content, list):
                content = "".join(f"{line}\n" for line in content).encode()
            (tmp_path / f"{name}.{suffix}").write_bytes(content)
        return tmp_path

    return write


def fast(**changes):
    """The content of a tokenizer.json, some of it changed."""
    files = BertTokenizer(PIECES).to_files()
    content = json.loads(files["tokenizer.json"])
    for path, value in changes.items():
        section, _, key = path.partition("__")
        if key:
            content[section][key] = value
        else:
            content[section] = value
    return content


def same(first, second):
    return first.get_config() == second.get_config()


@pytest.mark.parametrize("missing", [None, "vocab.txt", "tokenizer.json"])
def test_round_trip(tmp_path, missing):
    tokenizer = BertTokenizer(**non_default())
    for name, content in tokenizer.to_files(model_max_length=64).items():
        if name != missing:
            (tmp_path / name).write_bytes(content)
    loaded = BertTokenizer.from_preset(tmp_path)
    if missing == "tokenizer.json":  # the only one that holds it
        assert loaded.max_word_length == 200
        loaded = BertTokenizer(**loaded.get_config() | {"max_word_length": 7})
    assert same(loaded, tokenizer)


def test_vocabulary_alone_is_lower_cased(folder):
    uncased = [piece for piece in PIECES if piece not in UPPER]
    loaded = BertTokenizer.from_preset(folder(vocab_txt=uncased))
    assert same(loaded, BertTokenizer(uncased))


@pytest.mark.parametrize("config", [{}, {"do_lower_case": None}])
def test_a_cased_vocabulary_without_its_case_is_told(folder, config):
    path = folder(vocab_txt=PIECES, tokenizer_config_json=config)
    told = f"{len(UPPER)} pieces .* like '##Z'. Put .*false"
    with pytest.warns(UserWarning, match=told):
        assert same(BertTokenizer.from_preset(path), BertTokenizer(PIECES))


# The toy's vocabulary has both cases.
untold_case = pytest.mark.filterwarnings("ignore:No file in .* says whether text is")


@untold_case
@pytest.mark.parametrize(
    "config,expected",
    [
        ({}, {"lowercase": True}),
        ({"do_lower_case": False}, {"lowercase": False, "strip_accents": None}),
        ({"strip_accents": False}, {"lowercase": True, "strip_accents": False}),
        ({"tokenize_chinese_chars": False}, {"split_on_cjk": False}),
        ({"model_max_length": 512}, {"special_tokens_in_text": False}),
        ({"split_special_tokens": False}, {"special_tokens_in_text": True}),
        ({"split_special_tokens": True}, {"special_tokens_in_text": False}),
        (
            {"additional_special_tokens": ["fox", {"content": "the"}, "[SEP]"]},
            {"extra_special_tokens": ["fox", "the"]},
        ),
        ({"extra_special_tokens": {"x": "fox"}}, {"extra_special_tokens": ["fox"]}),
        ({"extra_special_tokens": ["fox"]}, {"extra_special_tokens": ["fox"]}),
    ],
)
def test_options(folder, config, expected):
    path = folder(vocab_txt=PIECES, tokenizer_config_json=config)
    received = BertTokenizer.from_preset(path).get_config()
    assert {name: received[name] for name in expected} == expected


def test_spellings_as_strings_and_as_objects(folder):
    vocabulary = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    config = {
        "pad_token": {"content": "<pad>", "special": True},
        "unk_token": "<unk>",
        "cls_token": "<s>",
        "sep_token": {"content": "</s>"},
        "mask_token": "<mask>",
        "bos_token": None,
    }
    path = folder(vocab_txt=vocabulary, tokenizer_config_json=config)
    assert BertTokenizer.from_preset(path).special_ids == (1, 3, 0, 2, 4)


class TestFastAlone:
    def test_options_come_from_its_normalizer(self, folder):
        content = fast(
            normalizer__lowercase=False,
            normalizer__handle_chinese_chars=False,
            normalizer__strip_accents=True,
            model__max_input_chars_per_word=100,
        )
        tokenizer = BertTokenizer.from_preset(folder(tokenizer_json=content))
        assert same(
            tokenizer,
            BertTokenizer(
                PIECES,
                lowercase=False,
                split_on_cjk=False,
                strip_accents=True,
                max_word_length=100,
            ),
        )

    def test_tokenizer_config_goes_first(self, folder):
        path = folder(
            tokenizer_json=fast(normalizer__lowercase=False),
            tokenizer_config_json={"do_lower_case": True},
        )
        assert BertTokenizer.from_preset(path).lowercase

    @pytest.mark.parametrize("processor", ["TemplateProcessing", "BertProcessing"])
    def test_spellings_come_from_its_template(self, folder, processor):
        content = fast()
        tokens = {"cls": "<s>", "sep": "</s>", "unk": "<unk>"}
        vocabulary = [*PIECES, *tokens.values()]
        content["model"]["vocab"] = {piece: i for i, piece in enumerate(vocabulary)}
        content["model"]["unk_token"] = "<unk>"
        text = json.dumps(content["post_processor"])
        text = text.replace("[CLS]", "<s>").replace("[SEP]", "</s>")
        content["post_processor"] = json.loads(text)
        if processor == "BertProcessing":
            content["post_processor"] = {"type": processor, "cls": ["<s>", 1]}
            content["post_processor"]["sep"] = ["</s>", 2]
        tokenizer = BertTokenizer.from_preset(folder(tokenizer_json=content))
        expected = {"pad": "[PAD]", "mask": "[MASK]"} | tokens
        assert tokenizer.special_tokens == expected

    def test_ids_without_a_piece_stay_free(self, folder):
        content = fast()
        content["model"]["vocab"]["last"] = len(PIECES) + 1
        with pytest.warns(UserWarning, match=f"1 are blank, .*: {len(PIECES)}"):
            tokenizer = BertTokenizer.from_preset(folder(tokenizer_json=content))
        assert tokenizer.piece_to_id("last") == len(PIECES) + 1


@untold_case
@pytest.mark.parametrize("where", ["fast", "config", "added"])
def test_added_special_tokens_follow_the_vocabulary(folder, where):
    index = len(PIECES)
    token = {"id": index, "content": "[USER]", "special": True}
    files = {
        "fast": {"tokenizer_json": fast(added_tokens=[token])},
        "config": {
            "tokenizer_config_json": {"added_tokens_decoder": {str(index): token}}
        },
        "added": {"added_tokens_json": {"[USER]": index}},
    }
    path = folder(vocab_txt=PIECES, **files[where])
    tokenizer = BertTokenizer.from_preset(path)
    assert tokenizer.extra_special_tokens == ("[USER]",)
    assert tokenizer.piece_to_id("[USER]") == index


@pytest.mark.parametrize(
    "files,received",
    [
        ({"tokenizer_json": fast(model__type="BPE")}, "model.type=.*'BPE'"),
        ({"tokenizer_json": fast(normalizer=None)}, "normalizer.type=.*None"),
        (
            {"tokenizer_json": fast(normalizer__clean_text=False)},
            "clean_text=.*False",
        ),
        (
            {"tokenizer_json": fast(pre_tokenizer={"type": "Whitespace"})},
            "pre_tokenizer.type=.*'Whitespace'",
        ),
        ({"tokenizer_json": fast(model__vocab=[])}, "list in"),
        (
            {"tokenizer_json": fast(model__vocab={"a": 0, "b": 0})},
            "'a' and 'b' with id 0",
        ),
        (
            {"tokenizer_json": fast(), "vocab_txt": [*PIECES, "more"]},
            r"1 that only one of them holds, such as \['more'\]",
        ),
        (
            {
                "tokenizer_json": fast(
                    added_tokens=[{"id": len(PIECES), "content": "covid"}]
                )
            },
            f"'covid' with id {len(PIECES)}",
        ),
        (
            {"vocab_txt": PIECES, "added_tokens_json": {"[USER]": 999}},
            f"a vocabulary of {len(PIECES)} pieces with None",
        ),
        (
            {"vocab_txt": PIECES, "added_tokens_json": {"[USER]": 0}},
            r"pieces with '\[PAD\]'",
        ),
        ({"vocab_txt": ["a", "b"]}, "2 pieces"),
    ],
)
def test_files_that_cannot_be_read(folder, files, received):
    with pytest.raises(ValueError, match=received):
        BertTokenizer.from_preset(folder(**files))


def test_folder_without_a_vocabulary(folder):
    with pytest.raises(FileNotFoundError, match="vocab.txt"):
        BertTokenizer.from_preset(folder(config_json={}))


def test_fast_file_is_written_once_for_every_token():
    tokenizer = BertTokenizer(PIECES, extra_special_tokens=["fox", "fox", "[SEP]"])
    added = json.loads(tokenizer.to_files()["tokenizer.json"])["added_tokens"]
    contents = [token["content"] for token in added]
    assert contents == [*SPECIALS, "fox"]
    assert [token["id"] for token in added] == [PIECES.index(c) for c in contents]
