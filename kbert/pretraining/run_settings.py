"""What a run of pre-training is to do, read from a file; the defaults are the paper's.

Devlin et al. 2018, section 3 and appendix A.2, and google-research/bert where the paper
does not say: 1,000,000 steps of 256 instances, nine tenths of them at length 128.
"""

import dataclasses
import difflib
import math
import re
import tomllib
from pathlib import Path

from kbert.config import BertConfig

OPTIMIZERS = ("adamw", "lamb")
PRECISIONS = ("float32", "mixed_bfloat16")
ROWS = ("single", "packed")

# Peaks of the learning rate: of the paper, and of google-research/bert's README for
# going on from a model that there is.
LEARNING_RATE, CONTINUED_LEARNING_RATE = 1e-4, 2e-5
# Of the steps in the first of two phases.
FIRST_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of the steps, on instances of its own.

    Args:
        instances: folder that `kbert instances` wrote.
        held_out: folder of instances to judge by, from other documents; or None.
        share: of the steps, above 0; None for 0.9 in the first of two phases, 0.1 in
            the second, and equal shares in more.

    Raises:
        ValueError: if the share is not positive.
    """

    instances: Path
    held_out: Path | None = None
    share: float | None = None

    def __post_init__(self):
        """Checks the share."""
        if self.share is not None:
            told = "above 0, and at most 1e6"
            _check(self, "share", float, lambda value: 0 < value <= 1e6, told)


@dataclasses.dataclass(frozen=True)
class Downstream:
    """A task to fine-tune on, before and after, to see what pre-training gives.

    Args:
        data: table with a header: .csv, .tsv or .jsonl.
        text: column of the texts.
        label: column of the labels.
        second: column of the second texts, for pairs; or None.
        epochs: of fine-tuning.
        learning_rate: its peak.
        test_share: of the rows, held out to judge by.

    Raises:
        ValueError: if a number is out of range.
    """

    data: Path
    text: str
    label: str
    second: str | None = None
    epochs: int = 3
    learning_rate: float = 5e-5
    test_share: float = 0.2

    def __post_init__(self):
        """Checks the numbers."""
        _check(self, "epochs", int, lambda value: value >= 1, "an integer, at least 1")
        _check(self, "learning_rate", float, lambda value: value > 0, "above 0")
        _check(self, "test_share", float, lambda value: 0 < value < 1, "in (0, 1)")


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """A whole run.

    Args:
        output: folder of the run: checkpoints, curves, and at the end `preset`.
        phases: one after another.
        architecture: fields of `BertConfig`, for a new model; the vocabulary is that of
            the instances.
        init_from: preset to go on from, instead of a new model; None for a new one.
        grow_vocabulary: whether pieces that the instances' vocabulary has behind those
            of `init_from` are added to it.
        steps: updates of the weights, in all phases.
        batch_size: instances an update.
        accumulation: parts that a batch is computed in, one after another, for less
            memory. Each part's losses are means of their own.
        optimizer: "adamw" or "lamb".
        learning_rate: peak; None for 1e-4, or 2e-5 with `init_from`.
        warmup_share: of the steps, with a rising rate: 0.01 are the paper's 10,000.
        weight_decay: of kernels and embeddings.
        bias_correction: of the optimizer's moments; Google's code has none.
        precision: dtype policy of the layers, "float32" or "mixed_bfloat16".
        remat: whether to compute activations twice instead of keeping them.
        rows: "single" for one instance a row, "packed" for several where they fit.
        seed: of weights, dropout, order and masks.
        deterministic: whether TensorFlow and torch are to compute the same bits each
            time, which may be slower; JAX does anyway.
        log_every: steps of a point of the curve.
        evaluate_every: steps from one evaluation on held-out instances to the next, a
            multiple of `log_every`.
        checkpoint_every: steps from one checkpoint to the next.
        keep_checkpoints: how many.
        tensorboard: whether to write the curves for TensorBoard too.
        downstream: a task to judge by before and after; needs `init_from`.

    Raises:
        ValueError: if a value is out of range, or two do not go together.
    """

    output: Path
    phases: tuple[Phase, ...]
    architecture: BertConfig | None = None
    init_from: str | None = None
    grow_vocabulary: bool = False
    steps: int = 1_000_000
    batch_size: int = 256
    accumulation: int = 1
    optimizer: str = "adamw"
    learning_rate: float | None = None
    warmup_share: float = 0.01
    weight_decay: float = 0.01
    bias_correction: bool = False
    precision: str = "float32"
    remat: bool = False
    rows: str = "single"
    seed: int = 12345
    deterministic: bool = True
    log_every: int = 100
    evaluate_every: int = 10_000
    checkpoint_every: int = 1000
    keep_checkpoints: int = 3
    tensorboard: bool = False
    downstream: Downstream | None = None

    def __post_init__(self):
        """Checks every value that needs no file to be checked."""
        for name in _COUNTS:
            told = "an integer, from 1 to 10^12"
            _check(self, name, int, lambda value: 1 <= value <= 10**12, told)
        _check(self, "seed", int, lambda value: 0 <= value < 2**31, "0 to 2^31 - 1")
        _check(self, "weight_decay", float, lambda value: value >= 0, "at least 0")
        _check(self, "warmup_share", float, lambda value: 0 <= value <= 1, "in [0, 1]")
        for name, allowed in _CHOICES.items():
            _check(self, name, str, allowed.__contains__, f"one of {allowed}")
        for name in _SWITCHES:
            _check(self, name, bool, lambda value: True, "true or false")
        if not isinstance(self.init_from, str | None):
            raise ValueError(
                f"`init_from` must name a preset. Received: {self.init_from!r}."
            )
        if self.learning_rate is not None:
            _check(self, "learning_rate", float, lambda value: value > 0, "above 0")
        self._check_together()

    def _check_together(self):
        if not self.phases:
            raise ValueError(
                "There must be at least one phase: [[phases]] with instances = "
                f"'FOLDER'. Received: phases={self.phases!r}."
            )
        if self.architecture is not None and self.init_from is not None:
            raise ValueError(
                "A model is new, with an `architecture`, or goes on from `init_from`. "
                f"Received: both, init_from={self.init_from!r}."
            )
        for name in ("grow_vocabulary", "downstream"):
            if getattr(self, name) and self.init_from is None:
                raise ValueError(
                    f"`{name}` goes with `init_from`, the model before. Received: "
                    f"{name}={getattr(self, name)!r} and no init_from."
                )
        if self.batch_size % self.accumulation:
            raise ValueError(
                "`batch_size` must be a multiple of `accumulation`. Received: "
                f"batch_size={self.batch_size}, accumulation={self.accumulation}."
            )
        if self.evaluate_every % self.log_every:
            raise ValueError(
                "`evaluate_every` must be a multiple of `log_every`. Received: "
                f"evaluate_every={self.evaluate_every}, log_every={self.log_every}."
            )
        if min(self.bounds()[0], *self.phase_steps()) < 1:
            raise ValueError(
                "Every phase must have at least one step. Received: "
                f"{self.phase_steps()} steps of {self.steps}."
            )

    @property
    def peak(self) -> float:
        """The peak of the learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        return LEARNING_RATE if self.init_from is None else CONTINUED_LEARNING_RATE

    def bounds(self) -> list[int]:
        """Returns the step at which each phase ends; the last one is `steps`."""
        shares = [phase.share for phase in self.phases]
        if len(shares) == 2 and shares == [None, None]:
            shares = [FIRST_SHARE, 1 - FIRST_SHARE]
        shares = [1.0 if share is None else share for share in shares]
        total, ends = sum(shares), []
        for number in range(len(shares)):
            ends.append(round(self.steps * sum(shares[: number + 1]) / total))
        return ends

    def phase_steps(self) -> list[int]:
        """Returns how many steps each phase has."""
        ends = self.bounds()
        return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


_COUNTS = (
    "steps",
    "batch_size",
    "accumulation",
    "log_every",
    "evaluate_every",
    "checkpoint_every",
    "keep_checkpoints",
)
_CHOICES = {"optimizer": OPTIMIZERS, "precision": PRECISIONS, "rows": ROWS}
_SWITCHES = (
    "grow_vocabulary",
    "bias_correction",
    "remat",
    "deterministic",
    "tensorboard",
)


def read_settings(path: str | Path) -> RunSettings:
    """Reads the settings of a run from a TOML or YAML file.

    Keys are the fields of `RunSettings`; `[[phases]]`, `[architecture]` and
    `[downstream]` are tables. Files and folders are relative to the file's folder; so
    is `init_from`, where such a folder is there.

    Args:
        path: a file whose name ends in .toml, .yaml or .yml.

    Raises:
        FileNotFoundError: if there is no such file.
        ImportError: if it is YAML and PyYAML is not installed.
        ValueError: if it is no such file, has an unknown key or misses one, or a value
            is not what the field takes.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"The settings must be a .toml or .yaml file. Received: {path}, which is "
            "no file."
        )
    content = _parsed(path)
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} must hold keys and values. Received: {type(content).__name__}."
        )
    _check_keys(content, RunSettings, str(path))
    base = path.absolute().parent
    phases = content.get("phases", [])
    if not isinstance(phases, list) or not all(isinstance(p, dict) for p in phases):
        raise ValueError(
            f"{path} must have phases as tables, [[phases]]. Received: {phases!r}."
        )
    for table, kind in (("architecture", BertConfig), ("downstream", Downstream)):
        if table in content:
            values = content[table]
            if not isinstance(values, dict):
                raise ValueError(
                    f"{path} must have {table} as a table, [{table}]. Received: "
                    f"{values!r}."
                )
            of_instances = {"vocabulary_size", "pad_token_id"} & set(values)
            if of_instances:
                raise ValueError(
                    f"The vocabulary is that of the instances: [architecture] of {path}"
                    f" must not have {sorted(of_instances)}. Received: {values!r}."
                )
            content[table] = _made(kind, values, f"[{table}] of {path}", base)
    content["phases"] = tuple(
        _made(Phase, phase, f"[[phases]] of {path}", base) for phase in phases
    )
    start = content.get("init_from")
    if isinstance(start, str) and (base / start).is_dir():
        content["init_from"] = str(base / start)
    return _made(RunSettings, content, str(path), base)


def _parsed(path: Path):
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix in (".yaml", ".yml"):
            return _parsed_yaml(text)
    except ValueError as error:
        raise ValueError(f"{path} must hold settings. Received: {error}.") from error
    raise ValueError(
        f"The settings must be a .toml or .yaml file. Received: {path}, which ends in "
        f"{path.suffix!r}."
    )


def _parsed_yaml(text: str):
    try:
        import yaml  # pyright: ignore[reportMissingModuleSource]
    except ImportError as error:
        raise ImportError(
            "Settings in YAML need the package PyYAML. To install it: pip install "
            "'keras-kbert[pretrain]'. TOML needs nothing."
        ) from error

    class Loader(yaml.SafeLoader):
        """Reads 1e-4 as a number, which YAML 1.1 takes for a string."""

    number = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", number, list("-+.0123456789")
    )
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _check_keys(values: dict, kind, where: str) -> None:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in values:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"{where} may have the keys {sorted(fields)}. Received: {key!r}.{hint}"
            )
    required = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and name not in values
    ]
    if required:
        raise ValueError(f"{where} must have {required}. Received: {sorted(values)}.")


def _made(kind, values: dict, where: str, base: Path):
    """Returns a dataclass of a table, paths made absolute.

    Args:
        kind: the dataclass.
        values: of the table.
        where: what it is called in messages.
        base: folder that paths are relative to.
    """
    _check_keys(values, kind, where)
    values = dict(values)
    for field in dataclasses.fields(kind):
        if field.name in values and "Path" in str(field.type):
            value = values[field.name]
            if not isinstance(value, str | Path) or not str(value):
                raise ValueError(
                    f"{where} must have a path as {field.name}. Received: {value!r}."
                )
            values[field.name] = base / Path(value).expanduser()
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"In {where}: {error}") from error


def _check(settings, name, kind, holds, told):
    value = getattr(settings, name)
    kinds = (int, float) if kind is float else (kind,)
    typed = isinstance(value, kinds) and (kind is bool or not isinstance(value, bool))
    number = "a number " * (kind is float)
    endless = isinstance(value, float) and not math.isfinite(value)
    if not typed or endless or not holds(value):
        raise ValueError(f"`{name}` must be {number}{told}. Received: {value!r}.")
