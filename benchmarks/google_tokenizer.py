"""Google's tokenizer as the oracle, and strings that are hard to tokenize.

Needs `bert-tensorflow==1.0.4` (google-research/bert, unmodified), TensorFlow, and
Python 3.11, whose Unicode data kbert froze.
"""

import functools
import random
import sys
import unicodedata

UNICODE_VERSION = "14.0.0"

# Sigma at the end of words, ignorable characters round it, expansions, marks out of
# order, marks that are no Mn, dropped characters, every kind of blank, CJK, Hangul.
SPECIAL_CHARACTERS = (
    "\u03a3\u03a3\u03a3\u03c3\u03c2\u0391\u03b1'.:\u2019\u00ad\u0345"
    "\u0130\u00df\u1e9e\ufb01\u01c4\u1fb3\u212a\u2126\u00c5\u0149\u1f80\u0390"
    "\u0300\u0301\u0316\u0327\u0338\u0345\u034f\u05b0\u064b\u093c\u094d\u0e38\u0e48"
    "\u302a\u302e\u302f\u1b44\u1bf2\u16ff0\u1d165\U00016ff1\U0001d165\U0001d16d"
    "\U0001d15e\U0001d160\U0001d1bb\u1715\ua953\U000111c0\u0f71\u0f72\u0f74\u0f80"
    "\x00\x01\x02\x03\x07\x0b\x0c\x1c\x1f\x7f\x85\xad\u200b\u200d\u2060\ufeff\ufffd"
    " \t\n\r\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"
    "\u4e2d\u6587\uf900\ufa0e\U00020000\U0002f800\u3007\u3005\u3042\u30d1\uff0c"
    "\ud55c\uad6d\u1100\u1161\u11a8\u00b7\u037e\u1fef\u2260\u226f\u2329"
    "#@[]$^`~|<>_-\ue000\U0001f469\u2764\ufe0f\U0001f971\u0378\U000e0041"
)

HARD_STRINGS = (
    "Unaffable!",
    "a\uff0cb",
    "a\u00a0b a\u3000b a\u202fb",
    "a\u2028b\u2029c\x85d\x0be\x0cf",
    "a\ufffdb a\x00b a\u200bb \ufeffa",
    "a\ue000b",
    "\ud55c\uad6d",
    "\u30d1\u30f3\u30c0 \u30cf\u309a\u30f3",
    "\U0001f971 \U0001f4a9\U0001f4a9\U0001f4a9",
    "na\u00efve nai\u0308ve m\u1edf b\u00e0i \u00e1a\u0301",
    "unwantedX unwanted",
    "the [MASK] fox [SEP]foo[CLS]bar [PAD] [UNK] ##ing [unused1]",
    "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03a3 "
    "\u03a3\u03a3 a\u03a3'b a\u03a3.",
    "\u0391\u03a3\u4e2d\u03a3 \u0391\u00ad\u03a3\u00ad \u0391\x00\u03a3\x00\u0391",
    "a\u302e\u1b44b a\u1b44\u302eb a\u302e\u0300\u1b44b a\u302e\u034f\u1b44b",
    "\u0130stanbul stra\u00dfe \ufb01n \u01c4 \u212b",
    "a" * 199 + " " + "a" * 200 + " " + "a" * 201,
    "\u00e9" * 200 + " " + "\u00e9" * 201 + " " + "e\u0301" * 200,
    "\u4e2d\u6587a\u4e2d\u0301b\u0301\u4e2d",
    "\udc80 a\ud800b",
    "",
    " \t\r\n",
    "\u0301 \x00 \u200d",
    "$1,234.56 `x` ~a~ <b> a_b c-d 50% \u20ac5 \u00bfqu\u00e9?",
    "\u037e \u1fef \u2260 \u2329x\u232a",
)


class GoogleTokenizer:
    """Ids by `bert.tokenization`, its two halves remembered word by word.

    Args:
        vocabulary_path: a `vocab.txt`.
        lowercase: its `do_lower_case`.
    """

    def __init__(self, vocabulary_path, lowercase):
        if unicodedata.unidata_version != UNICODE_VERSION:
            sys.exit(
                f"Google's code must run on Unicode {UNICODE_VERSION} (Python 3.11) "
                f"to be compared. Received: {unicodedata.unidata_version}."
            )
        from absl import flags
        from bert import tokenization

        if not flags.FLAGS.is_parsed():
            flags.FLAGS(sys.argv[:1])
        full = tokenization.FullTokenizer(str(vocabulary_path), lowercase)
        self.vocabulary = full.vocab
        self.words = full.basic_tokenizer.tokenize
        self._cut = functools.lru_cache(1 << 20)(full.wordpiece_tokenizer.tokenize)

    def ids_of_words(self, words):
        """Cuts the words that `words` found into pieces; returns their ids."""
        return [self.vocabulary[piece] for word in words for piece in self._cut(word)]

    def __call__(self, text):
        """Returns the ids of a text."""
        return self.ids_of_words(self.words(text))


def fuzzed_strings(count, seed, surrogates=False):
    """Makes random strings in which special characters meet ordinary ones.

    Args:
        count: how many.
        seed: of the generator.
        surrogates: whether some hold lone surrogates, which UTF-8 cannot encode.
    """
    generator = random.Random(seed)
    assigned = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
    ]
    pools = [
        "abcdefghijklmnopqrstuvwxyz",
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,!?'",
        [chr(code) for code in range(0x80, 0x600)],
        SPECIAL_CHARACTERS,
        SPECIAL_CHARACTERS,
        assigned,
    ]
    if surrogates:
        pools.append(["\ud800", "\udbff", "\udc00", "\udfff"])
    strings = []
    for _ in range(count):
        chosen = generator.sample(pools, k=generator.randint(1, 3))
        length = generator.choice((1, 3, 8, 20, 40))
        strings.append(
            "".join(generator.choice(generator.choice(chosen)) for _ in range(length))
        )
    return strings
