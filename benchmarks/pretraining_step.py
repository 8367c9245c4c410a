"""A step of pre-training, masked tokens and next sentences: instances a second.

    .venv-bench/bin/python benchmarks/pretraining_step.py [--quick] [--only CELL/NAME,…]

Two shapes, BERT-base and MiniLM (6 layers of 384), by two lengths, 128 and 512, from
random weights, dropout 0.1, AdamW with warm-up and clipping, float32. The instances are
made of ../shared/data/corpus by `kbert.pretraining`, Google's defaults; all contestants
train on the same ones, with the same masked tokens, in the same order. kbert lays them
as `InstanceBatches(rows="packed")` does; transformers' `BertForPreTraining` on PyTorch
and KerasHub's `BertMaskedLM` (on TensorFlow, without next sentences) have one a row.

In every cell each contestant makes one pass to warm up; then all make passes over the
same batches in turns, of BERT-base transformers with each of kbert's alone. `gemm`
multiplies matrices of the cell's sizes: what a step could cost if it were made of the
products alone, over the tokens that there are, is the limit that the last column refers
to. Writes benchmarks/results/pretraining_step.json and
exits with 1 where a bar is missed, which the best passes decide. Takes about twenty
minutes on two cores.
"""

import dataclasses
import os
import statistics
import sys
import tempfile

from contestants import (
    BACKENDS,
    SHARED,
    Channel,
    in_turns,
    prepare,
    print_table,
    print_verdicts,
    read_arguments,
    start_all,
    summary,
    write_result,
)
from pretraining_trainers import (
    CELLS,
    CORES,
    CORPUS,
    LEARNING_RATE,
    PEER,
    TOTAL_STEPS,
    TRAIN,
    make_instances,
)
from ragged_training import Turns

BEST_BAR, EACH_BAR = 1.3, 1.0
KBERT = [f"kbert-{backend}" for backend in BACKENDS]
EVERYONE = ["gemm", *KBERT, PEER, "kerashub"]
# Who is in memory at once: of BERT-base two that train, the peer with each of ours.
GROUPS = {
    "minilm": (["gemm", *KBERT, PEER], ["kerashub"]),
    "base": (*(["gemm", name, PEER] for name in KBERT), ["kerashub"]),
}
SLOW_ROUNDS = 2
NAMES = [f"{cell}/{name}" for cell in CELLS for name in EVERYONE]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Who trains what, as `contestants.start_all` wants it.

    Args:
        backend: of Keras, or None.
    """

    backend: str | None


def rounds_of(name, arguments):
    """How many rounds a contestant makes."""
    rounds = 1 if arguments.quick else arguments.rounds
    return min(rounds, SLOW_ROUNDS) if name == "kerashub" else rounds


def work(arguments):
    """A worker's whole life."""
    channel = Channel()
    if arguments.worker == "prepare":
        make_instances(arguments.folder)
        channel.send()
        return
    cell, name = arguments.worker.split("_")
    train, _ = TRAIN[name]
    cell = CELLS[cell]
    epochs = 1 + rounds_of(name, arguments)
    turns = Turns(channel, cell.batch_size * cell.steps)
    train(cell, arguments.folder, epochs, turns)


def run_cell(cell, names, folder, arguments):
    """{contestant: its figures} of one cell."""
    options = ["--rounds", str(arguments.rounds), *["--quick"] * arguments.quick]
    common = {"folder": folder, "options": options, "verbose": arguments.verbose}
    figures, made = {}, {name: [] for name in names}
    for group in GROUPS[CELLS[cell].shape]:
        chosen = {f"{cell}_{n}": Contestant(TRAIN[n][1]) for n in group if n in names}
        if figures and not set(group) & set(names) - {"gemm", PEER}:
            continue  # they were measured, and nobody is beside them
        workers, ready = start_all(__file__, list(chosen), chosen, **common)
        rounds = min((rounds_of(n.split("_")[1], arguments) for n in chosen), default=0)
        answers = in_turns(workers, rounds)
        for full in chosen:
            name = full.split("_")[1]
            made[name] += answers[full]
            told = [round(answer["loss"], 4) for answer in made[name]]
            if name == "gemm":
                figures[name] = {"gflop_a_second": told}
                continue
            figures[name] = {**summary(ready[full], made[name]), "losses": told}
    add_limit(figures)
    return figures


def add_limit(figures):
    """Adds what share of the limit of products each contestant reached."""
    gflop = next((f["gflop"] for f in figures.values() if "gflop" in f), None)
    if gflop is None or "gemm" not in figures:
        return
    limit = max(figures["gemm"]["gflop_a_second"])
    for name, facts in figures.items():
        if name != "gemm":
            needed = gflop / facts["texts"] * facts["best"]
            facts["share_of_limit"] = round(needed / limit, 4)


def judge(figures):
    """Verdicts on every cell: kbert's best backend, and each."""
    verdicts = {}
    for cell, found in figures.items():
        ratios = {
            name: round(found[name]["best"] / found[PEER]["best"], 3)
            for name in KBERT
            if name in found and PEER in found
        }
        medians = {
            name: round(found[name]["median"] / found[PEER]["median"], 3)
            for name in ratios
        }
        for name, ratio in ratios.items():
            title = f"{cell}: {name} at least {EACH_BAR} times {PEER}"
            verdicts[title] = {
                "met": ratio >= EACH_BAR,
                "best to best": ratio,
                "median to median": medians[name],
            }
        if len(ratios) == len(KBERT):
            title = f"{cell}: the best backend at least {BEST_BAR} times {PEER}"
            best = max(ratios, key=ratios.get)
            verdicts[title] = {
                "met": ratios[best] >= BEST_BAR,
                "backend": best,
                "best to best": ratios[best],
            }
    return verdicts


def print_cell(cell, figures):
    """Prints the table of a cell."""
    trained = {name: facts for name, facts in figures.items() if name != "gemm"}
    told = figures.get("gemm", {}).get("gflop_a_second")
    limit = f", products at {max(told):.0f} GFLOP/s" if told else ""
    print(f"\n{cell}: {CELLS[cell].batch_size} instances a step{limit}")
    columns = {
        "instances/s best": lambda f: f"{f['best']:.2f}",
        "median": lambda f: f"{f['median']:.2f}",
        "cores": lambda f: f"{statistics.median(f['cores_used']):.1f}",
        "first step": lambda f: f"{f['first_step_seconds']:.1f} s",
        "rows a step": lambda f: ", ".join(map(str, f.get("rows", []))),
        "loss": lambda f: f"{f['losses'][-1]:.3f}",
        "of the limit": lambda f: f"{f.get('share_of_limit', 0):.1%}",
    }
    print_table(trained, columns)


def main():
    arguments = read_arguments(__doc__, NAMES, rounds=3)
    if arguments.worker:
        work(arguments)
        return 0
    if not (SHARED / "data" / "corpus").is_dir():
        sys.exit("Nothing was measured: the texts of ../shared/data/corpus are absent.")
    load, figures = os.getloadavg()[0], {}
    with tempfile.TemporaryDirectory() as folder:
        prepare(__file__, folder=folder, verbose=arguments.verbose)
        for cell in CELLS:
            chosen = [n.split("/")[1] for n in arguments.only if n.startswith(cell)]
            if chosen:
                figures[cell] = run_cell(cell, chosen, folder, arguments)
                print_cell(cell, figures[cell])
    if arguments.quick:  # too short to judge by
        return 0
    verdicts = judge(figures)
    met = print_verdicts(verdicts)
    if arguments.only == NAMES:
        settings = {"rounds": arguments.rounds, "threads": CORES, "corpus": CORPUS}
        settings |= {"cells": {n: dataclasses.asdict(c) for n, c in CELLS.items()}}
        settings |= {"learning_rate": LEARNING_RATE, "total_steps": TOTAL_STEPS}
        write_result(__file__, settings, figures, verdicts, load)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
