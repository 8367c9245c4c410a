"""The files against transformers, which the torch environment has."""

import pytest
import transformers

from kbert.tokenization import BertTokenizer
from tests.tokenization.toy import PIECES

TEXTS = [
    "Unaffable! the [MASK] fox[SEP]un",
    "É Mở e\u0301 中文豈 a，b\u3000c 한",
    "a" * 150 + " " + "a" * 201,
    "a\x00b\ufffdc\u200d #$ β unβ",
    "",
]
OPTIONS = [
    {},
    {"lowercase": False},
    {"strip_accents": False, "split_on_cjk": False},
    {"lowercase": False, "strip_accents": True},
    {"special_tokens_in_text": True, "extra_special_tokens": ["fox"]},
    {"max_word_length": 20},
]


def write(folder, tokenizer):
    for name, content in tokenizer.to_files(model_max_length=512).items():
        (folder / name).write_bytes(content)
    (folder / "config.json").write_text('{"model_type": "bert"}')


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("vocabulary", [True, False])
def test_transformers_gives_equal_ids(tmp_path, options, vocabulary):
    tokenizer = BertTokenizer(PIECES, **options)
    write(tmp_path, tokenizer)
    if not vocabulary:
        (tmp_path / "vocab.txt").unlink()
    peer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert peer(TEXTS, add_special_tokens=False)["input_ids"] == tokenizer(TEXTS)
    assert peer.model_max_length == 512
    assert peer.mask_token_id == tokenizer.mask_id
    assert peer.pad_token_id == tokenizer.pad_id
    pair = peer("the", "fox")
    the, fox = tokenizer("the"), tokenizer("fox")
    assert pair["input_ids"] == [2, *the, 3, *fox, 3]
    assert pair["token_type_ids"] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_transformers_saves_again_is_the_same_tokenizer(tmp_path, options):
    tokenizer = BertTokenizer(PIECES, **options)
    write(tmp_path, tokenizer)
    peer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    peer.save_pretrained(tmp_path / "again")
    loaded = BertTokenizer.from_preset(tmp_path / "again")
    assert loaded.get_config() == tokenizer.get_config()


@pytest.mark.parametrize("lowercase", [True, False])
def test_what_transformers_saves_itself(tmp_path, lowercase):
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    peer = transformers.BertTokenizer(
        vocab=str(tmp_path / "vocab.txt"), do_lower_case=lowercase
    )
    peer.save_pretrained(tmp_path / "saved")
    loaded = BertTokenizer.from_preset(tmp_path / "saved")
    assert loaded.lowercase == lowercase
    texts = [text for text in TEXTS if "[MASK]" not in text]
    assert peer(texts, add_special_tokens=False)["input_ids"] == loaded(texts)
