"""Fine-tune a BERT on film reviews, compare it, save it, serve it: `make demo`.

Takes about nine minutes on two cores, without a GPU, and two more to install.
All that it writes lies in demo_output/. Exits with 1 if fewer than 82 % of the held-out
sentences are right.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time
import warnings
from typing import NamedTuple

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import curve  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
import pictures  # noqa: E402
import sentences  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import kbert  # noqa: E402

PRESET = "all_minilm_l6_en_uncased"
LEAST_ACCURACY = 0.82
LEARNING_RATE = 1e-4  # a small model takes more than the paper's 5e-5
LOOKS = 4  # at the validation accuracy, an epoch
SENTENCES = [
    "A thoughtful and very funny film that stays with you for days.",
    "Two hours of my life that I will never get back.",
    "The plot is thin, but the actors turn every scene into a pleasure.",
]
HERE = pathlib.Path(__file__).resolve().parent
console = Console(highlight=False)


class Result(NamedTuple):
    """What one method answered to the held-out sentences."""

    method: str
    answers: list[str]
    seconds: float


def majority(split: sentences.Split) -> Result:
    """Answer what is most frequent."""
    label, _ = collections.Counter(split.train.labels).most_common(1)[0]
    return Result("majority class", [label] * len(split.held_out.texts), 0.0)


def bag_of_words(split: sentences.Split) -> Result:
    """TF-IDF of words and pairs of words, and a logistic regression on it."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    start = time.perf_counter()
    # C=10 was better here than scikit-learn's 1.
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000)
    )
    model.fit(split.train.texts, split.train.labels)
    answers = model.predict(split.held_out.texts).tolist()
    seconds = time.perf_counter() - start
    return Result("TF-IDF + logistic regression", answers, seconds)


def fine_tuned(split: sentences.Split, epochs: int, batch_size: int):
    """Fine-tune a pre-trained BERT; its answers, itself and its training curve."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The head is new and starts at random, which is what fine-tuning is for.
        warnings.filterwarnings("ignore", message=".*they stay random")
        classifier = kbert.BertClassifier.from_preset(PRESET, labels=sentences.LABELS)
    watched = split.validation
    steps = -(-len(split.train.texts) // batch_size)
    progress = curve.Curve(
        watched.texts,
        [sentences.LABELS.index(label) for label in watched.labels],
        every=max(steps // LOOKS, 1),
    )
    classifier.compile(learning_rate=LEARNING_RATE)
    classifier.fit(
        split.train.texts,
        split.train.labels,
        batch_size=batch_size,
        epochs=epochs,
        callbacks=[progress],
    )
    answers = [answer.label for answer in classifier.classify(split.held_out.texts)]
    result = Result(f"kbert, {PRESET}", answers, time.perf_counter() - start)
    return result, classifier, progress


def accuracy(result: Result, split: sentences.Split) -> float:
    """The share of held-out sentences that a method answered rightly."""
    return float(np.mean(np.array(result.answers) == np.array(split.held_out.labels)))


def print_table(results: list[Result], split: sentences.Split) -> None:
    table = Table(title=f"{len(split.held_out.texts):,} held-out sentences")
    table.add_column("method")
    table.add_column("accuracy", justify="right")
    table.add_column("seconds", justify="right")
    for result in results:
        seconds = f"{result.seconds:.0f}"
        table.add_row(result.method, f"{accuracy(result, split):.3f}", seconds)
    console.print(table)


def confusion(result: Result, split: sentences.Split) -> np.ndarray:
    """Counts, rows true and columns answered."""
    counts = np.zeros((2, 2), "int64")
    for true, answer in zip(split.held_out.labels, result.answers, strict=True):
        counts[sentences.LABELS.index(true), sentences.LABELS.index(answer)] += 1
    return counts


def ask_export(folder: pathlib.Path) -> str:
    """The answers of the export, from a process of its own."""
    command = [sys.executable, "-I", HERE / "ask.py", folder, *SENTENCES]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"The export does not answer:\n{done.stderr}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, default="demo_output")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)

    console.rule("Data")
    split = sentences.split_sentences(sentences.read_sentences())
    console.print(
        f"{len(split.train.texts):,} sentences to learn from, "
        f"{len(split.validation.texts):,} to watch training by, "
        f"{len(split.held_out.texts):,} held out; {split.num_dropped} that stand in "
        "the held-out part as well were dropped."
    )
    console.rule("Training")
    results = [majority(split), bag_of_words(split)]
    result, classifier, progress = fine_tuned(
        split, arguments.epochs, arguments.batch_size
    )
    results.append(result)

    console.rule("Results")
    print_table(results, split)
    picture = arguments.output / "training.png"
    pictures.draw(picture, progress, confusion(result, split), sentences.LABELS)
    classifier.save_to_preset(arguments.output / "preset")
    classifier.export(arguments.output / "saved_model", verbose=False)
    console.print(
        f"In {arguments.output}/: training.png (curve and confusion matrix), preset "
        "(for kbert and transformers), saved_model (for TensorFlow Serving)."
    )
    reached = accuracy(result, split) >= LEAST_ACCURACY
    if not reached:
        console.print(f"[red]The accuracy must be at least {LEAST_ACCURACY}.[/red]")

    console.rule("The exported model, asked by a process with TensorFlow alone")
    sys.stdout.write(ask_export(arguments.output / "saved_model"))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
