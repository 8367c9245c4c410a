"""The commands and their options; what they do lies in the modules they import."""

import pathlib
from typing import Annotated

import typer

from kbert_cli import options
from kbert_cli.console import check_output, one_line_errors, use_backend
from kbert_cli.source import Source

app = typer.Typer(
    help="BERT for Keras 3: fine-tune on your own table, evaluate, predict, export.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@one_line_errors
def finetune(
    data: options.Data,
    text: options.Text,
    label: options.Label,
    second: options.Second = None,
    preset: options.Start = "all_minilm_l6_en_uncased",
    output: options.Finetuned = pathlib.Path("finetuned"),
    problem: options.ProblemOfLabels = options.Problem.single_label,
    epochs: options.Epochs = 3,
    batch_size: options.BatchSize = 32,
    learning_rate: options.LearningRate = 5e-5,
    sequence_length: options.SequenceLength = None,
    long_text: options.LongTexts = None,
    validation_split: options.ValidationSplit = 0.1,
    seed: options.Seed = 0,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    backend: options.ChosenBackend = None,
    overwrite: options.Overwrite = False,
):
    """Fine-tune a classifier on a table of your own."""
    check_output(output, overwrite)
    source = Source(str(data), text, label, second, encoding, delimiter)
    use_backend(backend)
    from kbert_cli import training

    training.finetune(
        source,
        preset,
        output,
        problem=problem.value,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        sequence_length=sequence_length,
        long_text=long_text and long_text.value,
        validation_split=validation_split,
        seed=seed,
    )


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
