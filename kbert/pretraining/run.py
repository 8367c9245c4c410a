"""A whole pre-training: from instances to a preset, and on after any kind of stop."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import keras

from kbert.files import replace_file
from kbert.pretraining import curves, downstream
from kbert.pretraining.curves import CurveTable
from kbert.pretraining.recording import Progress, Recorder
from kbert.pretraining.run_data import PhaseData, open_phases
from kbert.pretraining.run_model import build_task
from kbert.pretraining.run_settings import RunSettings
from kbert.training.checkpoint import TrainingCheckpoint
from kbert.training.randomness import make_deterministic
from kbert.training.stopping import StopRequest

CHECKPOINTS, PRESET, DOWNSTREAM = "checkpoints", "preset", "downstream.json"

# What may differ when a run goes on: it changes no weight.
_FREE = (
    *("output", "phases", "log_every", "evaluate_every", "checkpoint_every"),
    *("keep_checkpoints", "tensorboard", "downstream"),
)


def pretrain(
    settings: RunSettings,
    *,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> int | None:
    """Trains from the newest checkpoint, or from the beginning, to a preset.

    Called again after it was stopped or killed, it goes on, and ends with the same bits
    as a run that was not: on JAX, on torch, and, unless `deterministic` is switched
    off, on TensorFlow. In the output folder lie `checkpoints/`, `curve.csv`,
    `held_out.csv`, `curves.png`, `tensorboard/`, and at the end `preset/`.

    The first SIGTERM or SIGINT saves after the batch at hand, and leaves.

    Args:
        settings: what to do.
        tell: called with sentences on what happens.
        progress: called after every batch.

    Returns:
        None when the run is complete; the number of the signal that stopped it.

    Raises:
        FileNotFoundError: if instances or a preset are not there.
        ImportError: if TensorBoard's files are asked for without tensorboardX.
        OSError: if a checkpoint cannot be written.
        ValueError: if settings, instances and what the output folder holds do not go
            together; or if the loss is no finite number.
    """
    tell = tell or (lambda line: None)
    phases = open_phases(settings)
    with StopRequest() as stop:
        run = _Run(settings, phases, stop, tell, progress)
        return run.go()


class _Run:
    """One process of a run."""

    def __init__(self, settings, phases, stop, tell, progress):
        self.settings: RunSettings = settings
        self.phases: list[PhaseData] = phases
        self.stop: StopRequest = stop
        self.tell: Callable[[str], None] = tell
        self.folder: Path = settings.output
        parts = settings.accumulation
        identity = _identity(settings, phases)
        self.checkpoint = TrainingCheckpoint(
            self.folder / CHECKPOINTS,
            settings.checkpoint_every * parts,
            settings.keep_checkpoints,
            stop=stop,
            facts=lambda: identity,
        )
        _check_same(self.checkpoint, identity, self.folder)
        self.parts: int = parts
        self.total: int = phases[-1].end
        self.begun_at: int = self.checkpoint.step // parts
        self.progress = progress

    def go(self) -> int | None:
        """Does what is left; see `pretrain`."""
        preset = self.folder / PRESET
        if self.checkpoint.step == self.total and preset.exists():
            self.tell(f"All {self.settings.steps:,} steps were done before.")
            self._finish(preset)
            return None
        if preset.exists():
            raise ValueError(
                "The output must be new, or hold a run that is not complete. Received: "
                f"{self.folder}, which holds {PRESET} and no checkpoint of the last "
                "step. Name another folder."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._board() as board:
            task = self._task()
            self._judge_downstream("before", self.settings.init_from)
            stopped_by = self._train(task, board)
        if stopped_by is not None:
            step = self.checkpoint.step // self.parts
            self.tell(
                f"Stopped by signal {stopped_by} and saved after step {step:,}. The "
                "same command goes on."
            )
            return stopped_by
        task.save_to_preset(preset)
        self._finish(preset)
        return None

    def _task(self):
        """Builds the model, and brings back what was learnt."""
        keras.utils.set_random_seed(self.settings.seed)
        if self.settings.deterministic:
            make_deterministic()
        task = build_task(self.settings, self.phases)
        self.checkpoint.restore(task)
        self.tell(
            f"{type(task).__name__} of {task.count_params():,} weights on "
            f"{keras.backend.backend()}, {self.settings.steps:,} steps of "
            f"{self.settings.batch_size} instances."
        )
        for number, phase in enumerate(self.phases, start=1):
            if phase.held_out is not None:
                used = phase.held_out_steps * phase.held_out.batch_size
                self.tell(
                    f"Phase {number} is judged by {used:,} of the "
                    f"{phase.held_out.num_instances:,} instances held out."
                )
        if self.checkpoint.saved is not None:
            self.tell(f"Goes on after step {self.begun_at:,}.")
        return task

    def _train(self, task, board) -> int | None:
        """Trains to the end; returns the signal that stopped it before, or None."""
        curve = CurveTable(self.folder / curves.TRAINING, self.begun_at)
        judged = CurveTable(self.folder / curves.HELD_OUT, self.begun_at)
        recorder = Recorder(self.settings, self.phases, curve, board, self.progress)
        for phase in self.phases:
            while self.checkpoint.step < phase.end:
                done = self.checkpoint.step
                self._judge(task, phase, judged, board)
                self._make_metrics(task, phase)
                stretch = self.settings.evaluate_every * self.parts
                until = min((done // stretch + 1) * stretch, phase.end)
                recorder.phase, recorder.done = phase, done
                task.fit(
                    phase.batches_from(done),
                    steps_per_epoch=until - done,
                    verbose=0,
                    callbacks=[recorder, self.checkpoint],
                )
                if self.stop.received is not None:
                    return self.stop.received
        self._judge(task, self.phases[-1], judged, board)
        return None

    def _make_metrics(self, task, phase):
        """Lets TensorFlow make the metrics, where their sums are to be brought back.

        Elsewhere `fit` makes them before its first batch.
        """
        saved = self.checkpoint.saved
        if keras.backend.backend() != "tensorflow" or saved is None:
            return
        if self.checkpoint.step == saved.step:
            task.evaluate(phase.batches_from(saved.step), steps=1, verbose=0)

    def _judge(self, task, phase, table, board):
        """Evaluates on held-out instances, where that is due and not done."""
        batches, parts = self.checkpoint.step, self.parts
        step = batches // parts
        due = step % self.settings.evaluate_every == 0 or batches == self.total
        if phase.held_out is None or table.has(step) or batches % parts or not due:
            return
        scores = task.evaluate(
            phase.held_out, steps=phase.held_out_steps, verbose=0, return_dict=True
        )
        table.add({"step": step, "sequence_length": phase.sequence_length, **scores})
        told = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
        self.tell(f"Held out, after step {step:,}: {told}.")
        if board is not None:
            for name, value in scores.items():
                board.add_scalar(f"held_out/{name}", value, step)

    def _judge_downstream(self, when, preset):
        """Fine-tunes a preset, where that is due and not done; tells the score."""
        if self.settings.downstream is None:
            return
        path = self.folder / DOWNSTREAM
        scores = json.loads(path.read_text("utf-8")) if path.exists() else {}
        if when not in scores:
            seed = self.settings.seed
            scores[when] = downstream.score(self.settings.downstream, preset, seed)
            content = json.dumps(scores, indent=2)
            replace_file(path, lambda temporary: _write(temporary, content))
        self.tell(
            f"{self.settings.downstream.data.name}, {when}: accuracy "
            f"{scores[when]:.4f}."
        )

    def _finish(self, preset):
        """Tells what came out, and draws it."""
        rows = curves.read_rows(self.folder / curves.HELD_OUT)
        for name in rows[0] if rows else ():
            if name not in ("step", "sequence_length"):
                before, after = rows[0][name], rows[-1][name]
                self.tell(f"Held out, {name}: {before:.4f} before, {after:.4f} after.")
        if self.settings.downstream is not None:
            self._judge_downstream("before", self.settings.init_from)
            self._judge_downstream("after", preset)
        picture = curves.draw(self.folder)
        if picture is None:
            self.tell("No picture of the curves: matplotlib is not installed.")
        self.tell(f"Wrote {preset}.")

    @contextlib.contextmanager
    def _board(self) -> Iterator:
        """Gives a writer for TensorBoard, or None, and closes it."""
        if not self.settings.tensorboard:
            yield None
            return
        folder = self.folder / curves.TENSORBOARD
        board = curves.open_tensorboard(folder, self.begun_at)
        try:
            yield board
        finally:
            board.close()


def _identity(settings: RunSettings, phases: list[PhaseData]) -> dict:
    """Returns all that decides what a run learns, as JSON gives it back."""
    told = dataclasses.asdict(settings)
    kept = {key: value for key, value in told.items() if key not in _FREE}
    kept["phases"] = [[phase.begin, phase.end, phase.digest] for phase in phases]
    return json.loads(json.dumps(kept))


def _check_same(checkpoint: TrainingCheckpoint, identity: dict, folder: Path) -> None:
    """Refuses to go on with other settings than a run began with."""
    if checkpoint.saved is None:
        return
    begun = checkpoint.saved.facts["more"]
    differing = {
        key: f"{begun.get(key)!r} became {identity.get(key)!r}"
        for key in sorted({*begun, *identity})
        if begun.get(key) != identity.get(key)
    }
    if differing:
        told = "; ".join(f"{key}: {change}" for key, change in differing.items())
        raise ValueError(
            f"A run goes on with the settings that it began with. Received: {told}. "
            f"Set them back, or name another output than {folder}."
        )


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
