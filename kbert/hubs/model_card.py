"""The model card of a preset: what its files say of it, for people and for the Hub."""

from collections.abc import Mapping

# What the Hub calls the job of a task of kbert's.
_JOBS = {
    "BertClassifier": "text-classification",
    "BertTokenClassifier": "token-classification",
    "BertQuestionAnswerer": "question-answering",
    "BertMultipleChoice": "multiple-choice",
    "BertMaskedLM": "fill-mask",
    "BertFeatureExtractor": "feature-extraction",
    "BertEmbedder": "sentence-similarity",
}
_BODY = """
# {title}

A BERT ([Devlin et al. 2018](https://arxiv.org/abs/1810.04805)) of {layers} layers and
hidden size {hidden}, saved by [kbert](https://pypi.org/project/keras-kbert/) as a
`{task}`.

## Origin

{origin}

## Answers

{answers}

## Use

With kbert, on Keras 3 with TensorFlow, JAX or PyTorch:

```python
import kbert

model = kbert.{task}.from_preset("hf://{repository}")
```

With transformers:

```python
from transformers import AutoTokenizer, {architecture}

tokenizer = AutoTokenizer.from_pretrained("{repository}")
model = {architecture}.from_pretrained("{repository}")
```

Texts of more than {length} tokens are cut (`{long_text}`).

## Limits

On which texts it was trained, how well it answers, and for whom it is no good, kbert
does not know: write it here.
"""


def model_card(
    repository: str, config: Mapping, metadata: Mapping, licence: str | None = None
) -> str:
    """Returns the README.md of a preset.

    Args:
        repository: where it will lie on the Hub.
        config: the content of its `config.json`.
        metadata: that of its `kbert.json`.
        licence: of the model; None for that of the preset it was made from, if that
            is known.

    Returns:
        Markdown, after a YAML header that the Hub reads.
    """
    from huggingface_hub import ModelCardData

    provenance = metadata.get("provenance", {})
    task, settings = metadata["task"], metadata["preprocessing"]
    licence = licence or provenance.get("licence")
    base = provenance.get("repository")
    header = ModelCardData(
        license=licence and licence.lower(),
        library_name="transformers",
        pipeline_tag=_JOBS.get(task),
        tags=["bert", "keras", "kbert"],
        base_model=base,
    )
    body = _BODY.format(
        title=repository.partition("/")[2],
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        task=task,
        origin=_origin(provenance, licence),
        answers=_answers(config),
        repository=repository,
        architecture=config["architectures"][0],
        length=settings["sequence_length"] or settings["max_sequence_length"],
        long_text=settings["long_text"],
    )
    return f"---\n{header.to_yaml()}\n---\n{body}"


def _origin(provenance: Mapping, licence: str | None) -> str:
    """Tells from which preset a model was made."""
    told = "From which model it was made is not recorded."
    if preset := provenance.get("preset"):
        revision = provenance.get("revision")
        told = f"Made from {_plain(preset)}"
        told += f" at {_plain(revision)}." if revision else "."
        if base := provenance.get("repository"):
            told += f" Published on the Hugging Face Hub as {_plain(base)}."
    return f"{told} Licence: {_plain(licence or 'not recorded')}."


def _answers(config: Mapping) -> str:
    """Tells what the head of a model answers."""
    problem = config.get("problem_type")
    if problem == "regression":
        return "A number."
    labels = config.get("id2label")
    if not labels:
        return "Those of its task."
    rows = [
        f"| {index} | {_plain(labels[str(index)])} |" for index in range(len(labels))
    ]
    several = problem == "multi_label_classification"
    head = "Any of these labels:" if several else "One of these labels:"
    return "\n".join([head, "", "| number | label |", "|---|---|", *rows])


def _plain(text: str) -> str:
    """Returns a text as Markdown that shows it, in one line."""
    text = " ".join(text.split())
    for mark in "\\`*_{}[]<>|#!":
        text = text.replace(mark, f"\\{mark}")
    return text
