"""What every command shares: where words go, how errors read, which backend runs."""

import enum
import functools
import importlib.util
import json
import os
import pathlib
import sys
import warnings
from collections.abc import Callable

import rich.console
import rich.text
import typer

BAD_INPUT = 2
"""Exit status where the user's input, not kbert, is the reason."""


class Backend(enum.StrEnum):
    """The backends of Keras that kbert runs on."""

    tensorflow = "tensorflow"
    jax = "jax"
    torch = "torch"


def out() -> rich.console.Console:
    """Answers go here."""
    return rich.console.Console(soft_wrap=True, highlight=False)


def tell(line: str, style: str = "") -> None:
    """Say a line about the work, beside the answers: on standard error."""
    text = rich.text.Text(line, style)
    rich.console.Console(stderr=True, soft_wrap=True).print(text, highlight=False)


def one_line_errors(command: Callable) -> Callable:
    """Turn an error about the user's input into one line and exit status 2."""

    @functools.wraps(command)
    def careful(*args, **kwargs):
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _tell_warning
                return command(*args, **kwargs)
        except BrokenPipeError:
            raise  # the reader of a pipe has enough, which click ends quietly
        except (ValueError, OSError, ImportError) as error:
            tell("Error: " + " ".join(str(error).splitlines()), style="red")
            raise typer.Exit(BAD_INPUT) from None

    return careful


def _tell_warning(message, *_args, **_kwargs) -> None:
    """Replaces `warnings.showwarning`, whose lines name files of the source."""
    tell("Note: " + " ".join(str(message).splitlines()), style="yellow")


def use_backend(backend: Backend | None) -> None:
    """Set the backend that Keras will run on; call it before Keras is imported.

    The user's choice is this argument, else KERAS_BACKEND, else what keras.json says if
    that is installed; else it is the first that is installed.

    Raises:
        ValueError: it is not installed, or Keras runs on another one already.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    loaded = sys.modules.get("keras")
    if loaded is not None:
        running = loaded.config.backend()
        if backend is not None and backend != running:
            raise ValueError(
                "--backend must be the backend that Keras runs on in this process. "
                f"Received: {backend}, while Keras runs on {running}."
            )
        return
    wanted = backend or os.environ.get("KERAS_BACKEND")
    installed = [name for name in Backend if importlib.util.find_spec(name)]
    if wanted and wanted not in installed:
        raise ValueError(
            f"The backend must be one that is installed: {_names(installed)}. "
            f"Received: {wanted}. To install it: pip install 'keras-kbert[{wanted}]'."
        )
    if not installed:
        raise ValueError(
            "A backend must be installed. Received: none of tensorflow, jax and torch. "
            "To install one: pip install 'keras-kbert[tensorflow]'."
        )
    if not wanted and _configured() not in installed:
        wanted = installed[0]
    if wanted:
        os.environ["KERAS_BACKEND"] = wanted


def _configured() -> str:
    """The backend in Keras's own file, which Keras writes at its first import."""
    home = os.environ.get("KERAS_HOME") or pathlib.Path.home() / ".keras"
    try:
        file = (pathlib.Path(home) / "keras.json").read_text(encoding="utf-8")
        return json.loads(file).get("backend", "")
    except (OSError, ValueError):
        return ""


def _names(backends: list[Backend]) -> str:
    return " or ".join(backends) or "none is"


def check_output(path: pathlib.Path | None, overwrite: bool) -> None:
    """Refuse to write over what is there, before any work is done.

    Raises:
        ValueError: something is there, and the user has not allowed to replace it.
    """
    if path is None:
        return
    empty_folder = path.is_dir() and not any(path.iterdir())
    if path.exists() and not empty_folder and not overwrite:
        raise ValueError(
            f"The output must be new, or --overwrite be passed. Received: {path}, "
            "which exists."
        )
