"""What `kbert finetune` and `kbert evaluate` do."""

import json
import pathlib
import time

import keras
import numpy as np

import kbert
from kbert.data.splits import duplicates_across, stratified_split
from kbert.data.tables import Table, read_table
from kbert_cli.console import out, tell
from kbert_cli.options import Problem
from kbert_cli.pictures import draw_training
from kbert_cli.reports import report, score
from kbert_cli.source import Source
from kbert_cli.targets import encode_labels, label_names

METRICS, PICTURE = "metrics.json", "training.png"


def finetune(
    source: Source,
    preset: str,
    output: pathlib.Path,
    *,
    problem: str,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    sequence_length: int | None,
    long_text: str | None,
    validation_split: float,
    seed: int,
    export: pathlib.Path | None,
) -> None:
    """Fine-tune, print the scores of the rows held out, save all, draw a picture."""
    settings = {**locals(), "source": source._asdict(), "output": str(output)}
    settings["export"] = export and str(export)
    table = _read(source, problem)
    names = label_names(table, problem)
    targets = encode_labels(table, problem, names)
    learn, held_out = split_rows(table, problem, validation_split, seed)
    keras.utils.set_random_seed(seed)
    classifier = kbert.BertClassifier.from_preset(
        preset,
        labels=names,
        problem=problem,
        sequence_length=sequence_length,
        long_text=long_text,
    )
    classifier.compile(learning_rate=learning_rate)
    tell(f"Keras runs on {keras.config.backend()}.")
    validation = _texts(table, held_out), targets[held_out]
    start = time.perf_counter()
    history = classifier.fit(
        _texts(table, learn),
        targets[learn],
        batch_size=batch_size,
        epochs=epochs,
        validation_data=validation if len(held_out) else None,
    )
    result = {
        "settings": settings,
        "backend": keras.config.backend(),
        "rows": {"learnt": len(learn), "held_out": len(held_out)},
        "seconds": round(time.perf_counter() - start, 1),
        "history": {key: list(map(float, v)) for key, v in history.history.items()},
    }
    confusion = None
    if len(held_out):
        logits = classifier.predict(validation[0], batch_size=batch_size, verbose=0)
        result["scores"] = _report(classifier, validation[1], logits, "Held out")
        if problem == Problem.single_label:
            confusion = _confusion(validation[1], logits)
    classifier.save_to_preset(output)
    _write_json(output / METRICS, result)
    if not draw_training(output / PICTURE, history.history, confusion, names or ()):
        tell("No picture of the training: matplotlib is not installed.")
    _export(classifier, export)
    tell(f"Saved {output}. Ask it: kbert predict {output} FILE --text {source.text}")


def evaluate(
    source: Source, preset: str, output: pathlib.Path | None, batch_size: int
) -> None:
    """Print the scores of a table with labels, and write them if asked to."""
    classifier = kbert.BertClassifier.from_preset(preset)
    table = _read(source, classifier.problem)
    targets = encode_labels(table, classifier.problem, classifier.labels)
    texts = _texts(table, np.arange(len(table.texts)))
    logits = classifier.predict(texts, batch_size=batch_size, verbose=0)
    scores = _report(classifier, targets, logits, source.data)
    if output is not None:
        _write_json(output, scores)


def _export(classifier, folder: pathlib.Path | None) -> None:
    if folder is not None:
        classifier.export(folder, verbose=False)
        tell(f"Exported {folder}, for TensorFlow Serving.")


def _report(classifier, targets, logits, title: str) -> dict:
    """Print and return the scores of a classifier's logits."""
    scores = score(classifier.problem, targets, logits, classifier.labels)
    out().print(report(scores, f"{title}: {len(targets):,} rows"))
    return scores


def _confusion(targets: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Returns how often each class, a row, was answered by each, a column."""
    matrix = np.zeros((logits.shape[1],) * 2, int)
    np.add.at(matrix, (targets, logits.argmax(axis=1)), 1)
    return matrix


def _read(source: Source, problem: str) -> Table:
    table = read_table(
        source.data,
        source.text or "",
        source.label,
        source.second,
        encoding=source.encoding,
        delimiter=source.delimiter,
        keep_empty_labels=problem == Problem.multi_label,
    )
    for line in table.report.lines():
        tell(line)
    return table


def split_rows(
    table: Table, problem: str, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices to learn from and held out; texts in both parts are told."""
    if not fraction:
        return np.arange(len(table.texts)), np.arange(0)
    single = problem == Problem.single_label
    strata = table.labels if single else [""] * len(table.texts)
    learn, held_out = stratified_split(strata or [], fraction, seed)
    found = duplicates_across(_items(table, held_out), _items(table, learn))
    if found:
        rows = sum(duplicate.in_first for duplicate in found)
        tell(
            f"{len(found):,} texts stand in both parts ({rows:,} of the "
            f"{len(held_out):,} rows held out), the first: {found[0].text!r:.80}. "
            "The scores flatter by as much.",
            style="yellow",
        )
    return learn, held_out


def _items(table: Table, indices: np.ndarray) -> list:
    if table.seconds is None:
        return [table.texts[index] for index in indices]
    return [(table.texts[index], table.seconds[index]) for index in indices]


def _texts(table: Table, indices: np.ndarray):
    """What `fit` takes: a list of texts, or a tuple of two for pairs."""
    firsts = [table.texts[index] for index in indices]
    if table.seconds is None:
        return firsts
    return firsts, [table.seconds[index] for index in indices]


def _write_json(path: pathlib.Path, content: dict) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
