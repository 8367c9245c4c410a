"""What the preset `kbert_tiny_en_uncased` has learnt, and what that is worth.

    .venv-bench/bin/python benchmarks/kbert_tiny.py [--preset PRESET] [--quick]

Until presets/ has it, name the folder of a run: `--preset FOLDER/run/preset`.
Judges masked tokens and next sentences on documents that it did not learn from, beside
the most frequent piece; then fine-tunes it on SST-2, MRPC and CoLA, and beside it the
same network from random weights, three seeds each, with the same settings. Exits with 1
where a bar is missed. Takes about ten minutes on two cores, on PyTorch unless
KERAS_BACKEND says otherwise; writes benchmarks/results/kbert_tiny.json.
"""

import argparse
import csv
import io
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time
import warnings

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from contestants import (  # noqa: E402
    SHARED,
    print_table,
    print_verdicts,
    read_sst2,
    write_result,
)

import kbert  # noqa: E402
from kbert.data.corpus import CorpusFormat  # noqa: E402
from kbert.metrics.glue import accuracy, f1, matthews  # noqa: E402
from kbert.preprocessing.masking import MaskingRule  # noqa: E402
from kbert.pretraining.batches import InstanceBatches  # noqa: E402
from kbert.pretraining.creation import create_instances  # noqa: E402
from kbert.pretraining.settings import InstanceSettings  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "pretraining"))

import documents  # noqa: E402

PRESET = "kbert_tiny_en_uncased"
CORPUS = (
    "janeaustenr",
    "python3.11-doc",
    "postgresql-doc-15",
    "sqlite3-doc",
    "libreoffice-help-en-us",
)
LEAST_MLM, LEAST_NSP = 0.20, 0.65
LENGTHS = {128: 20, 512: 77}  # most masked tokens of an instance
SEEDS, EPOCHS, BATCH_SIZE, LEARNING_RATE = 3, 4, 32, 5e-4


def held_out(preset, folder, quick):
    """{length: losses and accuracies on held-out documents, and the baseline's}."""
    sources = [str(SHARED / "data" / "corpus" / f"{name}.txt.xz") for name in CORPUS]
    text = folder / "held_out.txt"
    documents.part(sources, folder / "learn.txt", text)
    task = kbert.BertPretrainer.from_preset(preset)
    found = {}
    for length, most in LENGTHS.items():
        settings = InstanceSettings(
            sequence_length=length, dupe_factor=1, masking=MaskingRule(0.15, most)
        )
        instances = folder / f"instances-{length}"
        create_instances(
            text,
            instances,
            task.preprocessor.tokenizer,
            settings,
            format=CorpusFormat("paragraphs"),
        )
        batches = InstanceBatches(instances, 16)
        steps = min(batches.num_instances // 16, 4 if quick else 10**9)
        scores = task.evaluate(batches, steps=steps, verbose=0, return_dict=True)
        labels = np.concatenate(
            [batches.instances_at(step).mask_labels for step in range(steps)]
        )
        scores["most frequent piece"] = float(np.bincount(labels).max() / len(labels))
        found[length] = {"instances": steps * 16, **scores}
    return found


def read_mrpc(split):
    """Pairs and labels of the Microsoft Research paraphrase corpus."""
    path = SHARED / "data" / "mrpc" / f"msr_paraphrase_{split}.txt"
    lines = path.read_text("utf-8-sig").rstrip("\n").split("\n")[1:]
    rows = [line.split("\t") for line in lines]
    pairs = [row[3] for row in rows], [row[4] for row in rows]
    return pairs, [int(row[0]) for row in rows]


def read_cola(split):
    """Sentences and labels of CoLA, its in-domain part."""
    path = SHARED / "data" / "cola" / f"in_domain_{split}.tsv"
    rows = csv.reader(
        io.StringIO(path.read_text("utf-8")), delimiter="\t", quoting=csv.QUOTE_NONE
    )
    labels, texts = zip(*((int(row[1]), row[3]) for row in rows), strict=True)
    return list(texts), list(labels)


# Reader, splits to learn from and to judge by, measure.
TASKS = {
    "SST-2": (read_sst2, "train", "test", accuracy),
    "MRPC": (read_mrpc, "train", "test", f1),
    "CoLA": (read_cola, "train", "dev", matthews),
}


def fine_tuned(preset, task, seed, load_weights, quick):
    """The score of a classifier on one task."""
    read, learn, judge, measure = TASKS[task]
    (x, y), (test, truth) = read(learn), read(judge)
    if quick:
        x, y = cut(x, 256), y[:256]
    keras.utils.set_random_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the head is random
        classifier = kbert.BertClassifier.from_preset(
            preset, num_classes=2, load_weights=load_weights
        )
    classifier.compile(learning_rate=LEARNING_RATE)
    classifier.fit(x, y, epochs=EPOCHS, batch_size=BATCH_SIZE, verbose=0)
    answers = classifier.predict(test, verbose=0).argmax(axis=1)
    return measure(np.array(truth), answers)


def cut(x, count):
    return tuple(part[:count] for part in x) if isinstance(x, tuple) else x[:count]


def compare(preset, quick):
    """{task: scores of each start by seed}."""
    found = {}
    for task in TASKS:
        found[task] = {"pre-trained": [], "random": []}
        for seed in range(SEEDS):
            for start, load in (("pre-trained", True), ("random", False)):
                begun = time.perf_counter()
                score = fine_tuned(preset, task, seed, load, quick)
                found[task][start].append(score)
                seconds = time.perf_counter() - begun
                print(
                    f"{task} seed {seed} {start:11} {score:.4f}  {seconds:.0f} s",
                    flush=True,
                )
    return found


def judge(learnt, worth):
    """{title: {"met": whether it is, and what was measured}}."""
    verdicts = {}
    for name, key, least in (
        ("masked tokens", "mlm_accuracy", LEAST_MLM),
        ("next sentences", "nsp_accuracy", LEAST_NSP),
    ):
        value = learnt[128][key]
        verdicts[f"{name} of held-out documents: accuracy of at least {least}"] = {
            "met": value >= least,
            "accuracy": round(value, 4),
        }
    for task, scores in worth.items():
        gains = [
            a - b for a, b in zip(scores["pre-trained"], scores["random"], strict=True)
        ]
        mean = statistics.mean(gains)
        error = statistics.stdev(gains) / math.sqrt(len(gains))
        least = error if task == "SST-2" else 0.0
        verdicts[
            f"{task}: above random weights{' by the standard error' * bool(least)}"
        ] = {
            "met": mean > least,
            "gain": round(mean, 4),
            "standard error": round(error, 4),
        }
    return verdicts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default=PRESET, help="another one, or a folder")
    parser.add_argument("--quick", action="store_true", help="try it: little data")
    arguments = parser.parse_args()
    if not SHARED.exists():
        sys.exit("Nothing was measured: the data of ../shared are absent.")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        learnt = held_out(arguments.preset, pathlib.Path(folder), arguments.quick)
    columns = {key: (lambda told, key=key: f"{told[key]:.4g}") for key in learnt[128]}
    print_table({f"length {key}": value for key, value in learnt.items()}, columns)
    worth = compare(arguments.preset, arguments.quick)
    starts = ("pre-trained", "random")
    means = {
        task: {start: statistics.mean(scores[start]) for start in starts}
        for task, scores in worth.items()
    }
    columns = {key: (lambda told, key=key: f"{told[key]:.4f}") for key in starts}
    print_table(means, columns)
    verdicts = judge(learnt, worth)
    met = print_verdicts(verdicts)
    if not arguments.quick:
        settings = {
            "preset": arguments.preset,
            "seeds": SEEDS,
            "epochs": EPOCHS,
            "learning_rate": LEARNING_RATE,
        }
        figures = {"held_out": learnt, "fine_tuned": worth}
        write_result(__file__, settings, figures, verdicts, load)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
