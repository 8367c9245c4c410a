"""What benchmarks of speed share: contestants that compute in turns.

Every contestant is a process of its own, the benchmark's script run as a worker: it
loads, warms up and says that it is ready; at each "go" on its standard input it makes
one pass and answers with the seconds. All are ready at once, one computes at a time.
Questions and answers are lines; an answer is a JSON object.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from demo_accuracy import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
RESULTS = ROOT / "benchmarks" / "results"

PRESET = "all_minilm_l6_en_uncased"
BACKENDS = ("tensorflow", "jax", "torch")
PACKAGES = (
    *("keras-kbert", "keras", "numpy", "tensorflow", "jax", "torch", "keras-hub"),
    *("transformers", "tokenizers", "onnxruntime", "ctranslate2"),
)
# This machine's own choices for numpy, which a reader's machine does not have.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
SET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
HEAD_STDDEV = 0.5  # so wide that the logits of a wrong head would differ


class Channel:
    """A worker's line to the benchmark.

    What libraries print on standard output goes to standard error from here on.
    """

    def __init__(self):
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def send(self, **facts):
        print(json.dumps(facts), file=self._answers, flush=True)

    def wait(self):
        """Returns at the next "go"; ends the process when there will be none."""
        if not sys.stdin.readline():
            sys.exit(0)


class Worker:
    """The benchmark's end of that line.

    Args:
        script: path of the benchmark.
        name: the contestant's, for `--worker`.
        folder: where its log lies.
        options: further arguments of the script.
        backend: of Keras, or None where it does not matter.
        verbose: whether to show its standard error instead of keeping it.
    """

    def __init__(self, script, name, folder, options=(), backend=None, verbose=False):
        self.name = name
        self._log = pathlib.Path(folder) / f"{name}.log"
        environment = {k: v for k, v in os.environ.items() if k not in UNSET}
        environment |= {**SET, "KERAS_BACKEND": backend or "tensorflow"}
        command = [sys.executable, script, "--worker", name, "--folder", str(folder)]
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if verbose else log,
                text=True,
                env=environment,
            )

    def answer(self):
        """The next answer, a dictionary."""
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            told = "\n".join(self._log.read_text().splitlines()[-20:])
            sys.exit(f"{told}\n{self.name} ended with status {status}.")
        return json.loads(line)

    def go(self):
        """The answer to "go"."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self):
        """Waits until the worker has ended by itself."""
        self._process.stdin.close()
        if status := self._process.wait():
            sys.exit(f"{self.name} ended with status {status}.")


def read_arguments(description, contestants, rounds=5):
    """The options of a benchmark; `only` is the list of who takes part.

    Args:
        description: the script's docstring.
        contestants: the names to choose from.
        rounds: passes of each, where nobody says.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ",".join(contestants)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--quick", action="store_true", help="few texts, one round")
    parser.add_argument("--only", default=names, help=f"some of {names}")
    parser.add_argument("--verbose", action="store_true", help="show workers' logs")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    if unknown := set(arguments.only) - set(contestants):
        parser.error(f"--only takes some of {names}. Received: {sorted(unknown)}.")
    return arguments


def read_sst2(split):
    """Sentences and labels (0, 1) of SST-2; ends the benchmark where they lack."""
    path = SHARED / "data" / "sst2" / f"stsa.binary.{split}"
    if not path.exists():
        sys.exit(
            "Nothing was measured: the sentences of ../shared/data/sst2 are absent."
        )
    lines = path.read_text(encoding="utf-8").splitlines()
    labels, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
    return list(texts), [int(label) for label in labels]


def write_classifier(folder):
    """Writes what all contestants load: MiniLM with a random head of two classes."""
    import keras
    import numpy as np

    import kbert

    keras.utils.set_random_seed(0)
    classifier = kbert.BertClassifier.from_preset(PRESET, num_classes=2)
    shape = classifier.head.kernel.shape
    kernel = np.random.default_rng(0).normal(scale=HEAD_STDDEV, size=shape)
    classifier.head.kernel.assign(kernel.astype("float32"))
    classifier.save_to_preset(folder)


def read_head(folder):
    """Kernel (H, 2) and bias (2,) of the head in the folder."""
    import safetensors.numpy

    weights = safetensors.numpy.load_file(pathlib.Path(folder) / "model.safetensors")
    return weights["classifier.weight"].T, weights["classifier.bias"]


def load_kerashub(folder, sequence_length=None):
    """KerasHub's classifier with the same weights.

    It reads the folder's encoder, pooler and vocabulary, but not its head.

    Args:
        folder: that `write_classifier` wrote.
        sequence_length: to which every text is padded; None for KerasHub's default.
    """
    import keras_hub

    chosen = {} if sequence_length is None else {"sequence_length": sequence_length}
    models = keras_hub.models
    preprocessor = models.BertTextClassifierPreprocessor.from_preset(
        str(folder), **chosen
    )
    classifier = models.BertTextClassifier.from_preset(
        str(folder), num_classes=2, preprocessor=preprocessor
    )
    classifier.output_dense.set_weights(read_head(folder))
    return classifier


def plan_facts(batches, epochs=1):
    """What a kbert `TextBatches` computes in so many epochs, for the report."""
    shapes, shares = set(), []
    for number in range(epochs):
        batches.epoch = number
        shapes.update(batches.shapes)
        shares.append(batches.share_used)
    return {
        "share_used": round(statistics.mean(shares), 4),
        "shapes": [[int(size) for size in shape] for shape in sorted(shapes)],
    }


def shapes_told(shapes):
    """Rows by width of every batch size, the many of one eager backend shortened."""
    told = [f"{rows}x{width}" for rows, width in shapes]
    return ", ".join(told if len(told) < 7 else [*told[:2], "...", told[-1]])


class Clock:
    """Time since it was made: that of the wall, and that of all cores together."""

    def __init__(self):
        self._start = time.perf_counter(), time.process_time()

    def read(self):
        now = time.perf_counter(), time.process_time()
        seconds, busy = (b - a for a, b in zip(self._start, now, strict=True))
        return {"seconds": seconds, "core_seconds": busy}


def prepare(script, **common):
    """Lets a worker write what the contestants load."""
    print("writing the model", flush=True)
    worker = Worker(script, "prepare", **common)
    worker.answer()
    worker.close()


def start_all(script, names, contestants, **common):
    """Starts workers one after another; the workers, and {name: what it said}."""
    workers, ready = [], {}
    for name in names:
        backend = contestants[name].backend
        workers.append(Worker(script, name, backend=backend, **common))
        ready[name] = workers[-1].answer()
        print(f"{name} is ready", flush=True)
    return workers, ready


def in_turns(workers, rounds):
    """Lets every worker make a pass, so many times, and end; {name: its answers}."""
    answers = {worker.name: [] for worker in workers}
    for number in range(rounds):
        for worker in workers:
            answers[worker.name].append(worker.go())
        print(f"round {number + 1} of {rounds} is over", flush=True)
    for worker in workers:
        worker.close()
    return answers


def summary(ready, answers):
    """A contestant's figures: those it was ready with, and texts a second.

    What the first pass took longer than the best one counts as compilation. Where
    `cores_used` is less than a contestant can use, the machine was not quiet.
    """
    rates = [ready["texts"] / answer["seconds"] for answer in answers]
    cores = [answer["core_seconds"] / answer["seconds"] for answer in answers]
    compiling = ready["first_pass_seconds"] - ready["texts"] / max(rates)
    return {
        **ready,
        "compilation_seconds": round(compiling, 2),
        "best": round(max(rates), 2),
        "median": round(statistics.median(rates), 2),
        "texts_per_second": [round(rate, 2) for rate in rates],
        "cores_used": [round(number, 2) for number in cores],
    }


def print_table(figures, columns):
    """Prints a line a contestant.

    Args:
        figures: {contestant: {key: value}}.
        columns: {title: function of a contestant's figures to a string}.
    """
    lines = [["", *columns]]
    for name, facts in figures.items():
        lines.append([name, *(column(facts) for column in columns.values())])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *rest in lines:
        cells = [text.rjust(n) for text, n in zip(rest, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]).rstrip())


def judge_ratios(figures, bars):
    """Compares speeds, where both contestants took part.

    Args:
        figures: {contestant: its `summary`}.
        bars: triples of a contestant, another, and how often as fast the first must
            be at its best.

    Returns:
        {title: {"met": whether it is, and what was measured}}.
    """
    verdicts = {}
    for name, peer, least in bars:
        if name in figures and peer in figures:
            measured = {
                f"{key} to {key}": round(figures[name][key] / figures[peer][key], 3)
                for key in ("best", "median")
            }
            met = measured["best to best"] >= least
            title = f"{name}: at least {least} times {peer}"
            verdicts[title] = {"met": met, **measured}
    return verdicts


def print_verdicts(verdicts):
    """Prints what was met and what was missed; returns whether all was met."""
    for title, verdict in verdicts.items():
        measured = {key: value for key, value in verdict.items() if key != "met"}
        told = ", ".join(f"{key} {value}" for key, value in measured.items())
        print(f"{'met' if verdict['met'] else 'MISSED':6} {title} ({told})")
    return all(verdict["met"] for verdict in verdicts.values())


def write_result(script, settings, figures, verdicts, load):
    """Writes benchmarks/results/<script>.json.

    Args:
        script: path of the benchmark.
        settings: what it was run with.
        figures: {contestant: its figures}.
        verdicts: {title: {"met": whether it is, and what was measured}}.
        load: the machine's load average before it began.
    """
    name = pathlib.Path(script).stem
    result = {
        "command": f"benchmarks/{name}.py",
        "settings": settings,
        "machine": {**machine(), "load_before": round(load, 2)},
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "contestants": figures,
        "bars": verdicts,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
