"""`kbert finetune`: a table of one's own, and the recipes of the paper."""

import pathlib

import typer
import typer.core

from kbert_cli import options
from kbert_cli.console import check_output, one_line_errors, use_backend
from kbert_cli.grid import Search, Setting, settings_of
from kbert_cli.source import Source


class TableByDefault(typer.core.TyperGroup):
    """Reads `kbert finetune FILE …` as `kbert finetune table FILE …`."""

    def parse_args(self, ctx, args):
        """Puts the command's name before arguments that do not begin with one."""
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = ["table", *args]
        return super().parse_args(ctx, args)


finetuning = typer.Typer(
    help="Fine-tune on a table of your own (`kbert finetune FILE --text COLUMN --label "
    "COLUMN`), or on a task of the paper as the paper does.",
    no_args_is_help=True,
    cls=TableByDefault,
)


@finetuning.command()
@one_line_errors
def table(
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
    export: options.Exported = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    backend: options.ChosenBackend = None,
    overwrite: options.Overwrite = False,
):
    """Fine-tune a classifier on a table of your own."""
    check_output(output, overwrite)
    check_output(export, overwrite)
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
        export=export,
    )


@finetuning.command()
@one_line_errors
def glue(
    task: options.GlueTask,
    data: options.TaskData,
    preset: options.Start = "bert_base_en_uncased",
    output: options.Runs = pathlib.Path("finetuned"),
    epochs: options.Epochs = 3,
    batch_size: options.BatchSize = 32,
    learning_rate: options.LearningRate = 2e-5,
    search: options.Searched = Search.none,
    restarts: options.Restarts = 1,
    seed: options.Seed = 0,
    sequence_length: options.TaskLength = 128,
    backend: options.ChosenBackend = None,
):
    """Fine-tune on a task of GLUE; once more, to go on after a stop."""
    use_backend(backend)
    from kbert_cli import glue as recipe

    chosen = Setting(learning_rate, epochs, batch_size, seed)
    settings = settings_of(chosen, search, restarts)
    recipe.finetune(task, data, preset, output, settings, sequence_length)


@finetuning.command()
@one_line_errors
def squad(
    data: options.TaskData,
    version: options.Version = options.SquadVersion.answered,
    preset: options.Start = "bert_base_en_uncased",
    output: options.Runs = pathlib.Path("finetuned"),
    epochs: options.EpochsOfVersion = None,
    batch_size: options.BatchSizeOfVersion = None,
    learning_rate: options.LearningRate = 5e-5,
    search: options.Searched = Search.none,
    restarts: options.Restarts = 1,
    seed: options.Seed = 0,
    sequence_length: options.TaskLength = 384,
    backend: options.ChosenBackend = None,
):
    """Fine-tune on SQuAD; once more, to go on after a stop."""
    use_backend(backend)
    from kbert_cli import squad as recipe

    answered = version == options.SquadVersion.answered
    usual = (3, 32) if answered else (2, 48)  # the paper's
    chosen = Setting(learning_rate, epochs or usual[0], batch_size or usual[1], seed)
    settings = settings_of(chosen, search, restarts)
    recipe.finetune(version.value, data, preset, output, settings, sequence_length)


@finetuning.command()
@one_line_errors
def swag(
    data: options.TaskData,
    preset: options.Start = "bert_base_en_uncased",
    output: options.Runs = pathlib.Path("finetuned"),
    epochs: options.Epochs = 3,
    batch_size: options.BatchSize = 16,
    learning_rate: options.LearningRate = 2e-5,
    search: options.Searched = Search.none,
    restarts: options.Restarts = 1,
    seed: options.Seed = 0,
    sequence_length: options.TaskLength = 128,
    backend: options.ChosenBackend = None,
):
    """Fine-tune on SWAG; once more, to go on after a stop."""
    use_backend(backend)
    from kbert_cli import swag as recipe

    chosen = Setting(learning_rate, epochs, batch_size, seed)
    settings = settings_of(chosen, search, restarts)
    recipe.finetune(data, preset, output, settings, sequence_length)


@finetuning.command()
@one_line_errors
def ner(
    data: options.TaskData,
    preset: options.Start = "bert_base_en_cased",
    output: options.Runs = pathlib.Path("finetuned"),
    epochs: options.Epochs = 3,
    batch_size: options.BatchSize = 32,
    learning_rate: options.LearningRate = 5e-5,
    search: options.Searched = Search.none,
    restarts: options.Restarts = 1,
    seed: options.Seed = 0,
    sequence_length: options.TaskLength = 128,
    backend: options.ChosenBackend = None,
):
    """Fine-tune on CoNLL-2003, or such files; once more, to go on after a stop."""
    use_backend(backend)
    from kbert_cli import ner as recipe

    chosen = Setting(learning_rate, epochs, batch_size, seed)
    settings = settings_of(chosen, search, restarts)
    recipe.finetune(data, preset, output, settings, sequence_length)
