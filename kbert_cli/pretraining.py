"""What `kbert vocabulary` and `kbert instances` do."""

import pathlib

import rich.console
import rich.progress

from kbert.data.corpus import CorpusFormat, CorpusReport, read_corpus
from kbert.files import replace_file
from kbert.presets import preset_names
from kbert.pretraining.creation import create_instances
from kbert.pretraining.settings import InstanceSettings
from kbert.tokenization import BertTokenizer
from kbert.tokenization.training import learn_vocabulary
from kbert.tokenization.vocabulary import write_vocabulary
from kbert_cli.console import tell


def vocabulary(
    corpus: list[str],
    output: pathlib.Path,
    format: CorpusFormat,
    *,
    size: int,
    cased: bool,
    min_frequency: int,
    unused: int,
) -> None:
    """Learn a vocabulary from a corpus and write it, a piece a line."""
    report = CorpusReport()
    documents = read_corpus(corpus, format, report, split=False)
    learned = learn_vocabulary(
        (text for document in documents for text in document),
        size,
        lowercase=not cased,
        min_frequency=min_frequency,
        unused=unused,
    )
    content = write_vocabulary(learned.pieces)
    output.parent.mkdir(parents=True, exist_ok=True)

    def write(temporary: pathlib.Path):
        temporary.write_bytes(content)

    replace_file(output, write)
    tell(f"Read {report.documents:,} documents.")
    for line in (*report.left_out(), *learned.lines()):
        tell(line)
    if len(learned.pieces) < size:
        tell(f"The corpus has no more pairs of pieces: fewer than {size:,} were found.")
    tell(f"Wrote {output}.")


def instances(
    corpus: list[str],
    output: pathlib.Path,
    vocabulary: str,
    format: CorpusFormat,
    settings: InstanceSettings,
    *,
    cased: bool,
    workers: int,
    tfrecords: pathlib.Path | None,
) -> None:
    """Make instances of pre-training from a corpus, and tell what they are like."""
    tokenizer = _tokenizer(vocabulary, cased)
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.MofNCompleteColumn(),
        rich.progress.BarColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(
        *columns, console=rich.console.Console(stderr=True)
    ) as bars:
        shown: dict[str, rich.progress.TaskID] = {}

        def progress(what: str, done: int, total: int):
            if what not in shown:
                shown[what] = bars.add_task(what, total=total)
            bars.update(shown[what], completed=done)

        report = create_instances(
            corpus,
            output,
            tokenizer,
            settings,
            format=format,
            workers=workers,
            progress=progress,
        )
    for line in report.lines():
        tell(line)
    tell(f"Wrote {output}.")
    if tfrecords is not None:
        from kbert.pretraining.tfrecords import write_tfrecords

        paths = write_tfrecords(output, tfrecords, files=report.shards)
        tell(f"Wrote {len(paths)} TFRecord files into {tfrecords}.")


def _tokenizer(vocabulary: str, cased: bool) -> BertTokenizer:
    """Returns the tokenizer of a vocab.txt, or of a preset."""
    if pathlib.Path(vocabulary).is_file():
        return BertTokenizer(vocabulary, lowercase=not cased)
    if cased:
        raise ValueError(
            "--cased goes with a vocab.txt; a preset says itself whether it is cased. "
            f"Received: --vocabulary {vocabulary} --cased."
        )
    if not pathlib.Path(vocabulary).exists() and "://" not in vocabulary:
        if vocabulary not in preset_names():
            raise ValueError(
                "The vocabulary must be a vocab.txt or a preset. Received: "
                f"{vocabulary}, which is neither a file, nor a folder, nor a built-in "
                "name (see `kbert presets`)."
            )
    return BertTokenizer.from_preset(vocabulary)
