"""What `kbert pretrain` does: a run, with its progress in one line."""

import datetime
import pathlib

import rich.console
import rich.progress

from kbert.pretraining.recording import Progress
from kbert.pretraining.run import pretrain as run
from kbert.pretraining.run_settings import read_settings
from kbert_cli.console import tell

# Without a terminal, a line of progress is written so often.
_SECONDS = 60


def pretrain(config: pathlib.Path) -> int | None:
    """Pre-train as a file says; return the signal that stopped it, or None."""
    settings = read_settings(config)
    console = rich.console.Console(stderr=True, soft_wrap=True)
    if not console.is_terminal:
        return run(settings, tell=tell, progress=_Lines())
    columns = (
        rich.progress.TextColumn("step"),
        rich.progress.MofNCompleteColumn(),
        rich.progress.BarColumn(bar_width=20),
        rich.progress.TextColumn("{task.description}"),
    )
    with rich.progress.Progress(*columns, console=console) as bars:
        bar = bars.add_task("", total=settings.steps)

        def show(progress: Progress):
            bars.update(bar, completed=progress.step, description=_told(progress))

        return run(settings, tell=lambda line: bars.console.print(line), progress=show)


class _Lines:
    """Writes a line of progress now and then, for logs."""

    def __init__(self):
        self._next = datetime.datetime.now()

    def __call__(self, progress: Progress) -> None:
        if datetime.datetime.now() < self._next and progress.step < progress.steps:
            return
        tell(f"step {progress.step:,}/{progress.steps:,} {_told(progress)}")
        self._next = datetime.datetime.now() + datetime.timedelta(seconds=_SECONDS)


def _told(progress: Progress) -> str:
    scores = [
        f"{name.replace('_', ' ')} {value:.3f}"
        for name, value in progress.scores.items()
        if name == "loss" or name.endswith("accuracy")
    ]
    left = datetime.timedelta(seconds=round(progress.seconds_left))
    return ", ".join(
        [
            f"length {progress.sequence_length}",
            *scores,
            f"{progress.tokens_per_second:,.0f} tokens/s",
            f"{left} left",
        ]
    )
