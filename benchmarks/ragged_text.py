"""From strings of uneven length to logits: kbert and its peers, in texts a second.

    .venv-bench/bin/python benchmarks/ragged_text.py [--quick] [--only NAME,NAME]

The 1,821 test sentences of SST-2, MiniLM with the same random head for all, logits in
the order of the sentences; tokenization is part of a pass. Every contestant loads,
makes a first pass, and has its logits compared with transformers' before anything is
timed; then all make a pass in turns. Writes benchmarks/results/ragged_text.json and
exits with 1 where outputs differ or a bar is missed, which the best passes decide.
Takes about ten minutes on two cores. --quick judges outputs only.
"""

import dataclasses
import os
import pathlib
import random
import statistics
import sys
import tempfile
from collections.abc import Callable

import numpy as np
from contestants import (
    BACKENDS,
    PRESET,
    Channel,
    Clock,
    in_turns,
    judge_ratios,
    load_kerashub,
    plan_facts,
    prepare,
    print_table,
    print_verdicts,
    read_arguments,
    read_head,
    read_sst2,
    shapes_told,
    start_all,
    summary,
    write_classifier,
    write_result,
)

BATCH_SIZE = 32  # of the peers; kbert chooses its own
QUICK_TEXTS = 200
MOST_SHAPES = 3
PEER = "transformers-sorted"
BARS = [
    ("kbert-tensorflow", PEER, 1.15),
    ("kbert-jax", PEER, 1.0),
    ("kbert-torch", PEER, 1.0),
]
CORES = os.cpu_count()


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Who takes part, and with what.

    Args:
        load: function of texts and the folder to a function that makes a pass and
            returns logits (texts, 2), and to further facts, or functions that find
            them after a pass.
        backend: of Keras, or None.
        texts: how many, or None for all; KerasHub takes so long that a sample must do.
        quick_texts: the same for `--quick`.
        tolerance: largest difference from transformers' logits.
    """

    load: Callable
    backend: str | None = None
    texts: int | None = None
    quick_texts: int | None = QUICK_TEXTS
    tolerance: float = 1e-4


def load_kbert(texts, folder):
    """The library at hand, as it comes."""
    import keras

    import kbert
    from kbert.tasks import feeding

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(CORES)
    classifier = kbert.BertClassifier.from_preset(folder)
    batches = feeding.prepare(classifier, texts).predict_arguments(None)["x"]
    facts = plan_facts(batches)

    def compilations():
        """Programs made for a pass: on JAX one a shape, else those that were traced."""
        match keras.backend.backend():
            case "jax":
                return len(facts["shapes"])
            case "tensorflow":
                return classifier.predict_function.experimental_get_tracing_count()
        return 0

    return lambda: classifier.predict(texts, verbose=0), {
        **facts,
        "compilations": compilations,
    }


def load_kerashub_512(texts, folder):
    """KerasHub as it comes: every text is padded to 512 tokens."""
    return load_kerashub_at(None, texts, folder)


def load_kerashub_128(texts, folder):
    """KerasHub where the user knows that no text is longer than 128 tokens."""
    return load_kerashub_at(128, texts, folder)


def load_kerashub_at(sequence_length, texts, folder):
    classifier = load_kerashub(folder, sequence_length)
    facts = {"sequence_length": classifier.preprocessor.sequence_length}
    return lambda: classifier.predict(texts, verbose=0), facts


def load_transformers(texts, folder, by_length=False):
    """PyTorch, every batch padded to its longest text."""
    import torch
    import transformers

    torch.set_num_threads(CORES)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    classes = transformers.AutoModelForSequenceClassification
    model = classes.from_pretrained(folder).eval()

    def forward(ids):
        arrays = padded(ids)
        inputs = {key: torch.from_numpy(array) for key, array in arrays.items()}
        return model(**inputs).logits.numpy()

    @torch.inference_mode()
    def make_pass():
        return run_batches(forward, tokenizer, texts, by_length)

    return make_pass, {"attention": model.config._attn_implementation}


def load_transformers_sorted(texts, folder):
    """The same, with texts of one length beside each other."""
    return load_transformers(texts, folder, by_length=True)


def load_onnxruntime(texts, folder):
    """The same model in ONNX, sorted."""
    import onnxruntime
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = CORES
    session = onnxruntime.InferenceSession(
        pathlib.Path(folder, "onnx", "model.onnx"), options
    )

    def forward(ids):
        return session.run(["logits"], padded(ids))[0]

    return lambda: run_batches(forward, tokenizer, texts, by_length=True), {}


def load_ctranslate2(texts, folder):
    """Its encoder and pooler in CTranslate2, sorted; the head in numpy."""
    import ctranslate2
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoder = ctranslate2.Encoder(
        str(pathlib.Path(folder, "ctranslate2")),
        compute_type="float32",
        intra_threads=CORES,
    )
    kernel, bias = read_head(folder)

    def forward(ids):
        return np.array(encoder.forward_batch(ids).pooler_output) @ kernel + bias

    return lambda: run_batches(forward, tokenizer, texts, by_length=True), {}


CONTESTANTS = {
    **{
        f"kbert-{backend}": Contestant(load_kbert, backend=backend)
        for backend in BACKENDS
    },
    "transformers": Contestant(load_transformers),
    "transformers-sorted": Contestant(load_transformers_sorted),
    "onnxruntime": Contestant(load_onnxruntime),
    "ctranslate2": Contestant(load_ctranslate2),
    # KerasHub's gelu is the tanh approximation, which these weights were not made for.
    "kerashub-512": Contestant(
        load_kerashub_512, texts=64, quick_texts=8, tolerance=2e-2
    ),
    "kerashub-128": Contestant(
        load_kerashub_128, texts=320, quick_texts=8, tolerance=2e-2
    ),
}


def run_batches(forward, tokenizer, texts, by_length):
    """Logits of all texts, in order.

    Args:
        forward: function of a list of lists of ids to logits (texts, 2).
        tokenizer: transformers'.
        texts: the strings.
        by_length: whether to sort them, the longest first.
    """
    encoded = tokenizer(
        texts,
        truncation=True,
        return_attention_mask=False,
        return_token_type_ids=False,
    )["input_ids"]
    order = np.arange(len(texts))
    if by_length:
        order = np.argsort([-len(ids) for ids in encoded], kind="stable")
    logits = np.empty((len(texts), 2), np.float32)
    for first in range(0, len(order), BATCH_SIZE):
        batch = order[first : first + BATCH_SIZE]
        logits[batch] = forward([encoded[i] for i in batch])
    return logits


def padded(encoded):
    """A batch as wide as its longest text; `tokenizer.pad` does the same slower."""
    lengths = np.array([len(ids) for ids in encoded])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)  # [PAD] is 0
    ids[mask] = np.concatenate(encoded)
    return {"input_ids": ids, "attention_mask": mask.astype(np.int64)}


def write_models(folder):
    """Writes the classifier for all, and what was made of it for two of them."""
    import ctranslate2.converters
    import torch
    import transformers

    write_classifier(folder)
    converter = ctranslate2.converters.TransformersConverter(folder)
    converter.convert(str(pathlib.Path(folder, "ctranslate2")))
    classes = transformers.AutoModelForSequenceClassification
    model = classes.from_pretrained(folder).eval()
    axes = {0: torch.export.Dim("texts"), 1: torch.export.Dim("width")}
    keys = ["input_ids", "attention_mask"]
    pathlib.Path(folder, "onnx").mkdir()
    torch.onnx.export(
        model,
        (),
        pathlib.Path(folder, "onnx", "model.onnx"),
        kwargs={key: torch.ones((2, 16), dtype=torch.int64) for key in keys},
        input_names=keys,
        output_names=["logits"],
        dynamic_shapes=dict.fromkeys(keys, axes),
        dynamo=True,
    )


def chosen_texts(name, texts, quick):
    """Which sentences a contestant is given, as indices."""
    contestant = CONTESTANTS[name]
    count = contestant.quick_texts if quick else contestant.texts
    if count is None:
        return list(range(len(texts)))
    # KerasHub keeps accents, which uncased BERT does not.
    plain = [i for i, text in enumerate(texts) if text.isascii()]
    random.Random(0).shuffle(plain)
    return plain[:count]  # so a small sample is part of a large one


def work(name, folder, quick):
    """A worker's whole life."""
    channel = Channel()
    if name == "prepare":
        write_models(folder)
        channel.send()
        return
    texts, _ = read_sst2("test")
    texts = [texts[i] for i in chosen_texts(name, texts, quick)]
    make_pass, facts = CONTESTANTS[name].load(texts, folder)
    clock = Clock()
    logits = make_pass()
    seconds = round(clock.read()["seconds"], 2)
    np.save(logits_path(folder, name), logits)
    facts = {key: fact() if callable(fact) else fact for key, fact in facts.items()}
    channel.send(texts=len(texts), first_pass_seconds=seconds, **facts)
    while True:
        channel.wait()
        clock = Clock()
        make_pass()
        channel.send(**clock.read())


def logits_path(folder, name):
    return pathlib.Path(folder, f"{name}.npy")


def compare_outputs(names, folder, quick):
    """{contestant: largest difference from the reference's logits}, and verdicts."""
    texts, _ = read_sst2("test")
    reference = next((n for n in (PEER, "transformers", *names) if n in names))
    chosen = {name: chosen_texts(name, texts, quick) for name in names}
    expected = np.full((len(texts), 2), np.nan, np.float32)
    expected[chosen[reference]] = np.load(logits_path(folder, reference))
    differences, verdicts = {}, {}
    for name in names:
        gaps = np.abs(np.load(logits_path(folder, name)) - expected[chosen[name]])
        gaps = gaps[~np.isnan(gaps[:, 0])]  # both made logits of the rest
        differences[name] = float(gaps.max())
        if name == reference:
            continue
        tolerance = CONTESTANTS[name].tolerance
        verdicts[f"{name}: logits within {tolerance:g} of {reference}'s"] = {
            "met": differences[name] <= tolerance,
            "difference": float(f"{differences[name]:.1e}"),
            "of texts": len(gaps),
            "largest logit": round(float(np.nanmax(np.abs(expected))), 2),
        }
    return differences, verdicts


def run(names, rounds, quick, verbose):
    """Figures of every contestant, and the verdicts on their outputs."""
    options = ["--quick"] if quick else []
    with tempfile.TemporaryDirectory() as folder:
        common = {"folder": folder, "options": options, "verbose": verbose}
        prepare(__file__, **common)
        workers, ready = start_all(__file__, names, CONTESTANTS, **common)
        differences, verdicts = compare_outputs(names, folder, quick)
        answers = in_turns(workers, rounds)
    figures = {name: summary(ready[name], answers[name]) for name in names}
    for name, facts in figures.items():
        facts["difference"] = differences[name]
    return figures, verdicts


def judge(figures):
    """Verdicts on speed and on the number of compilations."""
    verdicts = judge_ratios(figures, BARS)
    for name, facts in figures.items():
        if "shapes" in facts:
            count = facts["compilations"]
            title = f"{name}: at most {MOST_SHAPES} compilations"
            verdicts[title] = {"met": count <= MOST_SHAPES, "compilations": count}
    return verdicts


def main():
    arguments = read_arguments(__doc__, CONTESTANTS)
    if arguments.worker:
        work(arguments.worker, arguments.folder, arguments.quick)
        return 0
    texts, _ = read_sst2("test")
    names, quick = arguments.only, arguments.quick
    rounds = 1 if quick else arguments.rounds
    load = os.getloadavg()[0]
    figures, verdicts = run(names, rounds, quick, arguments.verbose)
    columns = {
        "texts/s best": lambda f: f"{f['best']:.1f}",
        "median": lambda f: f"{f['median']:.1f}",
        "cores": lambda f: f"{statistics.median(f['cores_used']):.1f}",
        "texts": lambda f: f"{f['texts']:,}",
        "compilations": lambda f: str(f.get("compilations", "")),
        "first pass - best": lambda f: f"{f['compilation_seconds']:.1f} s",
        "used": lambda f: f"{f['share_used']:.1%}" if "shapes" in f else "",
        "shapes": lambda f: shapes_told(f.get("shapes", [])),
        "difference": lambda f: f"{f['difference']:.1e}",
    }
    print_table(figures, columns)
    if not quick:  # else it is too short to judge speed by
        verdicts |= judge(figures)
    met = print_verdicts(verdicts)
    if names == list(CONTESTANTS) and not quick:
        settings = {"preset": PRESET, "texts": len(texts), "rounds": rounds}
        settings |= {"peers_batch_size": BATCH_SIZE, "threads": CORES}
        write_result(__file__, settings, figures, verdicts, load)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
