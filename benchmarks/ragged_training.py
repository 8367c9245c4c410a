"""Fine-tuning on sentences of uneven length: kbert and its peers, in texts a second.

    .venv-bench/bin/python benchmarks/ragged_training.py [--quick] [--only NAME,NAME]

MiniLM with a head of two classes, 32 texts a step, dropout 0.1, AdamW with warm-up;
640 training sentences of SST-2, 20 steps, are an epoch. Every contestant trains one
epoch to warm up; then all train an epoch in turns, the optimizer going on. KerasHub,
twenty times slower and more, comes after the others, with 64 sentences and two rounds.
Tokenization stands before the first epoch, but for KerasHub's, which does it in every
one. Writes benchmarks/results/ragged_training.json and exits with 1 where a bar is
missed, which the best epochs decide. Takes about fifteen minutes on two cores.
"""

import dataclasses
import os
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
    read_sst2,
    shapes_told,
    start_all,
    summary,
    write_classifier,
    write_result,
)
from demo_accuracy import BATCH_SIZE, batches, decay_groups

LEARNING_RATE, WARMUP = 5e-5, 0.1  # kbert's default
PEER = "transformers-grouped"
BARS = [
    ("kbert-tensorflow", PEER, 1.1),
    ("kbert-jax", PEER, 1.0),
    ("kbert-torch", PEER, 1.0),
    ("kbert-tensorflow", "kerashub-512", 20),
]
SLOW_ROUNDS = 2
CORES = os.cpu_count()


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Who takes part, and with what.

    Args:
        train: function of texts, labels, the folder, the number of epochs and a
            `Turns` that it reports to.
        backend: of Keras, or None.
        texts: how many an epoch has.
        quick_texts: the same for `--quick`.
        slow: whether to make two rounds at most, after the others.
    """

    train: Callable
    backend: str | None = None
    texts: int = 20 * BATCH_SIZE
    quick_texts: int = 2 * BATCH_SIZE
    slow: bool = False


class Turns:
    """Times epochs for the benchmark: one to warm up, then one at each "go".

    Args:
        channel: the worker's `Channel`.
        texts: how many an epoch has.
    """

    def __init__(self, channel, texts):
        self._channel = channel
        self._ready = {"texts": texts}
        self._epoch = 0
        self._clock = Clock()

    def begin(self, **facts):
        """An epoch begins; `facts` are for the report."""
        if self._epoch == 0:
            self._clock = Clock()
            return
        if self._epoch == 1:
            self._channel.send(**self._ready, **facts)
        self._channel.wait()
        self._clock = Clock()

    def step(self):
        """A step is over."""
        seconds = round(self._clock.read()["seconds"], 2)
        self._ready.setdefault("first_step_seconds", seconds)

    def end(self, loss):
        """An epoch is over, with this mean loss."""
        spent = self._clock.read()
        if self._epoch == 0:
            self._ready["first_pass_seconds"] = round(spent["seconds"], 2)
        else:
            self._channel.send(**spent, loss=float(loss))
        self._epoch += 1


def keras_callback(turns, facts_of=lambda model: {}):
    """Reports to `turns` from within Keras's `fit`.

    Args:
        turns: a `Turns`.
        facts_of: function of the model to what goes into the report.
    """
    import keras

    class Callback(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            turns.begin(**(facts_of(self.model) if epoch == 1 else {}))

        def on_train_batch_end(self, batch, logs=None):
            turns.step()

        def on_epoch_end(self, epoch, logs=None):
            turns.end(logs["loss"])

    return Callback()


def train_kbert(texts, labels, folder, epochs, turns):
    """The library at hand, as it comes."""
    import keras

    import kbert
    from kbert.tasks import feeding

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(CORES)
    keras.utils.set_random_seed(0)

    def facts_of(model):
        """From the plan of another seed: what is typical, not this very run."""
        data = feeding.prepare(model, texts, labels, training=True)
        plan = data.fit_arguments(BATCH_SIZE, True, epochs)["x"]
        return {**plan_facts(plan, epochs), "xla": bool(model.jit_compile)}

    classifier = kbert.BertClassifier.from_preset(folder)
    classifier.fit(
        texts,
        labels,
        batch_size=BATCH_SIZE,
        epochs=epochs,
        verbose=0,
        callbacks=[keras_callback(turns, facts_of)],
    )


def train_kerashub(texts, labels, folder, epochs, turns):
    """KerasHub with its default of 512 tokens a text."""
    import keras

    keras.utils.set_random_seed(0)
    classifier = load_kerashub(folder)
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, weight_decay=0.01)
    optimizer.exclude_from_weight_decay(var_names=["bias", "norm"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    classifier.compile(optimizer=optimizer, loss=loss)
    classifier.fit(
        texts,
        np.array(labels),
        batch_size=BATCH_SIZE,
        epochs=epochs,
        verbose=0,
        callbacks=[keras_callback(turns)],
    )


def train_transformers(texts, labels, folder, epochs, turns):
    """PyTorch with texts of similar length in a batch, padded to the longest."""
    import torch
    import transformers

    torch.set_num_threads(CORES)
    transformers.set_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    classes = transformers.AutoModelForSequenceClassification
    model = classes.from_pretrained(folder).train()
    encoded = tokenizer(texts, truncation=True)["input_ids"]
    targets = torch.tensor(labels)
    optimizer = torch.optim.AdamW(
        decay_groups(model), lr=LEARNING_RATE, eps=1e-6, fused=True
    )
    steps = epochs * -(-len(texts) // BATCH_SIZE)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(WARMUP * steps), steps
    )
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        turns.begin(attention=model.config._attn_implementation)
        total = 0.0
        for batch in batches(encoded, rng):
            inputs = tokenizer.pad(
                {"input_ids": [encoded[i] for i in batch]}, return_tensors="pt"
            )
            loss = model(**inputs, labels=targets[batch]).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item() * len(batch)
            turns.step()
        turns.end(total / len(texts))


CONTESTANTS = {
    **{
        f"kbert-{backend}": Contestant(train_kbert, backend=backend)
        for backend in BACKENDS
    },
    PEER: Contestant(train_transformers),
    "kerashub-512": Contestant(
        train_kerashub, texts=2 * BATCH_SIZE, quick_texts=BATCH_SIZE, slow=True
    ),
}


def rounds_of(name, arguments):
    """How many rounds a contestant makes."""
    rounds = 1 if arguments.quick else arguments.rounds
    return min(rounds, SLOW_ROUNDS) if CONTESTANTS[name].slow else rounds


def work(arguments):
    """A worker's whole life."""
    channel, name = Channel(), arguments.worker
    if name == "prepare":
        write_classifier(arguments.folder)
        channel.send()
        return
    contestant = CONTESTANTS[name]
    texts, labels = read_sst2("train")
    count = contestant.quick_texts if arguments.quick else contestant.texts
    chosen = random.Random(0).sample(range(len(texts)), count)
    contestant.train(
        [texts[i] for i in chosen],
        [labels[i] for i in chosen],
        arguments.folder,
        1 + rounds_of(name, arguments),
        Turns(channel, count),
    )


def run(arguments):
    """{contestant: its figures}."""
    options = ["--rounds", str(arguments.rounds), *["--quick"] * arguments.quick]
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        common = {"folder": folder, "options": options, "verbose": arguments.verbose}
        prepare(__file__, **common)
        # KerasHub needs much memory, which the others have left by then.
        for slow in (False, True):
            names = [n for n in arguments.only if CONTESTANTS[n].slow == slow]
            workers, ready = start_all(__file__, names, CONTESTANTS, **common)
            rounds = min((rounds_of(name, arguments) for name in names), default=0)
            answers = in_turns(workers, rounds)
            for name in names:
                figures[name] = summary(ready[name], answers[name])
                losses = [round(answer["loss"], 4) for answer in answers[name]]
                figures[name]["losses"] = losses
    return figures


def main():
    arguments = read_arguments(__doc__, CONTESTANTS)
    if arguments.worker:
        work(arguments)
        return 0
    read_sst2("train")
    load = os.getloadavg()[0]
    figures = run(arguments)
    columns = {
        "texts/s best": lambda f: f"{f['best']:.1f}",
        "median": lambda f: f"{f['median']:.1f}",
        "cores": lambda f: f"{statistics.median(f['cores_used']):.1f}",
        "texts": lambda f: f"{f['texts']:,}",
        "first step": lambda f: f"{f['first_step_seconds']:.1f} s",
        "first epoch - best": lambda f: f"{f['compilation_seconds']:.1f} s",
        "used": lambda f: f"{f['share_used']:.1%}" if "shapes" in f else "",
        "shapes": lambda f: shapes_told(f.get("shapes", [])),
        "last loss": lambda f: f"{f['losses'][-1]:.3f}",
    }
    print_table(figures, columns)
    if arguments.quick:  # too short to judge by
        return 0
    verdicts = judge_ratios(figures, BARS)
    met = print_verdicts(verdicts)
    if arguments.only == list(CONTESTANTS):
        settings = {"preset": PRESET, "rounds": arguments.rounds}
        settings |= {"batch_size": BATCH_SIZE, "threads": CORES}
        settings |= {"learning_rate": LEARNING_RATE, "warmup": WARMUP}
        write_result(__file__, settings, figures, verdicts, load)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
