"""Write the README's map of the files from the first line of every docstring.

`python scripts/readme_map.py` rewrites the block between the two marks in README.md. A
folder's line is the docstring of its `__init__.py`, or stands below.
"""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
START, END = "<!-- files: made by `make map` -->\n```\n", "```\n<!-- /files -->"
SHOWN = ("kbert", "kbert_cli", "scripts", "benchmarks", "examples", "tests")
WIDTH = 30

# What has no docstring of its own, in the order of the map.
FOLDERS = {
    "kbert": "the library; a module imports only from the rows above its own",
    "kbert_cli": "the command `kbert`, beside the library to choose the backend first",
    "scripts": "what makes the files that are not written by hand, and runs the suites",
    "benchmarks": "one command for each claim of speed or score",
    "examples": "a folder and one script for each job",
    "tests": "mirrors kbert/, a folder a room and a file a module",
}
OTHERS = {
    "presets/<name>/": "a model's config.json, tokenizer_config.json and kbert.json",
    "presets/vocabularies/": "the four vocabularies of Google's release",
    "requirements/": "data and weights by hash, and the versions of peers",
    "pyproject.toml": "the distribution, its extras, and the settings of every tool",
    "constraints.txt": "the versions that kbert is tested with",
    "Makefile": "every command: demo, test, bench, lint",
    ".ci/run": "what a change must pass",
    ".pre-commit-config.yaml": "the hooks, all local",
    "CONTRIBUTING.md": "the house style, running tests, adding a task or a preset",
    "CHANGELOG.md": "what changed in which release",
    "LICENSE": "Apache-2.0",
    "NOTICE": "where the vocabularies and architectures come from",
}


def first_line(path: pathlib.Path) -> str:
    """The first line of a module's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].removesuffix(".")


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The entries of a folder that the map shows, modules before folders."""
    shown = [
        path
        for path in folder.iterdir()
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
    ]
    shown = [path for path in shown if path.name[0] not in "._" or path.suffix == ".py"]
    return sorted(shown, key=lambda path: (path.is_dir(), path.name))


def line(name: str, depth: int, told: str) -> str:
    return f"{'  ' * depth + name:{WIDTH}}  {told}".rstrip() + "\n"


def branch(folder: pathlib.Path, depth: int = 1) -> str:
    """The lines of a folder's content; of the rooms in tests/ the names alone."""
    text = ""
    for path in files(folder):
        if path.is_dir():
            init = path / "__init__.py"
            text += line(
                f"{path.name}/", depth, first_line(init) if init.exists() else ""
            )
            if folder.name != "tests":
                text += branch(path, depth + 1)
        elif path.name != "__init__.py" or folder.name == "kbert":
            text += line(path.name, depth, first_line(path))
    return text


def make_map(root: pathlib.Path = ROOT) -> str:
    """The whole map, without the marks."""
    text = ""
    for name in SHOWN:
        text += line(f"{name}/", 0, FOLDERS[name]) + branch(root / name)
    return text + "".join(line(name, 0, told) for name, told in OTHERS.items())


def main() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(START)
    after = rest[rest.index(END) :]
    readme.write_text(before + START + make_map() + after, encoding="utf-8")


if __name__ == "__main__":
    main()
