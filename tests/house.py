"""The rules of the house as data, and the imports of a package as facts."""

import ast
import dataclasses
import doctest
import io
import pathlib
import sys
import types
from collections.abc import Iterator

import keras
import numpy as np

import kbert

PACKAGE = pathlib.Path(kbert.__file__).resolve().parent

# A module imports from its own room and from lower rows. The first has number 0. The
# commands, kbert_cli, lie beside the package: nothing in it imports them.
ROWS = (
    {
        "files",
        "archives",
        "bundles",
        "google_release",
        "keras_hub_folder",
        "stale_files",
        "strict_json",
    },
    {"hubs", "metadata_schema"},
    {"config", "presets", "data", "metrics"},
    {"tokenization"},
    {"preprocessing", "checkpoints"},
    {"layers", "training"},
    {"backbone", "export"},
    {"tasks"},
    {"convert", "pretraining"},
)
ROOT = "__init__"


# Other people's packages.
WITHOUT_KERAS = ROWS[0] | ROWS[1] | ROWS[2] | ROWS[3]
EAGER = {"keras", "numpy", "h5py", "safetensors"}
LAZY = {
    "apache_beam",
    "datasets",
    "huggingface_hub",
    "kagglehub",
    "matplotlib",
    "msgpack",
    "onnx",
    "onnxruntime",
    "pandas",
    "pyarrow",
    "sentencex",
    "seqeval",
    "sklearn",
    "tensorflow",
    "tensorboardX",
    "tensorflow_text",
    "tokenizers",
    "yaml",
    "zstandard",
}
NEVER = {"jax", "torch", "keras_hub", "keras_nlp", "keras.src"}
MAY_IMPORT_TENSORFLOW = (
    "kbert.tokenization.in_graph",
    "kbert.preprocessing.graph_packing",
    "kbert.preprocessing.tf_batches",
    "kbert.layers._backend",
    "kbert.training.adamw_update",
    "kbert.training.distribution",
    "kbert.training.randomness",
    "kbert.checkpoints.google",
    "kbert.export",
    "kbert.pretraining.tfrecords",
)
# For a kernel, for processes that train together, and for the files of its own format.
MAY_IMPORT_TORCH = (
    "kbert.layers._backend",
    "kbert.training.adamw_update",
    "kbert.training.distribution",
    "kbert.training.randomness",
    "kbert.checkpoints.pickled",
)


def needs_tensorflow(module: str) -> bool:
    """Is this one of the modules that may import TensorFlow?"""
    return any(f"{module}.".startswith(f"{name}.") for name in MAY_IMPORT_TENSORFLOW)


def sources(package: pathlib.Path = PACKAGE) -> dict[str, pathlib.Path]:
    """Every module of a package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def room_of(module: str) -> str:
    """The room that a module of kbert lies in: `kbert.layers.heads` in `layers`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ROOT


def run_examples(module: types.ModuleType) -> None:
    """Run the examples in a module's docstrings; fail with what differs.

    An example finds `kbert`, `keras` and `np` imported.
    """
    told = io.StringIO()
    names = {"kbert": kbert, "keras": keras, "np": np}
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=options)
    for test in doctest.DocTestFinder(exclude_empty=True).find(
        module, extraglobs=names
    ):
        runner.run(test, out=told.write)
    assert runner.failures == 0, told.getvalue()


@dataclasses.dataclass(frozen=True)
class Import:
    """One import: who, what, on which line, and whether it waits for a call."""

    importer: str
    target: str
    line: int
    lazy: bool


def imports(package: pathlib.Path = PACKAGE) -> list[Import]:
    """All imports in a package, also those inside of functions."""
    modules = sources(package)
    found = []
    for importer, path in modules.items():
        is_package = path.name == "__init__.py"
        for node, lazy in _walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in _targets(node, importer, is_package, modules):
                found.append(Import(importer, target, node.lineno, lazy))
    return found


def _walk(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it runs only when something is called or checked."""
    for child in ast.iter_child_nodes(node):
        inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        inside = inside or isinstance(child, ast.Lambda) or _is_for_checkers(child)
        yield child, inside
        yield from _walk(child, inside)


def _is_for_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _targets(node, importer, is_package, modules) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = importer.split(".")
            keep = len(parts) - node.level + is_package
            base = ".".join([*parts[:keep], *base.split(".")]).rstrip(".")
        for alias in node.names:
            full = f"{base}.{alias.name}"
            is_module = full in {*modules, *NEVER} or _row(alias.name) is not None
            yield full if is_module else base
    elif isinstance(node, ast.Call) and node.args:
        name = ast.unparse(node.func).split(".")[-1]
        first = node.args[0]
        if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
            yield str(first.value)
    elif isinstance(node, ast.Attribute) and ast.unparse(node) == "keras.src":
        yield "keras.src"


def violations(package: pathlib.Path = PACKAGE) -> list[str]:
    """What breaks the rules, one line each."""
    told = []
    for found in imports(package):
        own = found.target.split(".")[0] == package.name
        problem = _own_problem(found) if own else _foreign_problem(found)
        if problem:
            place = f"{found.importer}, line {found.line}"
            told.append(f"{place}, imports {found.target}: {problem}")
    return told


def _row(room: str) -> int | None:
    return next((i for i, row in enumerate(ROWS) if room in row), None)


def _own_problem(found: Import) -> str | None:
    importer, target = room_of(found.importer), room_of(found.target)
    if importer == ROOT:
        return None
    if importer == target:
        return None
    if _row(importer) is None:
        return f"{importer} stands in no row"
    if target == ROOT:
        return "only the commands import kbert as a whole"
    if _row(target) is None:
        return f"{target} stands in no row"
    if _row(target) >= _row(importer):
        return f"row {_row(importer)} may not import from row {_row(target)}"
    return None


def _foreign_problem(found: Import) -> str | None:
    importer, top = room_of(found.importer), found.target.split(".")[0]
    if top == "torch" and found.importer in MAY_IMPORT_TORCH and found.lazy:
        return None
    if any(f"{found.target}.".startswith(f"{name}.") for name in NEVER):
        return "kbert imports it nowhere"
    if top in sys.stdlib_module_names:
        return None
    if top.startswith("tensorflow") and not needs_tensorflow(found.importer):
        return f"only these may: {', '.join(MAY_IMPORT_TENSORFLOW)}"
    if top == "keras" and importer in WITHOUT_KERAS:
        return "rows 0 to 3 do without Keras"
    if top in EAGER:
        return None
    if top not in LAZY:
        return "it is not among the packages that kbert uses"
    return None if found.lazy else "only inside of a function"
