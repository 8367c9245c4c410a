"""The bars of the house style that can be counted."""

import ast
import re

import pytest

from tests import house
from tests.conftest import PROJECT

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 60
LINES_OF_A_SCREEN = 60
NAMES = (["__all__"], ["__version__"])
FOLDERS = ("kbert", "kbert_cli", "scripts", "benchmarks", "examples", "tests")
FILES = {
    str(path.relative_to(PROJECT)): path
    for folder in FOLDERS
    for path in sorted((PROJECT / folder).rglob("*.py"))
}


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def long_functions(module: ast.Module) -> list[str]:
    """The functions over the limit, their docstrings not counted."""
    told = []
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node):
                lines -= node.body[0].end_lineno - node.body[0].lineno + 1
            if lines > LINES_OF_A_FUNCTION:
                told.append(f"{node.name}: {lines} lines")
    return told


def broad_handlers(module: ast.Module) -> list[int]:
    """The lines where everything is caught."""
    return [
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or re.search(r"\b(Base)?Exception\b", ast.unparse(node.type))
        )
    ]


@pytest.mark.parametrize("name", FILES)
def test_file_is_short_and_so_are_its_functions(name):
    lines = FILES[name].read_text(encoding="utf-8").count("\n")
    assert lines <= LINES_OF_A_FILE
    assert long_functions(tree(FILES[name])) == []


def test_long_function_is_found():
    docstring = '    """' + "\n" * 60 + '    """\n'
    for lines, expected in ((59, []), (60, ["f: 61 lines"])):
        source = "def f():\n" + docstring + "    x = 1\n" * lines
        assert long_functions(ast.parse(source)) == expected


def test_nothing_catches_everything():
    found = {
        name: broad_handlers(tree(path))
        for name, path in FILES.items()
        if name.startswith("kbert") and broad_handlers(tree(path))
    }
    assert found == {}


@pytest.mark.parametrize("caught", ["", " Exception", " (OSError, BaseException) as e"])
def test_broad_handler_is_found(caught):
    source = f"try:\n    pass\nexcept{caught}:\n    pass\n"
    assert broad_handlers(ast.parse(source)) == [3]


def test_no_file_of_odds_and_ends():
    assert [
        name for name in FILES if re.search(r"(utils?|helpers?|misc)\.py", name)
    ] == []


def test_public_names_fit_a_screen_without_code():
    path = house.sources()["kbert"]
    assert path.read_text(encoding="utf-8").count("\n") <= LINES_OF_A_SCREEN
    docstring, *rest = tree(path).body
    assert isinstance(docstring, ast.Expr)
    for node in rest:
        names = [ast.unparse(name) for name in getattr(node, "targets", [])]
        assert isinstance(node, ast.ImportFrom | ast.Import) or names in NAMES


def test_tests_mirror_kbert():
    rooms = {path.stem for path in house.PACKAGE.iterdir()}
    allowed = rooms | {"goldens", "safety", "examples", "benchmarks", "scripts"}
    folders = {path.name for path in (PROJECT / "tests").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} <= allowed
