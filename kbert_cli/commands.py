"""The commands and their options; what they do lies in the modules they import."""

import math
import os
from typing import Annotated

import typer

from kbert_cli import options
from kbert_cli.console import check_output, one_line_errors, use_backend
from kbert_cli.fine_tuning import finetuning
from kbert_cli.source import Source

app = typer.Typer(
    help="BERT for Keras 3: fine-tune on your own table or the paper's tasks, "
    "evaluate, predict, export; pre-train on your own text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(finetuning, name="finetune")


@app.command()
@one_line_errors
def evaluate(
    preset: options.Preset,
    data: options.Data,
    text: options.Text,
    label: options.Label,
    second: options.Second = None,
    output: options.Scores = None,
    batch_size: options.BatchSize = 32,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    backend: options.ChosenBackend = None,
    overwrite: options.Overwrite = False,
):
    """Score a fine-tuned classifier on a table with labels."""
    check_output(output, overwrite)
    source = Source(str(data), text, label, second, encoding, delimiter)
    use_backend(backend)
    from kbert_cli import training

    training.evaluate(source, preset, output, batch_size)


@app.command()
@one_line_errors
def predict(
    preset: options.Preset,
    data: options.DataOrLines,
    text: options.TextOfFile = None,
    second: options.Second = None,
    output: options.Answers = None,
    format: options.AnswerFormat = None,
    batch_size: options.BatchSize = 32,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    backend: options.ChosenBackend = None,
    overwrite: options.Overwrite = False,
):
    """Answer every text of a file, or every line of standard input, in order."""
    check_output(output, overwrite)
    source = Source(data, text, None, second, encoding, delimiter)
    use_backend(backend)
    from kbert_cli import predicting

    predicting.predict(source, preset, output, format, batch_size)


@app.command()
@one_line_errors
def export(
    preset: options.Preset,
    folder: options.Folder,
    backend: options.ChosenBackend = None,
    overwrite: options.Overwrite = False,
):
    """Write a TensorFlow SavedModel: text in, labels and probabilities out."""
    check_output(folder, overwrite)
    use_backend(backend)
    from kbert_cli import predicting

    predicting.export(preset, folder)


@app.command()
@one_line_errors
def convert(
    source: options.Source,
    target: options.Target,
    format: options.TargetFormat,
    allow_pickle: options.AllowPickle = False,
    backend: options.ChosenBackend = None,
    overwrite: options.Overwrite = False,
):
    """Write a model as other programs read it, and tell what that changes."""
    check_output(target, overwrite)
    use_backend(backend)
    from kbert_cli import converting

    if not converting.convert(source, target, format, allow_pickle):
        raise typer.Exit(1)


@app.command()
@one_line_errors
def inspect(
    preset: options.Inspected,
    allow_pickle: options.AllowPickle = False,
    backend: options.ChosenBackend = None,
):
    """Show what a model's files hold and whether they would load; 1 if not."""
    use_backend(backend)
    from kbert_cli import inspecting

    if not inspecting.inspect(preset, allow_pickle):
        raise typer.Exit(1)


@app.command()
@one_line_errors
def tokenize(
    preset: options.Preset,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...")],
):
    """Show the pieces of texts, their ids and where they stand in the text."""
    use_backend(None)
    from kbert_cli import looking

    looking.tokenize(preset, texts)


@app.command()
@one_line_errors
def presets():
    """List the built-in presets and where their weights come from."""
    use_backend(None)
    from kbert_cli import looking

    looking.presets()


@app.command()
@one_line_errors
def vocabulary(
    corpus: options.Corpus,
    output: options.VocabularyFile,
    size: options.Size = 30_000,
    cased: options.Cased = False,
    format: options.CorpusKind = options.Kind.auto,
    field: options.Field = "text",
    min_frequency: options.MinFrequency = 2,
    unused: options.Unused = 0,
    overwrite: options.Overwrite = False,
):
    """Learn a WordPiece vocabulary from a corpus."""
    check_output(output, overwrite)
    use_backend(None)
    from kbert.data.corpus import CorpusFormat
    from kbert_cli import pretraining

    pretraining.vocabulary(
        corpus,
        output,
        CorpusFormat(format.value, field),
        size=size,
        cased=cased,
        min_frequency=min_frequency,
        unused=unused,
    )


@app.command()
@one_line_errors
def instances(
    corpus: options.Corpus,
    vocabulary: options.Vocabulary,
    output: options.InstanceFolder,
    cased: options.Cased = False,
    format: options.CorpusKind = options.Kind.auto,
    field: options.Field = "text",
    language: options.Language = "en",
    sequence_length: options.InstanceLength = 128,
    next_sentence: options.NextSentence = options.SecondSegment.random,
    dupe_factor: options.Duplicates = 10,
    short_seq_prob: options.ShortShare = 0.1,
    masked_lm_prob: options.MaskedShare = 0.15,
    max_predictions: options.MostMasked = None,
    whole_words: options.WholeWords = False,
    ngrams: options.NGrams = 1,
    dynamic_masks: options.DynamicMasks = False,
    seed: options.InstanceSeed = 12345,
    workers: options.Workers = None,
    tfrecords: options.TFRecords = None,
):
    """Make instances of pre-training from a corpus; again, to go on after a stop."""
    use_backend(None)
    from kbert.data.corpus import CorpusFormat
    from kbert.preprocessing.masking import MaskingRule
    from kbert.pretraining.settings import InstanceSettings
    from kbert_cli import pretraining

    most = max_predictions or math.ceil(masked_lm_prob * sequence_length)
    rule = MaskingRule(masked_lm_prob, most, whole_words=whole_words, ngrams=ngrams)
    settings = InstanceSettings(
        sequence_length=sequence_length,
        next_sentence=next_sentence.value,
        short_seq_prob=short_seq_prob,
        dupe_factor=dupe_factor,
        masking=rule,
        static_masks=not dynamic_masks,
        seed=seed,
    )
    pretraining.instances(
        corpus,
        output,
        vocabulary,
        CorpusFormat(format.value, field, language),
        settings,
        cased=cased,
        workers=workers or os.cpu_count() or 1,
        tfrecords=tfrecords,
    )


@app.command()
@one_line_errors
def pretrain(
    config: options.RunConfig,
    backend: options.ChosenBackend = None,
):
    """Pre-train a BERT on instances; again, to go on after a stop.

    Exit status: 0 when all steps are done; 2 for bad input; 143 or 130 where SIGTERM or
    Ctrl+C stopped it, after the step at hand was saved.
    """
    use_backend(backend)
    from kbert_cli import pretrain_run

    stopped_by = pretrain_run.pretrain(config)
    if stopped_by is not None:
        raise typer.Exit(128 + stopped_by)
