"""Every format in and out, judged by its owner; and what loading BERT-base costs.

    .venv-bench/bin/python benchmarks/checkpoints.py [--backends tensorflow,jax,torch]

For every head and format the owner (transformers, Google's modeling.py, KerasHub) makes
a model with random weights and saves it, and kbert loads and computes ("in"); kbert
writes a model, and the owner loads and computes ("out"). Then kbert writes again what
it has read, and goes by way of the format back to its own: weights, configuration and
ids must be equal, bit for bit. A format that has no place for a head is left out.

Then BERT-base, with random weights in a safetensors file, is loaded in a process of its
own. "Reading" is safetensors's own reading of that file into numpy arrays.
Exits with 1 where an output differs by more than 1e-5, a round trip changes a bit, or
loading misses a bar. About eight minutes on two cores; writes
benchmarks/results/checkpoints.json.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import loading
import owners
from contestants import BACKENDS, RESULTS, SET, print_table, print_verdicts
from demo_accuracy import machine

TOLERANCE = 1e-5
FORMATS = ("huggingface", "google", "keras_hub")
TEXTS = ["The film was thoughtful.", "Naïve café, 2018!", "电影 很 好", "[MASK] [SEP]"]
PACKAGES = (
    *("keras-kbert", "keras", "numpy", "safetensors", "h5py", "tensorflow", "jax"),
    *("torch", "transformers", "keras-hub", "bert-tensorflow"),
)


class Head(NamedTuple):
    """A class of kbert's, and its owners' classes.

    Args:
        kbert: the class.
        transformers: the class there.
        keras_hub: the class there, None where there is none.
        google: the head as Google's script builds it: (TensorFlow 1, Google's modules,
            model) to logits; None for the encoder alone.
        answers: from what transformers returns to what kbert does, a numpy array; None
            for an encoder.
        formats: in which the head can be stored.
        pooler: whether kbert's model has a pooler, which Google's code always builds.
    """

    kbert: str
    transformers: str
    keras_hub: str | None = None
    google: Callable | None = None
    answers: Callable | None = None
    formats: tuple[str, ...] = FORMATS
    pooler: bool = True


# One line adds a head.
HEADS = (
    Head("BertBackbone", "BertModel", "BertBackbone"),
    Head(
        *("BertClassifier", "BertForSequenceClassification", "BertTextClassifier"),
        google=owners.google_classifier,
        answers=lambda found: found.logits.numpy(),
    ),
    Head(
        *("BertMaskedLM", "BertForMaskedLM", "BertMaskedLM"),
        google=owners.google_masked_lm,
        answers=lambda found: found.logits[:, 0].numpy(),
        pooler=False,
    ),
    Head(
        *("BertPretrainer", "BertForPreTraining"),
        google=owners.google_pretrainer,
        answers=lambda found: owners.end_to_end(
            found.prediction_logits[:, 0], found.seq_relationship_logits
        ),
        formats=("huggingface", "google"),
    ),
    Head(
        *("BertQuestionAnswerer", "BertForQuestionAnswering"),
        google=owners.google_squad,
        answers=lambda found: owners.in_context(found.start_logits, found.end_logits),
        formats=("huggingface", "google"),
        pooler=False,
    ),
    Head(
        *("BertTokenClassifier", "BertForTokenClassification"),
        answers=lambda found: owners.at_text(found.logits),
        formats=("huggingface",),
    ),
    Head(
        *("BertMultipleChoice", "BertForMultipleChoice"),
        answers=lambda found: found.logits.numpy(),
        formats=("huggingface",),
    ),
    Head(
        *("BertEmbedder", "BertModel", "BertTextEmbedder"),
        answers=lambda found: owners.mean_of_texts(found.last_hidden_state),
        formats=("huggingface", "keras_hub"),
    ),
)


def compare(head, format, place):
    """The figures of one head in one format.

    Args:
        head: one of `HEADS`.
        format: one of `FORMATS`.
        place: a folder for the models.
    """
    import kbert

    theirs, again, ours = (place / f"{name}_uncased" for name in ("a", "b", "c"))
    expected = owners.WRITE[format](head, theirs)
    model, found = kberts(theirs)
    if type(model).__name__ != head.kbert:
        raise TypeError(f"A {head.kbert} must come of {theirs}. Received: {model}.")
    facts = {"head": head.kbert, "format": format, "in": largest(expected, found)}
    kbert.convert_preset(theirs, again, format)
    facts["same format"] = unchanged(theirs, again)
    source = place.parent / f"{head.kbert}_uncased"
    if (head.kbert, format) == ("BertMaskedLM", "keras_hub"):
        # Whose head computes otherwise than its encoder, as none of transformers' does.
        source = place / "d_uncased"
        kbert.convert_preset(theirs, source, "huggingface")
    elif not source.exists():
        owners.write_transformers(head, source)
    _, expected = kberts(source)
    kbert.convert_preset(source, ours, format)
    facts["out"] = largest(expected, owners.READ[format](head, ours))
    back = place / "back_uncased"
    if format == "huggingface":
        owners.resave_transformers(head, ours, back)
    else:
        kbert.convert_preset(ours, back, "huggingface")
    facts["there and back"] = unchanged(source, back)
    return facts


def kberts(folder):
    """Kbert's model of the files in a folder, and its outputs."""
    from kbert.checkpoints import sizes
    from kbert.convert import conversion

    side = conversion.open_preset(folder)
    report = sizes.compare(side.weights, side.claim.shapes, ())
    model = conversion.load_model(side)
    return model, conversion.outputs_of(side, model, owners.inputs(), report)


def largest(expected, found):
    """{output: largest difference} of the outputs that both have."""
    from kbert.convert import conversion

    return {
        name: conversion.largest_difference(expected[name], found[name])
        for name in sorted(set(expected) & set(found))
    }


def unchanged(source, target):
    """Whether two folders have the same weights, configuration and ids."""
    import kbert
    from kbert.checkpoints import sizes
    from kbert.convert import conversion

    sides = [conversion.open_preset(folder) for folder in (source, target)]
    weights = []
    for side in sides:
        variables = {path: Kept(shape) for path, shape in side.claim.shapes.items()}
        sizes.assigning.load_into(
            variables, side.weights.arrays, side.weights.format, source=""
        )
        weights.append({path: each.value for path, each in variables.items()})
    one, other = weights
    tokenizers = [kbert.BertTokenizer.from_preset(each) for each in (source, target)]
    return {
        "weights": set(one) == set(other)
        and all((one[path] == other[path]).all() for path in one),
        "config": sides[0].architecture == sides[1].architecture,
        "ids": tokenizers[0](TEXTS) == tokenizers[1](TEXTS),
    }


class Kept:
    """A variable that keeps what it is assigned."""

    def __init__(self, shape):
        self.shape = shape

    def assign(self, value):
        self.value = value


def run_one(only):
    """Prints the figures of every head and format on the backend of this process."""
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for head in HEADS:
            for format in FORMATS:
                if head.kbert in only and format in head.formats:
                    place = pathlib.Path(folder, f"{head.kbert}_{format}")
                    place.mkdir()
                    told.append(compare(head, format, place))
    print(json.dumps(told), flush=True)


def in_process(backend, *arguments):
    """The JSON that this script, or another, prints last in a process of its own."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, **SET, "KERAS_BACKEND": backend},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stderr[-3000:]}\n{backend}: status {done.returncode}.")
    return json.loads(done.stdout.splitlines()[-1])


def judge_rows(rows):
    """Verdicts on the table."""
    worst = max(difference for row in rows for difference in differences(row))
    changed = [
        f"{row['head']} {row['format']} {row['backend']} {way}: {what}"
        for row in rows
        for way in ("same format", "there and back")
        for what, equal in row[way].items()
        if not equal
    ]
    return {
        f"outputs within {TOLERANCE:g} of the owners'": {
            "met": worst <= TOLERANCE,
            "largest": float(f"{worst:.1e}"),
        },
        "round trips bit-equal": {"met": not changed, "changed": changed},
    }


def differences(row):
    """All differences of a row of the table."""
    return [*row["in"].values(), *row["out"].values()]


def print_rows(rows):
    """Prints the table."""
    columns = {
        "in": lambda row: f"{max(row['in'].values()):.1e}",
        "out": lambda row: f"{max(row['out'].values()):.1e}",
        "same format": lambda row: equal(row["same format"]),
        "there and back": lambda row: equal(row["there and back"]),
    }
    names = ("head", "format", "backend")
    print_table({"  ".join(row[n] for n in names): row for row in rows}, columns)


def equal(facts):
    changed = [what for what, same in facts.items() if not same]
    return f"changed: {', '.join(changed)}" if changed else "bit-equal"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ",".join(head.kbert for head in HEADS)
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--heads", default=names, help=f"some of {names}")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="without BERT-base")
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.heads.split(","))
        return 0
    load = os.getloadavg()[0]
    backends, rows, base = arguments.backends.split(","), [], {}
    for backend in backends:
        told = in_process(backend, __file__, "--one", "--heads", arguments.heads)
        rows += [{"backend": backend, **row} for row in told]
    print_rows(rows)
    verdicts = judge_rows(rows)
    if not arguments.quick:
        base = loading.measure(backends, in_process)
        loading.print_figures(base)
        verdicts |= loading.judge(base)
    met = print_verdicts(verdicts)
    whole = (arguments.heads, arguments.backends) == (names, ",".join(BACKENDS))
    if whole and not arguments.quick:
        result = {
            "command": "benchmarks/checkpoints.py",
            "machine": {**machine(), "load_before": round(load, 2)},
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
            "outputs": rows,
            "loading": base,
            "bars": verdicts,
        }
        path = RESULTS / "checkpoints.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
