"""Does kbert learn the demo's sentences as well as transformers does?

    .venv-bench/bin/python benchmarks/demo_accuracy.py

Three seeds each, on the split of examples/sentiment, from the same weights with the
same epochs, batch size, learning rate, AdamW, clipping and warm-up. Each run is a
process of its own. Exits with 1 if kbert's mean accuracy is below transformers' minus
0.01. Takes about half an hour on two cores; --quick tries it on few sentences.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "sentiment")]

METHODS = ("kbert", "transformers")
MARGIN = 0.01
PRESET = "all_minilm_l6_en_uncased"
EPOCHS, BATCH_SIZE, LEARNING_RATE, WARMUP = 1, 32, 1e-4, 0.1
POOL = 50  # batches, among which transformers' batches are sorted by length
PACKAGES = ("keras", "numpy", "tensorflow", "torch", "transformers")


def run_kbert(train, held_out, labels, seed):
    """Accuracy on the held-out sentences, and seconds of training."""
    import keras

    import kbert

    keras.utils.set_random_seed(seed)
    classifier = kbert.BertClassifier.from_preset(PRESET, labels=labels)
    classifier.compile(learning_rate=LEARNING_RATE)
    start = time.perf_counter()
    classifier.fit(train.texts, train.labels, BATCH_SIZE, EPOCHS, verbose=2)
    seconds = time.perf_counter() - start
    answers = [answer.label for answer in classifier.classify(held_out.texts)]
    right = [a == b for a, b in zip(answers, held_out.labels, strict=True)]
    return sum(right) / len(right), seconds


def run_transformers(train, held_out, labels, seed):
    """The same with PyTorch and the training loop of transformers' documentation."""
    import numpy as np
    import torch
    import transformers

    from kbert.presets import find_preset

    transformers.set_seed(seed)
    folder = find_preset(PRESET).weights_path().parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=len(labels)
    )
    texts = tokenizer(train.texts, truncation=True)["input_ids"]
    targets = torch.tensor([labels.index(label) for label in train.labels])
    steps = EPOCHS * -(-len(texts) // BATCH_SIZE)
    optimizer = torch.optim.AdamW(decay_groups(model), lr=LEARNING_RATE, eps=1e-6)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(WARMUP * steps), steps
    )
    random = np.random.default_rng(seed)
    model.train()
    start = time.perf_counter()
    for _ in range(EPOCHS):
        for step, batch in enumerate(batches(texts, random)):
            inputs = tokenizer.pad({"input_ids": [texts[i] for i in batch]})
            loss = model(**tensors(inputs), labels=targets[batch]).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if step % 20 == 0:
                print(f"step {step} of {steps}, loss {loss.item():.3f}", flush=True)
    seconds = time.perf_counter() - start
    model.eval()
    right = 0
    with torch.no_grad():
        for first in range(0, len(held_out.texts), BATCH_SIZE):
            part = slice(first, first + BATCH_SIZE)
            inputs = tokenizer(held_out.texts[part], truncation=True, padding=True)
            answers = model(**tensors(inputs)).logits.argmax(dim=1).tolist()
            truth = [labels.index(label) for label in held_out.labels[part]]
            right += sum(a == b for a, b in zip(answers, truth, strict=True))
    return right / len(held_out.texts), seconds


def decay_groups(model):
    """Weight decay on kernels and embeddings, none on biases and LayerNorm."""
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups["bias" not in name and "LayerNorm" not in name].append(parameter)
    return [
        {"params": groups[True], "weight_decay": 0.01},
        {"params": groups[False], "weight_decay": 0.0},
    ]


def batches(texts, random):
    """Index lists of an epoch: random, but of similar length, as kbert's are."""
    order = random.permutation(len(texts))
    pool = POOL * BATCH_SIZE
    made = []
    for first in range(0, len(order), pool):
        part = sorted(order[first : first + pool], key=lambda i: len(texts[i]))
        made += [part[i : i + BATCH_SIZE] for i in range(0, len(part), BATCH_SIZE)]
    random.shuffle(made)
    return made


def tensors(inputs):
    import torch

    return {key: torch.tensor(value) for key, value in inputs.items()}


def run_one(method, seed, quick):
    """Train and score one model; the result is the last line of standard output."""
    import sentences

    split = sentences.split_sentences(sentences.read_sentences())
    train, held_out = split.train, split.held_out
    if quick:
        train, held_out = train.take(range(320)), held_out.take(range(100))
    run = {"kbert": run_kbert, "transformers": run_transformers}[method]
    accuracy, seconds = run(train, held_out, sentences.LABELS, seed)
    result = {"method": method, "seed": seed, "accuracy": accuracy, "seconds": seconds}
    print(json.dumps(result))


def run_in_process(method, seed, quick):
    """Result of `run_one` in a new process, whose progress is shown."""
    command = [sys.executable, __file__, "--one", method, "--seed", str(seed)]
    environment = {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TOKENIZERS_PARALLELISM": "false",
    }
    command += ["--quick"] if quick else []
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    )
    last = ""
    for line in child.stdout:
        print(f"[{method}, seed {seed}] {line}", end="", flush=True)
        last = line
    if child.wait():
        sys.exit(f"{method} failed with status {child.returncode}.")
    return json.loads(last)


def machine():
    """What the figures were measured on."""
    names = [line for line in read_lines("/proc/cpuinfo") if "model name" in line]
    return {
        "cpu": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def read_lines(path):
    path = pathlib.Path(path)
    return path.read_text().splitlines() if path.exists() else []


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="try it: few sentences")
    parser.add_argument("--one", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.seed, arguments.quick)
        return 0
    seeds = range(1 if arguments.quick else arguments.seeds)
    runs = [
        run_in_process(method, seed, arguments.quick)
        for seed in seeds
        for method in METHODS
    ]
    means = mean_accuracies(runs)
    for run in runs:
        print("{method:12}  seed {seed}  {accuracy:.4f}  {seconds:.0f} s".format(**run))
    for method, mean in means.items():
        print(f"{method:12}  mean    {mean:.4f}")
    if arguments.quick:
        return 0
    write_result(runs, means)
    return 0 if means["kbert"] >= means["transformers"] - MARGIN else 1


def mean_accuracies(runs):
    """Method -> mean of its runs."""
    means = {}
    for method in METHODS:
        scores = [run["accuracy"] for run in runs if run["method"] == method]
        means[method] = sum(scores) / len(scores)
    return means


def write_result(runs, means):
    settings = {
        "preset": PRESET,
        "epochs": EPOCHS,
        "batch_size": BATCH_SIZE,
        "learning_rate": LEARNING_RATE,
        "warmup": WARMUP,
    }
    result = {
        "settings": settings,
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "runs": runs,
        "means": means,
        "margin": MARGIN,
    }
    path = ROOT / "benchmarks" / "results" / "demo_accuracy.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
