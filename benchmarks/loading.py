"""What loading BERT-base from a safetensors file costs, in time and in memory.

A part of checkpoints.py, and the program of its processes.
"""

import gc
import json
import pathlib
import sys
import tempfile
import time

from contestants import print_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Of the file: its reading time, its size.
MOST_TIME, MOST_MEMORY = 1.5, 1.3
READS = 5


def write(folder):
    """Writes BERT-base with random weights, as another library's folder."""
    import numpy as np

    import kbert
    from kbert.checkpoints import folder as checkpoint
    from kbert.checkpoints import sizes

    config, random = kbert.BertConfig(), np.random.default_rng(0)
    variables = {
        path: random.standard_normal(shape, "float32") * np.float32(0.02)
        for path, shape in sizes.expected_shapes(config).items()
    }
    tokenizer = kbert.BertTokenizer.from_preset("bert_base_en_uncased")
    checkpoint.write_folder(folder, variables, config, tokenizer)
    pathlib.Path(folder, "kbert.json").unlink()
    return {"bytes": weights_of(folder).stat().st_size}


def load(folder):
    """Loads the encoder as a user does, and into a model that is there.

    What is read beside is let go of: a machine may take seconds to give a process
    memory that none had before, which would make loading look fast.
    """
    import safetensors.numpy

    import kbert
    from kbert import presets
    from kbert.checkpoints import folder as checkpoint

    sizes = {"num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    kbert.BertBackbone(100, num_layers=1, **sizes)  # what the first model takes
    gc.collect()
    empty = memory("VmRSS")
    reset_peak()
    start = time.perf_counter()
    model = kbert.BertBackbone.from_preset(folder)
    told = {"whole_seconds": time.perf_counter() - start}
    told |= {"whole_peak": memory("VmHWM") - empty}
    variables = {weight.path: weight for weight in model.weights}
    seconds, reading = [], []
    for number in range(READS):
        gc.collect()
        built = memory("VmRSS")
        reset_peak()
        start = time.perf_counter()
        checkpoint.load_preset(presets.find_preset(folder), variables)
        seconds.append(time.perf_counter() - start)
        if number == 0:
            told["peak"] = memory("VmHWM") - built
        # In turns, since machines are seldom quiet.
        start = time.perf_counter()
        safetensors.numpy.load_file(weights_of(folder))
        reading.append(time.perf_counter() - start)
    start = time.perf_counter()
    kbert.BertBackbone.from_preset(folder, load_weights=False)
    told |= {"seconds": seconds, "reading_seconds": reading}
    return {**told, "random_seconds": time.perf_counter() - start}


def weights_of(folder):
    return pathlib.Path(folder, "model.safetensors")


def memory(key):
    """Bytes of this process, in use (VmRSS) or at the peak (VmHWM); of Linux."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith(f"{key}:"))


def reset_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def measure(backends, in_process):
    """The figures of every backend.

    Args:
        backends: their names.
        in_process: runs a program on a backend and returns the JSON that it prints.
    """
    with tempfile.TemporaryDirectory() as folder:
        preset = pathlib.Path(folder, "base")
        figures = in_process("jax", __file__, "write", preset)
        for backend in backends:
            figures[backend] = in_process(backend, __file__, "load", preset)
    return figures


def print_figures(figures):
    """Prints a line a backend."""
    size = figures["bytes"]
    print(f"BERT-base, {size / 2**20:.0f} MiB of safetensors; peaks in times of that")
    columns = {
        "reading": lambda told: f"{best(told, 'reading_seconds'):.2f} s",
        "loading": lambda told: f"{best(told, 'seconds'):.2f} s",
        "peak": lambda told: f"{told['peak'] / size:.2f}",
        "from_preset": lambda told: f"{told['whole_seconds']:.1f} s",
        "its peak": lambda told: f"{told['whole_peak'] / size:.2f}",
        "random weights": lambda told: f"{told['random_seconds']:.1f} s",
    }
    print_table({k: v for k, v in figures.items() if k != "bytes"}, columns)


def judge(figures):
    """{title: {"met": whether it is, and what was measured}}."""
    verdicts = {}
    for backend, told in figures.items():
        if backend == "bytes":
            continue
        time_of = best(told, "seconds") / best(told, "reading_seconds")
        share = told["peak"] / figures["bytes"]
        verdicts[f"{backend}: loads in at most {MOST_TIME} times the reading"] = {
            "met": time_of <= MOST_TIME,
            "times": round(time_of, 2),
        }
        verdicts[f"{backend}: peak of at most {MOST_MEMORY} times the file"] = {
            "met": share <= MOST_MEMORY,
            "times": round(share, 2),
        }
    return verdicts


def best(told, key):
    return min(told[key])


if __name__ == "__main__":
    task = {"write": write, "load": load}[sys.argv[1]]
    print(json.dumps(task(sys.argv[2])), flush=True)
