"""What `kbert inspect` does."""

import json
from collections.abc import Iterator

import rich.table
import rich.text

from kbert.convert.inspection import Inspection, inspect_preset
from kbert_cli.console import out, tell

_FORMATS = {
    "hugging_face": "a folder of transformers",
    "google": "a checkpoint of google-research/bert or of tf-models",
    "tf_hub": "a SavedModel of TensorFlow Hub",
    "keras_hub": "a preset of KerasHub",
}
_LONGEST = 300


def inspect(spec: str, allow_pickle: bool) -> bool:
    """Print what the files of a model hold, and whether they would load.

    Args:
        spec: a folder, a zip of Google's, a built-in name, or a hub's handle.
        allow_pickle: whether `pytorch_model.bin` may be read.

    Returns:
        Whether they would load.
    """
    found = inspect_preset(spec, allow_pickle=allow_pickle)
    table = rich.table.Table(title=rich.text.Text(found.spec), title_justify="left")
    table.add_column("what")
    table.add_column("found", overflow="fold")
    for what, value in _facts(found):
        table.add_row(what, rich.text.Text(value))
    out().print(table)
    files = rich.table.Table(title="Files", title_justify="left")
    files.add_column("name", overflow="fold")
    files.add_column("bytes", justify="right")
    files.add_column("sha256", overflow="fold")
    files.add_column("kbert.json", overflow="fold")
    for file in found.files:
        cells = (file.name, f"{file.size:,}", file.sha256 or "", file.told)
        files.add_row(*map(rich.text.Text, cells))
    if found.files:
        out().print(files)
    for note in found.notes:
        tell("Note: " + " ".join(note.splitlines()), style="yellow")
    for name, refusal in found.loads.items():
        told = "loads" if refusal is None else " ".join(refusal.splitlines())
        style = "" if refusal is None else "red"
        out().print(rich.text.Text(f"{name}: {told}", style))
    for name in found.new_heads:
        out().print(f"{name}: loads with a new head, which is random")
    return found.usable


def _facts(found: Inspection) -> Iterator[tuple[str, str]]:
    """Yield the rows of the first table."""
    if found.format:
        yield "format", _FORMATS.get(found.format, found.format)
        yield "folder", str(found.folder)
    if found.weights:
        yield "weights", found.weights
    if found.built_for:
        yield "built for", found.built_for
    if found.architecture:
        yield "architecture", str(found.architecture)
    for part, count in found.parameters.items():
        if part != "other":
            yield f"parameters: {part}", f"{count:,}"
    if found.others:
        yield "other tensors", _shortened(", ".join(found.others))
    if found.dtypes:
        yield "dtype", ", ".join(found.dtypes)
    if found.problem:
        yield "problem", found.problem
    if found.labels:
        yield "labels", _shortened(", ".join(found.labels))
    for name, value in found.tokenizer.items():
        yield f"tokenizer: {name.replace('_', ' ')}", _shortened(str(value))
    for name, value in found.metadata.items():
        told = value if isinstance(value, str) else json.dumps(value)
        yield f"kbert.json: {name}", _shortened(told)


def _shortened(text: str) -> str:
    """Return the beginning of a long text, and how long it is."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text):,} characters)"
