"""Does laying several texts a row change what a model learns, with dropout on?

    .venv-bench/bin/python benchmarks/packed_accuracy.py [--quick]

Fine-tunes MiniLM on SST-2 with packed rows and with one text a row, five seeds each, on
the TensorFlow backend, and prints the accuracies on the test sentences with the 95 %
interval of the mean difference (Student's t over the seeds). Exits with 1 if 0 lies
outside of it. Takes about half an hour on two cores; writes
benchmarks/results/packed_accuracy.json.
"""

import argparse
import importlib.metadata
import json
import math
import os
import statistics
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from contestants import PRESET, RESULTS, read_sst2  # noqa: E402
from demo_accuracy import machine  # noqa: E402

import kbert  # noqa: E402

SEEDS, TRAINED_ON, LEARNING_RATE = 5, 3200, 1e-4
STUDENT_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}  # 95 %, by degrees of freedom
PACKAGES = ("keras", "numpy", "tensorflow")


def accuracy(rows, seed, train, test):
    """The share of test sentences answered rightly after one epoch, and seconds."""
    keras.utils.set_random_seed(seed)
    classifier = kbert.BertClassifier.from_preset(PRESET, num_classes=2)
    classifier.compile(learning_rate=LEARNING_RATE, rows=rows)
    start = time.perf_counter()
    classifier.fit(*train, verbose=0)
    seconds = time.perf_counter() - start
    answers = classifier.predict(test[0], verbose=0).argmax(axis=1)
    return float((answers == np.array(test[1])).mean()), seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="try it: few sentences")
    arguments = parser.parse_args()
    size, seeds = (64, 2) if arguments.quick else (TRAINED_ON, SEEDS)
    texts, labels = read_sst2("train")
    chosen = np.random.default_rng(0).permutation(len(texts))[:size]
    train = [texts[i] for i in chosen], [labels[i] for i in chosen]
    test = [part[:size] for part in read_sst2("test")]
    runs = []
    for seed in range(seeds):
        for rows in ("packed", "single"):
            score, seconds = accuracy(rows, seed, train, test)
            runs.append({"rows": rows, "seed": seed, "accuracy": score, "s": seconds})
            print(f"seed {seed}  {rows:6}  {score:.4f}  {seconds:.0f} s", flush=True)
    scores = {
        rows: [run["accuracy"] for run in runs if run["rows"] == rows]
        for rows in ("packed", "single")
    }
    differences = [a - b for a, b in zip(*scores.values(), strict=True)]
    mean = statistics.mean(differences)
    half = statistics.stdev(differences) / math.sqrt(seeds) * STUDENT_T[seeds - 1]
    print(
        f"packed {statistics.mean(scores['packed']):.4f}, "
        f"single {statistics.mean(scores['single']):.4f}; packed minus single "
        f"{mean:+.4f}, interval {mean - half:+.4f} to {mean + half:+.4f}"
    )
    if not arguments.quick:
        result = {
            "settings": {"preset": PRESET, "sentences": size, "epochs": 1},
            "machine": machine(),
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
            "runs": runs,
            "difference": mean,
            "half_interval": half,
        }
        path = RESULTS / "packed_accuracy.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if abs(mean) <= half else 1


if __name__ == "__main__":
    sys.exit(main())
