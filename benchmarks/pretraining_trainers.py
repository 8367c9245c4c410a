"""Who trains in pretraining_step.py, on what, and how: the part of its workers."""

import dataclasses
import os
import pathlib

import numpy as np
from contestants import BACKENDS, ROOT, SHARED, Clock
from demo_accuracy import decay_groups
from ragged_training import keras_callback

LEARNING_RATE, WARMUP, TOTAL_STEPS = 1e-4, 0.01, 1_000_000  # the paper's
PEER = "transformers"
CORES = os.cpu_count()
VOCABULARY = ROOT / "presets" / "vocabularies" / "uncased_en.txt"
CORPUS = ("janeaustenr", "sqlite3-doc")
SIZES = {
    "minilm": {"num_layers": 6, "hidden_dim": 384, "intermediate_dim": 1536},
    "base": {"num_layers": 12, "hidden_dim": 768, "intermediate_dim": 3072},
}
HEADS = 12
VOCABULARY_SIZE = 30522


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is trained, and how much of it.

    Args:
        shape: a key of `SIZES`.
        length: positions of a row.
        batch_size: instances a step.
        steps: of a pass.
    """

    shape: str
    length: int
    batch_size: int
    steps: int

    @property
    def most(self):
        """Most masked tokens of an instance, as Google's README has them."""
        return {128: 20, 512: 76}[self.length]


CELLS = {
    "minilm-128": Cell("minilm", 128, 16, 4),
    "minilm-512": Cell("minilm", 512, 4, 4),
    "base-128": Cell("base", 128, 8, 2),
    "base-512": Cell("base", 512, 3, 2),
}


def make_instances(folder):
    """Writes the instances of both lengths."""
    import kbert
    from kbert.data.corpus import CorpusFormat
    from kbert.preprocessing.masking import MaskingRule
    from kbert.pretraining.creation import create_instances
    from kbert.pretraining.settings import InstanceSettings

    files = [SHARED / "data" / "corpus" / f"{name}.txt.xz" for name in CORPUS]
    for cell in CELLS.values():
        rule = MaskingRule(most=cell.most)
        create_instances(
            files,
            pathlib.Path(folder) / f"instances-{cell.length}",
            kbert.BertTokenizer(VOCABULARY),
            InstanceSettings(sequence_length=cell.length, masking=rule, dupe_factor=1),
            format=CorpusFormat("paragraphs"),
        )


def batches_of(cell, folder, rows):
    """The batches of a cell, an `InstanceBatches`."""
    from kbert.pretraining.batches import InstanceBatches

    path = pathlib.Path(folder) / f"instances-{cell.length}"
    return InstanceBatches(path, cell.batch_size, rows=rows)


def plain_batches(cell, folder):
    """The arrays of a pass, one instance a row: a list of (x, y)."""
    batches = batches_of(cell, folder, "single")
    return [batches.at(step) for step in range(cell.steps)]


def repeated(batches, steps):
    """A dataset of the same batches in every epoch, which `at` gives by number.

    Args:
        batches: function of a number to a batch.
        steps: how many there are.
    """
    import keras

    class Repeated(keras.utils.PyDataset):
        def __len__(self):
            return steps

        def __getitem__(self, index):
            return batches(index)

    return Repeated()


def facts_of(cell, folder):
    """What a pass consists of: tokens, rows, and the products that it needs."""
    packed = batches_of(cell, folder, "packed")
    sizes = SIZES[cell.shape]
    hidden, wide = sizes["hidden_dim"], sizes["intermediate_dim"]
    flop, rows, tokens = 0, [], 0
    for step in range(cell.steps):
        found = packed.instances_at(step)
        lengths = np.diff(found.row_splits)
        masked = len(found.mask_labels)
        layer = 2 * lengths.sum() * (4 * hidden**2 + 2 * hidden * wide)
        layer += 4 * (lengths**2).sum() * hidden
        head = 2 * masked * (hidden**2 + hidden * VOCABULARY_SIZE)
        flop += 3 * (sizes["num_layers"] * layer + head)  # forward and twice backward
        rows.append(len(packed.at(step)[0]["token_ids"]))
        tokens += int(lengths.sum())
    return {"gflop": round(float(flop) / 1e9, 2), "rows": rows, "tokens": tokens}


def train_kbert(cell, folder, epochs, turns):
    """The library at hand, as it comes."""
    import keras

    import kbert

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(CORES)
    keras.utils.set_random_seed(0)
    backbone = kbert.BertBackbone(VOCABULARY_SIZE, num_heads=HEADS, **SIZES[cell.shape])
    pretrainer = kbert.BertPretrainer(backbone)
    warmup = kbert.WarmupLinearDecay(LEARNING_RATE, TOTAL_STEPS, WARMUP)
    pretrainer.compile(kbert.AdamW(warmup))
    facts = facts_of(cell, folder)
    batches = batches_of(cell, folder, "packed")
    pretrainer.fit(
        repeated(batches.at, cell.steps),
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=[keras_callback(turns, lambda model: facts)],
    )


def train_kerashub(cell, folder, epochs, turns):
    """KerasHub's head of masked tokens, which gathers them first as well."""
    import keras
    import keras_hub

    keras.utils.set_random_seed(0)
    backbone = keras_hub.models.BertBackbone(
        VOCABULARY_SIZE, num_heads=HEADS, max_sequence_length=512, **SIZES[cell.shape]
    )
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(
        LEARNING_RATE, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "norm"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss)

    def batch(x, y):
        behind = cell.most - x["mask_positions"].shape[1]
        places = np.pad(x["mask_positions"], ((0, 0), (0, behind)))
        labels = np.pad(y["mlm"], ((0, 0), (0, behind)))
        return {**x, "mask_positions": places}, labels, (places > 0).astype("float32")

    plain = [batch(*both) for both in plain_batches(cell, folder)]
    model.fit(
        repeated(plain.__getitem__, cell.steps),
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=[keras_callback(turns)],
    )


def train_transformers(cell, folder, epochs, turns):
    """PyTorch, as its examples do it: labels of -100 where nothing is masked."""
    import torch
    import transformers

    torch.set_num_threads(CORES)
    transformers.set_seed(0)
    sizes = SIZES[cell.shape]
    config = transformers.BertConfig(
        num_hidden_layers=sizes["num_layers"],
        hidden_size=sizes["hidden_dim"],
        intermediate_size=sizes["intermediate_dim"],
        num_attention_heads=HEADS,
    )
    model = transformers.BertForPreTraining(config).train()
    optimizer = torch.optim.AdamW(
        decay_groups(model), lr=LEARNING_RATE, eps=1e-6, fused=True
    )
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(WARMUP * TOTAL_STEPS), TOTAL_STEPS
    )

    def batch(x, y):
        labels = np.full(x["token_ids"].shape, -100)
        rows, slots = np.nonzero(x["mask_positions"])
        labels[rows, x["mask_positions"][rows, slots]] = y["mlm"][rows, slots]
        arrays = {
            "input_ids": x["token_ids"],
            "token_type_ids": x["segment_ids"],
            "attention_mask": x["padding_mask"],
            "labels": labels,
            "next_sentence_label": y["nsp"],
        }
        return {key: torch.tensor(array).long() for key, array in arrays.items()}

    plain = [batch(*both) for both in plain_batches(cell, folder)]
    for _ in range(epochs):
        turns.begin(attention=model.config._attn_implementation)
        total = 0.0
        for inputs in plain:
            loss = model(**inputs).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item()
            turns.step()
        turns.end(total / cell.steps)


def multiply(cell, folder, epochs, turns):
    """The products of a feed-forward layer, again and again: no "loss", but GFLOP."""
    import torch

    torch.set_num_threads(CORES)
    hidden, wide = (SIZES[cell.shape][k] for k in ("hidden_dim", "intermediate_dim"))
    x = torch.randn(cell.batch_size * cell.length, hidden)
    kernel = torch.randn(hidden, wide)
    flop = 2 * len(x) * hidden * wide
    times = max(1, round(200e9 / flop))
    for _ in range(epochs):
        turns.begin()
        best = np.inf
        for _ in range(times):
            clock = Clock()
            torch.matmul(x, kernel)
            best = min(best, clock.read()["seconds"])
        turns.step()
        turns.end(flop / best / 1e9)


TRAIN = {
    "gemm": (multiply, None),
    **{f"kbert-{backend}": (train_kbert, backend) for backend in BACKENDS},
    PEER: (train_transformers, None),
    "kerashub": (train_kerashub, "tensorflow"),
}
