"""Instances of pre-training against Google's `create_pretraining_data.py`.

    .venv-bench/bin/python benchmarks/instances.py [--quick]

The text of ../shared/data/corpus, a sentence a line, in documents of some twenty. MB/s
of a core and peak memory on the same text and settings; memory at eight times the
corpus; the bytes with 1, 2 and 4 workers, and after kills at random moments; what both
choose, by a chi-square test of each distribution. Exits 1 where a bar is missed; writes
benchmarks/results/instances.json.
"""

import argparse
import hashlib
import importlib.util
import json
import lzma
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from contestants import RESULTS, SHARED
from demo_accuracy import machine

MAKERS = pathlib.Path(__file__).with_name("instance_makers.py")
SPEED_BAR, MEMORY_BAR, CHANCE_BAR = 5.0, 1.2, 1e-3
SENTENCES = 20  # of a document
DUPE_FACTOR = 10  # Google's default


def write_corpus(path, size):
    """Writes so many bytes of text, from every file as much, in Google's format."""
    from kbert.data.corpus import sentence_splitter

    files = sorted((SHARED / "data" / "corpus").glob("*.xz"))
    if not files:
        sys.exit(f"There is no corpus in {SHARED}/data/corpus.")
    split = sentence_splitter("en")
    with open(path, "w", encoding="utf-8") as target:
        for file in files:
            document, written = [], 0
            with lzma.open(file, "rt", encoding="utf-8") as source:
                for paragraph in source:
                    document += split(paragraph.strip())
                    if len(document) < SENTENCES and paragraph.strip():
                        continue
                    text = "\n".join([*document, "", ""])
                    target.write(text if document else "")
                    written += len(text.encode())
                    document = []
                    if written >= size / len(files):
                        break
    return path


def run(maker, *arguments):
    """Runs a maker in a process of its own; returns what it prints."""
    done = subprocess.run(
        [sys.executable, MAKERS, maker, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def environment():
    """Keras on the backend that takes least memory; Google's code has TensorFlow."""
    return {**os.environ, "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3"}


def digest(folder):
    """One sha256 of all files in a folder, by name."""
    total = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def measure_speed(folder, size, turns):
    """MB of text a second of one core, of both in turns; the best of each."""
    corpus = write_corpus(folder / "speed.txt", size)
    size = corpus.stat().st_size
    found = {"bytes": size, "kbert": [], "google": []}
    for turn in range(turns):
        for maker in ("kbert", "google"):
            target = folder / f"{maker}{turn}"
            found[maker].append(run(maker, corpus, target, DUPE_FACTOR))
    for maker in ("kbert", "google"):
        told = min(found[maker], key=lambda one: one["processor_seconds"])
        rate = size / told["processor_seconds"] / 1e6
        found[maker] = {**told, "megabytes_a_second": rate}
        print(
            f"{maker:>8}: {rate:.3f} MB/s a core ({told['seconds']:.1f} s by the "
            f"clock), {mebibytes(told)}, {told['instances']:,} instances of "
            f"{size / 1e6:.1f} MB"
        )
    rates = [found[maker]["megabytes_a_second"] for maker in ("kbert", "google")]
    found["times"] = rates[0] / rates[1]
    return found


def measure_memory(folder, size):
    """Peak memory at a corpus and at eight times as much."""
    once = write_corpus(folder / "once.txt", size)
    eight = folder / "eight.txt"
    with open(eight, "wb") as target:
        for _ in range(8):
            target.write(once.read_bytes())
    shard_tokens = size // 16  # several shards at either size
    found = {}
    for name, corpus in (("once", once), ("eight", eight)):
        told = run("kbert", corpus, folder / name, 1, 1, shard_tokens)
        found[name] = {"bytes": corpus.stat().st_size, **told}
        print(f"{found[name]['bytes'] / 1e6:8.1f} MB of text: {mebibytes(told)}")
        corpus.unlink()
    # Of the work alone: that of the whole process is nearer to 1, since what Keras
    # imports takes the most.
    found["ratio"] = found["eight"]["bytes_for_work"] / found["once"]["bytes_for_work"]
    return found


def mebibytes(told):
    """What a maker took of memory, as words."""
    peak, work = (told[key] / 2**20 for key in ("peak_bytes", "bytes_for_work"))
    return f"peak {peak:.0f} MiB, {work:.0f} of them for the work"


def compare_bytes(folder, size, kills):
    """The digests with several workers, and after kills at random moments."""
    corpus = write_corpus(folder / "bytes.txt", size)
    arguments = [DUPE_FACTOR, 1, size // 40]
    found = {}
    for workers in (1, 2, 4):
        target = folder / f"workers{workers}"
        arguments[1] = workers
        told = run("kbert", corpus, target, *arguments)
        found[f"{workers} workers"] = digest(target)
        print(f"{workers} workers: {told['seconds']:.1f} s")
    # A little longer than it takes, so that some kills come too late to matter.
    rng, longest = random.Random(0), told["seconds"]
    arguments[1] = 2
    command = [sys.executable, MAKERS, "kbert", corpus, folder / "killed", *arguments]
    moments = []
    for _ in range(kills):
        child = subprocess.Popen(list(map(str, command)), env=environment())
        time.sleep(rng.uniform(0.5, longest))
        moments.append(child.poll() is None)
        child.send_signal(signal.SIGKILL)
        child.wait()
    run(*command[2:])
    found["killed"] = digest(folder / "killed")
    print(f"{sum(moments)} of {kills} kills came before the end")
    return found | {"kills": sum(moments)}


def compare_choices(folder, size, passes):
    """Chi-square tests of what both choose."""
    from scipy.stats import chi2_contingency

    corpus = write_corpus(folder / "choices.txt", size)
    ours, theirs = (
        run(f"{maker}_statistics", corpus, passes) for maker in ("kbert", "google")
    )
    found = {}
    print("distribution     kbert and Google's counts; chi-square; chance of as much")
    for name in ours:
        columns = [pair for pair in zip(ours[name], theirs[name], strict=True)]
        columns = [pair for pair in columns if sum(pair) >= 10]
        test = chi2_contingency(list(zip(*columns, strict=True)), correction=False)
        found[name] = {
            "kbert": ours[name],
            "google": theirs[name],
            "chi_square": float(test.statistic),
            "degrees_of_freedom": int(test.dof),
            "chance": float(test.pvalue),
        }
        shown = "" if len(columns) > 4 else f"{ours[name]} {theirs[name]}; "
        print(
            f"{name:>8}: {shown}{test.statistic:.2f} with {test.dof} degrees of "
            f"freedom; {test.pvalue:.3f}"
        )
    return found


def missed(results):
    """Yields what bars are missed."""
    if results["speed"]["times"] < SPEED_BAR:
        yield f"{results['speed']['times']:.2f} times Google's speed, not {SPEED_BAR}"
    if results["memory"]["ratio"] > MEMORY_BAR:
        yield f"{results['memory']['ratio']:.2f} times the memory, not {MEMORY_BAR}"
    digests = {v for k, v in results["bytes"].items() if k != "kills"}
    if len(digests) > 1:
        yield "bytes that differ"
    for name, test in results["choices"].items():
        if test["chance"] < CHANCE_BAR:
            yield f"a chance of {test['chance']:.1e} for {name}, not {CHANCE_BAR}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="little text, once")
    quick = parser.parse_args().quick
    for package in ("bert", "pyarrow", "sentencex", "scipy"):
        if importlib.util.find_spec(package) is None:
            sys.exit(f"This needs the package {package}; `make bench` installs it.")
    megabyte = 1_000_000 // (8 if quick else 1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        results = {
            "machine": machine(),
            "speed": measure_speed(folder, 2 * megabyte, 1 if quick else 2),
            "memory": measure_memory(folder, 8 * megabyte),
            "bytes": compare_bytes(folder, 8 * megabyte, 3 if quick else 6),
            "choices": compare_choices(folder, 4 * megabyte, 1 if quick else 3),
        }
    print(
        f"{results['speed']['times']:.1f} times Google's speed; at 8 times the corpus "
        f"{results['memory']['ratio']:.3f} times the memory"
    )
    misses = list(missed(results))
    for line in misses:
        print(f"MISSED: {line}")
    if not quick:
        path = RESULTS / "instances.json"
        path.write_text(json.dumps(results, indent=2) + "\n")
        print(f"Wrote {path.relative_to(RESULTS.parent.parent)}.")
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
