"""Writes tests/goldens/tokenizer_google.json with Google's own tokenizer.

.venv-bench/bin/python scripts/make_tokenizer_goldens.py
"""

import json
import pathlib
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[1]
PATH = PROJECT / "tests" / "goldens" / "tokenizer_google.json"
sys.path[:0] = [str(PROJECT), str(PROJECT / "benchmarks")]

from google_tokenizer import (  # noqa: E402
    HARD_STRINGS,
    SPECIAL_CHARACTERS,
    GoogleTokenizer,
    fuzzed_strings,
)

NUM_FUZZED = 400
# Preset name: whether its vocabulary is lower case.
PRESETS = {
    "bert_base_en_uncased": True,
    "bert_base_en_cased": False,
    "bert_base_multilingual_cased": False,
    "bert_base_zh": True,
}


def main():
    """Writes the texts and, for every preset, the ids of each."""
    from kbert.presets import find_preset

    texts = [*HARD_STRINGS, *SPECIAL_CHARACTERS]
    texts += [f"a{character}b" for character in SPECIAL_CHARACTERS]
    texts += fuzzed_strings(NUM_FUZZED, seed=7, surrogates=True)
    goldens = {"texts": texts, "ids": {}}
    for name, lowercase in PRESETS.items():
        path = find_preset(name).path("vocab.txt")
        google = GoogleTokenizer(path, lowercase)
        goldens["ids"][name] = [google(text) for text in texts]
    PATH.write_text(json.dumps(goldens, separators=(",", ":")) + "\n")
    print(f"{PATH}: {len(texts)} texts, {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
