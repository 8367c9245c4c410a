"""The README's map shows every file, and its links lead somewhere."""

import importlib.util
import re

import pytest

from tests.conftest import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def readme_map():
    path = PROJECT / "scripts" / "readme_map.py"
    spec = importlib.util.spec_from_file_location("readme_map", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_map_is_as_made(readme_map):
    shown = README.split(readme_map.START)[1].split(readme_map.END)[0]
    assert shown == readme_map.make_map(), "run `make map`"


def test_every_file_is_told_in_a_line(readme_map):
    for name in readme_map.SHOWN:
        for path in (PROJECT / name).rglob("*.py"):
            if path.name == "__init__.py" or "tests" in path.parts[-3:-1]:
                continue
            assert readme_map.first_line(path), f"{path} has no docstring"


def test_map_shows_a_new_file(readme_map, tmp_path):
    for name in readme_map.SHOWN:
        (tmp_path / name).mkdir()
    (tmp_path / "kbert" / "layers").mkdir()
    (tmp_path / "kbert" / "layers" / "heads.py").write_text('"""The heads."""\n')
    shown = readme_map.make_map(tmp_path).split("\n")
    assert [line.split(maxsplit=1) for line in shown[1:3]] == [
        ["layers/"],
        ["heads.py", "The heads"],
    ]


def test_other_files_exist(readme_map):
    for name in readme_map.OTHERS:
        assert (PROJECT / name.split("<")[0]).exists(), name


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (PROJECT / target).exists(), target


def test_commands_are_those_of_the_makefile():
    targets = re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.M)
    for command in re.findall(r"make ([a-z-]+)", README):
        assert command in targets or command.startswith("test-"), command
