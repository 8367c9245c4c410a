"""The tokenizer against Google's code (ids, offsets) and transformers' (speed).

    .venv-bench/bin/python benchmarks/tokenizer.py [--quick]

Ids of both executors against `bert.tokenization` over every assigned code point, alone
and inside a word, 200,000 fuzzed strings and the text in ../shared/data, for four
vocabularies; offsets against a search for the smallest span; then English text seen
once, one thread each, cold cache, batches of 256, all contestants in turns. Exits 1
where a bar is missed; writes benchmarks/results/tokenizer.json.
"""

import argparse
import json
import lzma
import os
import pathlib
import platform
import random
import statistics
import sys
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
PROJECT = pathlib.Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared"
RESULTS = PROJECT / "benchmarks" / "results" / "tokenizer.json"
sys.path.insert(0, str(PROJECT))

import tensorflow as tf  # noqa: E402
from google_tokenizer import (  # noqa: E402
    HARD_STRINGS,
    GoogleTokenizer,
    fuzzed_strings,
)

from kbert import BertTokenizer  # noqa: E402
from kbert.tokenization.in_graph import WordPieceGraph  # noqa: E402

PRESETS = (
    "bert_base_en_uncased",
    "bert_base_en_cased",
    "bert_base_multilingual_cased",
    "bert_base_zh",
)
PYTHON_BAR, GRAPH_BAR = 3.0, 1.0  # times transformers' fast tokenizer
BATCH = 256
CHUNK = 2_000  # strings compared at a time
TRACED = 8  # `encode`, which is slower, sees every eighth chunk


def code_point_strings():
    """Every assigned code point, alone and inside a word."""
    codes = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) != "Cn"]
    return codes + [f"a{character}b" for character in codes]


def shared_lines(limit):
    """The lines of every text file in ../shared/data; at most `limit` bytes a file."""
    lines = []
    for path in sorted((SHARED / "data").rglob("*.*")):
        opened = lzma.open if path.suffix == ".xz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            lines += file.read(limit).split("\n")
    return lines


def compare(tokenizer, graph, google, texts, words, traced):
    """Counts texts whose ids differ from Google's: by Python, encode, and graph."""
    expected = [google.ids_of_words(found) for found in words]
    pairs = zip(tokenizer(texts), expected, strict=True)
    wrong = {"python": sum(got != ids for got, ids in pairs), "encode": 0}
    if traced:
        pairs = zip(texts, expected, strict=True)
        wrong["encode"] = sum(tokenizer.encode(t).ids != ids for t, ids in pairs)
    valid = [n for n, text in enumerate(texts) if is_utf8(text)]
    got = graph(tf.constant([texts[n].encode() for n in valid], tf.string))
    pairs = zip(got.to_list(), (expected[n] for n in valid), strict=True)
    wrong["graph"] = sum(ids != right for ids, right in pairs)
    return wrong


def is_utf8(text):
    """Tells whether a string has no lone surrogate."""
    return not any(0xD800 <= ord(c) < 0xE000 for c in text) if text else True


def check_ids(quick):
    """Compares ids for all vocabularies; returns mismatches by set and executor."""
    sets = {
        "code points": code_point_strings()[:: 40 if quick else 1],
        "hard strings": list(HARD_STRINGS),
        "fuzzed": fuzzed_strings(5_000 if quick else 200_000, 1, surrogates=True),
    }
    if SHARED.is_dir():
        sets["shared text"] = shared_lines(100_000 if quick else -1)
    else:
        print("shared text: left out, since ../shared is absent")
    tokenizers = {name: BertTokenizer.from_preset(name) for name in PRESETS}
    graphs = {name: WordPieceGraph(tokenizer) for name, tokenizer in tokenizers.items()}
    googles = {
        name: GoogleTokenizer(vocabulary_path(name), tokenizer.lowercase)
        for name, tokenizer in tokenizers.items()
    }
    results = {}
    for title, texts in sets.items():
        rows = {name: dict(python=0, encode=0, graph=0) for name in PRESETS}
        for number, start in enumerate(range(0, len(texts), CHUNK)):
            chunk = texts[start : start + CHUNK]
            for lowercase in (True, False):
                names = [n for n in PRESETS if tokenizers[n].lowercase == lowercase]
                # The first half of Google's code depends on the case alone.
                words = [googles[names[0]].words(text) for text in chunk]
                for name in names:
                    trio = tokenizers[name], graphs[name], googles[name]
                    traced = number % TRACED == 0
                    wrong = compare(*trio, chunk, words, traced)
                    for executor, count in wrong.items():
                        rows[name][executor] += count
        for name, wrong in rows.items():
            results[f"{title}, {name}"] = {"strings": len(texts), **wrong}
            told = ", ".join(f"{executor} {n}" for executor, n in wrong.items())
            print(f"{title:13} {name:29} {len(texts):8,} strings; wrong: {told}")
    return results


def vocabulary_path(name):
    """Where a built-in preset's vocab.txt lies."""
    from kbert.presets import find_preset

    return find_preset(name).path("vocab.txt")


def smallest_span(google, text, place, piece):
    """Searches the smallest span whose normalisation holds a piece.

    Args:
        google: gives the normalised words of a string.
        text: the original.
        place: how many normalised characters stand before the piece.
        piece: its characters.

    Returns:
        `(start, end)`, or None where marks were reordered, so that no cut is clean.
    """

    def normal(part):
        # Which small sigma a capital one becomes depends on what stands around it.
        return "".join(google.words(part)).replace("ς", "σ")

    piece = piece.replace("ς", "σ")
    whole, found = normal(text), None
    for start in range(len(text)):
        before = normal(text[:start])
        if not whole.startswith(before):
            return None  # marks were reordered across the cut
        offset = place - len(before)
        if offset < 0:
            break
        for end in range(start + 1, len(text) + 1):
            inner = normal(text[start:end])
            if not whole[len(before) :].startswith(inner):
                continue
            if inner[offset : offset + len(piece)] == piece:
                if found is None or end - start < found[1] - found[0]:
                    found = (start, end)
                break
    return found


def check_offsets(quick):
    """Compares offsets with the search; returns how many were checked and wrong."""
    checked = wrong = undecided = 0
    for name in PRESETS[:2]:
        tokenizer = BertTokenizer.from_preset(name)
        google = GoogleTokenizer(vocabulary_path(name), tokenizer.lowercase)
        texts = [text for text in HARD_STRINGS if len(text) < 60]
        texts += [t[:16] for t in fuzzed_strings(100 if quick else 1_500, 2)]
        for text in texts:
            place = 0
            words = google.words(text)
            for piece, span in pieces_with_characters(tokenizer, text, words):
                found = smallest_span(google, text, place, piece)
                place += len(piece)
                undecided += found is None
                checked += found is not None
                if found is not None and found != span:
                    wrong += 1
                    print(f"offsets of {piece!r} in {text!r}: {span}, not {found}")
    print(f"offsets: {checked:,} checked, {undecided} undecided, {wrong} wrong")
    return {"checked": checked, "undecided": undecided, "wrong": wrong}


def pieces_with_characters(tokenizer, text, words):
    """Yields the normalised characters of every piece with its offsets."""
    encoding = tokenizer.encode(text)
    spans = iter(zip(encoding.ids, encoding.pieces, encoding.offsets, strict=True))
    for word in words:
        rest = word
        while rest:
            index, piece, span = next(spans)
            if index == tokenizer.unk_id:
                piece = rest
            elif rest != word:
                piece = piece[2:]
            yield piece, span
            rest = rest[len(piece) :]


def english_batches(num_bytes):
    """Paragraphs of English text, each once, in batches of 256."""
    paragraphs = []
    if SHARED.is_dir():
        for path in sorted((SHARED / "data" / "corpus").glob("*.xz")):
            with lzma.open(path, "rt", encoding="utf-8") as file:
                paragraphs += [line for line in file.read().split("\n") if line]
    else:
        import pydoc_data.topics

        for text in pydoc_data.topics.topics.values():
            paragraphs += [part for part in text.split("\n\n") if part]
    random.Random(0).shuffle(paragraphs)
    chosen, size = [], 0
    for paragraph in paragraphs:
        chosen.append(paragraph)
        size += len(paragraph.encode())
        if size >= num_bytes and len(chosen) % BATCH == 0:
            break
    batches = [chosen[i : i + BATCH] for i in range(0, len(chosen), BATCH)]
    return batches, size


def check_speed(quick):
    """Times all contestants in turns; returns megabytes a second of each."""
    from transformers import BertTokenizerFast

    batches, size = english_batches(1_500_000 if quick else 8_000_000)
    path = vocabulary_path(PRESETS[0])
    graph = WordPieceGraph(BertTokenizer(path))
    tensors = [tf.constant(batch) for batch in batches]
    graph(tensors[0])

    def by_transformers():
        fast = BertTokenizerFast(vocab=str(path), do_lower_case=True)
        fast("a")
        yield from (fast(b, add_special_tokens=False)["input_ids"] for b in batches)

    def by_encode_batch():
        fast = BertTokenizerFast(vocab=str(path), do_lower_case=True)._tokenizer
        for batch in batches:
            encodings = fast.encode_batch(batch, add_special_tokens=False)
            yield [encoding.ids for encoding in encodings]

    def by_python():
        tokenizer = BertTokenizer(path)
        tokenizer("a")
        yield from (tokenizer(batch) for batch in batches)

    def by_graph():
        yield from (graph(tensor) for tensor in tensors)

    contestants = {
        "transformers": by_transformers,
        "tokenizers encode_batch": by_encode_batch,
        "kbert, Python": by_python,
        "kbert, graph": by_graph,
    }
    rates = {name: [] for name in contestants}
    for _ in range(3 if quick else 7):
        for name, contestant in contestants.items():
            rates[name].append(size / 1e6 / seconds(contestant()))
    print(f"{size / 1e6:.1f} MB of English text seen once, {BATCH} texts a call:")
    return rates


def seconds(results):
    """Wall time of a generator behind its first result, scaled to all of it."""
    start = time.perf_counter()
    count, setup = 0, 0.0
    for _ in results:
        if not count:
            # What is built before the first batch is no part of the throughput.
            setup = time.perf_counter() - start
            start = time.perf_counter()
        count += 1
    return (time.perf_counter() - start) * count / max(count - 1, 1) if setup else 0


def judge(ids, offsets, rates):
    """Prints the verdicts; returns whether every bar is met."""
    wrong = sum(n for row in ids.values() for k, n in row.items() if k != "strings")
    peers = ("transformers", "tokenizers encode_batch")
    # Turn by turn, since other work on the machine comes and goes.
    peer = [max(pair) for pair in zip(*(rates[p] for p in peers), strict=True)]
    ratios = {
        name: statistics.median(a / b for a, b in zip(rates[name], peer, strict=True))
        for name in ("kbert, Python", "kbert, graph")
    }
    for name, values in rates.items():
        best, median = max(values), statistics.median(values)
        told = f"  {ratios[name]:.2f} times the faster peer" if name in ratios else ""
        print(f"  {name:24} best {best:6.2f}, median {median:6.2f} MB/s{told}")
    verdicts = {
        "ids equal to Google's": wrong == 0,
        "offsets the smallest span": offsets["wrong"] == 0,
        f"Python at least {PYTHON_BAR} times": ratios["kbert, Python"] >= PYTHON_BAR,
        f"graph at least {GRAPH_BAR} times": ratios["kbert, graph"] >= GRAPH_BAR,
    }
    for title, met in verdicts.items():
        print(f"{'met' if met else 'MISSED':6} {title}")
    return ratios, all(verdicts.values())


def main():
    """Runs all parts and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small sample")
    parser.add_argument("--only", choices=("ids", "offsets", "speed"))
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    parts = {"ids": check_ids, "offsets": check_offsets, "speed": check_speed}
    if arguments.only:
        print(parts[arguments.only](arguments.quick))
        return
    start = time.perf_counter()
    found = {name: part(arguments.quick) for name, part in parts.items()}
    ratios, met = judge(found["ids"], found["offsets"], found["speed"])
    if not arguments.quick:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        result = {
            "command": "benchmarks/tokenizer.py",
            "machine": machine,
            "python": platform.python_version(),
            "seconds": round(time.perf_counter() - start),
            "ratios": {name: round(ratio, 2) for name, ratio in ratios.items()},
            **found,
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
