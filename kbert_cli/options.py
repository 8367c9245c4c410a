"""The options that commands share, each described once."""

import enum
import pathlib
from typing import Annotated

import typer

from kbert_cli.console import Backend
from kbert_cli.grid import Search


class Problem(enum.StrEnum):
    """What the labels of a text are."""

    single_label = "single_label"
    multi_label = "multi_label"
    regression = "regression"


class LongText(enum.StrEnum):
    """What becomes of a text that is too long."""

    truncate = "truncate"
    head_tail = "head_tail"


class Format(enum.StrEnum):
    """How answers are written."""

    csv = "csv"
    jsonl = "jsonl"


class SquadVersion(enum.StrEnum):
    """Which questions there are: in the second, some without an answer."""

    answered = "1.1"
    some_unanswered = "2.0"


class CheckpointFormat(enum.StrEnum):
    """Whose files a model is written as."""

    huggingface = "huggingface"
    google = "google"
    keras_hub = "keras_hub"


class Kind(enum.StrEnum):
    """How a file is documents."""

    auto = "auto"
    lines = "lines"
    paragraphs = "paragraphs"
    jsonl = "jsonl"


class SecondSegment(enum.StrEnum):
    """What the second segment of an instance is."""

    random = "random"
    order = "order"
    none = "none"


Preset = Annotated[
    str,
    typer.Argument(
        help="A folder, a built-in name (see `kbert presets`), or hf://… or kaggle://…"
    ),
]
Data = Annotated[
    pathlib.Path,
    typer.Argument(
        help="A file with a header: .csv, .tsv, .jsonl.", show_default=False
    ),
]
Text = Annotated[str, typer.Option("--text", help="The column of the texts.")]
Second = Annotated[
    str | None,
    typer.Option("--second", help="The column of the second texts, for pairs."),
]
Label = Annotated[str, typer.Option("--label", help="The column of the labels.")]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Of the file. Default: UTF-8, or what its mark says.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="What stands between two cells. Default: as the name ends.",
    ),
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", min=1, help="Texts in one step.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an output that exists.")
]
ChosenBackend = Annotated[
    Backend | None,
    typer.Option(
        "--backend",
        help="What Keras runs on. Default: KERAS_BACKEND, or what is installed.",
    ),
]
# Of `finetune`.
Start = Annotated[
    str,
    typer.Option(
        "--preset",
        help="Start from: a folder, a built-in name, or hf://… or kaggle://…",
    ),
]
Finetuned = Annotated[pathlib.Path, typer.Option("--output", help="The new preset.")]
ProblemOfLabels = Annotated[
    Problem,
    typer.Option(
        "--problem",
        help="One label a text; several, with | between them; or a number.",
    ),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1)]
LearningRate = Annotated[
    float, typer.Option("--learning-rate", min=0, help="The peak, after a warm-up.")
]
SequenceLength = Annotated[
    int | None,
    typer.Option(
        "--sequence-length",
        min=1,
        help="Most tokens of a text. Default: as the preset says, or all it can.",
    ),
]
LongTexts = Annotated[
    LongText | None,
    typer.Option(
        "--long-text",
        help="Keep the beginning, or beginning and end. Default: as the preset says.",
    ),
]
ValidationSplit = Annotated[
    float,
    typer.Option("--validation-split", min=0, max=0.9, help="Share of rows held out."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of split and training.")]
Exported = Annotated[
    pathlib.Path | None,
    typer.Option("--export", help="Write a SavedModel into this folder, too."),
]
# Of the recipes of `finetune`.
GlueTask = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="cola, sst2, mrpc, qqp, stsb, mnli, qnli, rte or wnli.",
        show_default=False,
    ),
]
Version = Annotated[SquadVersion, typer.Option("--version")]
TaskData = Annotated[
    pathlib.Path, typer.Option("--data", help="The folder with the official files.")
]
Runs = Annotated[
    pathlib.Path,
    typer.Option("--output", help="The folder to write, or to go on with."),
]
Searched = Annotated[
    Search,
    typer.Option(
        "--search",
        help="Try the paper's four learning rates (section 4.1), or its grid of 18 "
        "settings (appendix A.3); the best on the development set is kept.",
    ),
]
Restarts = Annotated[
    int, typer.Option("--restarts", min=1, help="Runs of each setting, seed by seed.")
]
TaskLength = Annotated[
    int, typer.Option("--sequence-length", min=3, help="Most tokens of an input.")
]
EpochsOfVersion = Annotated[
    int | None, typer.Option("--epochs", min=1, help="Default: 3, of version 2.0 2.")
]
BatchSizeOfVersion = Annotated[
    int | None,
    typer.Option("--batch-size", min=1, help="Default: 32, of version 2.0 48."),
]
# Of `evaluate`, `predict` and `export`.
Scores = Annotated[
    pathlib.Path | None, typer.Option("--output", help="A JSON file for the scores.")
]
DataOrLines = Annotated[
    str, typer.Argument(help="A .csv, .tsv or .jsonl file; - for a text a line.")
]
TextOfFile = Annotated[
    str | None, typer.Option("--text", help="The column of the texts, in a file.")
]
Answers = Annotated[
    pathlib.Path | None,
    typer.Option("--output", help="A .csv or .jsonl file. Default: standard output."),
]
AnswerFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Default: as the output's name ends, or csv."),
]
Folder = Annotated[pathlib.Path, typer.Argument(help="The folder for the SavedModel.")]
# Of `convert` and `inspect`.
_ANY = "A folder, a zip of Google's, a built-in name, or hf://… or kaggle://…"
Source = Annotated[str, typer.Argument(metavar="FROM", help=_ANY)]
Target = Annotated[
    pathlib.Path, typer.Argument(metavar="TO", help="The folder to write.")
]
TargetFormat = Annotated[
    CheckpointFormat, typer.Option("--format", help="Whose files to write.")
]
Inspected = Annotated[str, typer.Argument(help=_ANY)]
AllowPickle = Annotated[
    bool,
    typer.Option(
        "--allow-pickle",
        help="Read pytorch_model.bin, through torch, where there is no better file.",
    ),
]
# Of `vocabulary` and `instances`.
Corpus = Annotated[
    list[str],
    typer.Argument(
        metavar="CORPUS...",
        help="Text files (.gz, .xz, .zst too) or patterns such as 'wiki/*.txt'.",
        show_default=False,
    ),
]
CorpusKind = Annotated[
    Kind,
    typer.Option(
        "--format",
        help="A sentence a line, or a paragraph a line, and blank lines between "
        "documents; or a document a line of JSON. Default: as the name ends, or lines.",
    ),
]
Field = Annotated[
    str, typer.Option("--field", help="Of a document in JSON: where the text stands.")
]
Language = Annotated[
    str, typer.Option("--language", help="Of paragraphs, to split them into sentences.")
]
Cased = Annotated[
    bool, typer.Option("--cased", help="Keep upper case and accents of the text.")
]
VocabularyFile = Annotated[
    pathlib.Path, typer.Option("--output", "--out", help="The vocab.txt to write.")
]
Size = Annotated[int, typer.Option("--size", min=1, help="Most pieces.")]
MinFrequency = Annotated[
    int,
    typer.Option(
        "--min-frequency", min=1, help="How often a pair must occur to be a piece."
    ),
]
Unused = Annotated[
    int, typer.Option("--unused", min=0, help="Pieces kept free; Google's have 99.")
]
InstanceFolder = Annotated[
    pathlib.Path,
    typer.Option("--output", "--out", help="The folder to write, or to go on with."),
]
Vocabulary = Annotated[
    str, typer.Option("--vocabulary", "--vocab", help="A vocab.txt, or a preset.")
]
InstanceLength = Annotated[
    int, typer.Option("--sequence-length", min=8, help="Most tokens of an instance.")
]
NextSentence = Annotated[
    SecondSegment,
    typer.Option(
        "--next-sentence",
        help="The second segment, in half of the cases: a random one, or swapped with "
        "the first; or no second segment.",
    ),
]
Duplicates = Annotated[
    int,
    typer.Option("--dupe-factor", min=1, help="Times that the corpus is gone through."),
]
ShortShare = Annotated[
    float, typer.Option("--short-seq-prob", min=0, max=1, help="Share of short ones.")
]
MaskedShare = Annotated[
    float, typer.Option("--masked-lm-prob", min=0, max=1, help="Share of the tokens.")
]
MostMasked = Annotated[
    int | None,
    typer.Option(
        "--max-predictions",
        min=1,
        help="Most masked tokens of an instance. Default: as many as its share.",
    ),
]
WholeWords = Annotated[
    bool, typer.Option("--whole-words", help="Mask whole words or none of a word.")
]
NGrams = Annotated[
    int, typer.Option("--ngrams", min=1, help="Most neighbours masked together.")
]
DynamicMasks = Annotated[
    bool, typer.Option("--dynamic-masks", help="Mask anew in every epoch, not now.")
]
InstanceSeed = Annotated[
    int, typer.Option("--seed", min=0, help="Of all random choices.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes. Default: all cores.")
]
TFRecords = Annotated[
    pathlib.Path | None,
    typer.Option("--tfrecords", help="A folder for Google's files, beside."),
]
# Of `pretrain`.
RunConfig = Annotated[
    pathlib.Path,
    typer.Argument(
        metavar="CONFIG",
        help="A .toml or .yaml file; see kbert.pretraining.run_settings.",
        show_default=False,
    ),
]
