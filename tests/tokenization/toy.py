"""A small vocabulary that spells every ASCII letter, and what some tests need."""

import json
import string

from tests.conftest import TESTS

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["un", "##want", "##ed", "want", "the", "fox", "##aff", "##able", "mask"]
LETTERS = [*string.ascii_lowercase, *(f"##{c}" for c in string.ascii_lowercase)]
UPPER = [*string.ascii_uppercase, *(f"##{c}" for c in string.ascii_uppercase)]
GREEK = ["α", "##α", "σ", "##σ", "ς", "##ς"]
OTHERS = list("[]!'.,#-;`，中文豈ᄒ") + ["##ᅡ", "##ᆫ", "é", "##é"]
MARKS = ["##\u302e", "##\u1b44"]
PIECES = SPECIALS + WORDS + LETTERS + UPPER + GREEK + OTHERS + MARKS


# Sizes of tiny vocabularies, and where in them [UNK] stands.
SMALL = [(size, place) for size in (6, 7, 8) for place in range(size)]


def small(size: int, place: int) -> list[str]:
    """The pieces of a tiny vocabulary."""
    others = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "b"][: size - 1]
    return [*others[:place], "[UNK]", *others[place:]]


def goldens() -> dict:
    """The ids of Google's own code; see scripts/make_tokenizer_goldens.py."""
    path = TESTS / "goldens" / "tokenizer_google.json"
    return json.loads(path.read_text(encoding="utf-8"))


def non_default() -> dict:
    """Every argument of `BertTokenizer` at a value that is not the default."""
    vocabulary = ["<p>", "<u>", "<c>", "<s>", "<m>", "[E]", "a"]
    return dict(
        vocabulary=vocabulary,
        lowercase=False,
        strip_accents=True,
        split_on_cjk=False,
        special_tokens_in_text=True,
        special_tokens=dict(pad="<p>", unk="<u>", cls="<c>", sep="<s>", mask="<m>"),
        max_word_length=7,
        extra_special_tokens=["[E]"],
    )
