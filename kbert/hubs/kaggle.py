"""Files of Kaggle's models, through kagglehub and in its cache.

Its variables mean what they mean everywhere: KAGGLEHUB_CACHE says where files are kept,
KAGGLE_API_TOKEN who asks.
"""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert import keras_hub_folder
from kbert.bundles import saved_model_folder
from kbert.hubs.handles import Handle
from kbert.hubs.selection import KERAS_HUB, Snapshot, not_cached

# kagglehub lists no files: these are asked for by name. What a version lacks is noted
# beside its files, as a version never changes.
_CONFIGS = (keras_hub_folder.CONFIG, saved_model_folder.MODEL)
_NAMES = (
    *_CONFIGS,
    keras_hub_folder.TOKENIZER,
    keras_hub_folder.TASK,
    keras_hub_folder.VOCABULARY,
    *KERAS_HUB,
    saved_model_folder.VOCABULARY,
    f"{saved_model_folder.PREFIX}.index",
    f"{saved_model_folder.PREFIX}.data-00000-of-00001",
)
_ABSENT = ".kbert_absent"


def find(handle: Handle, network: bool) -> Snapshot:
    """Returns what a version of a model holds; its configuration is fetched.

    Where Kaggle cannot be reached, the newest version in the cache is used, which is
    told in a warning.

    Args:
        handle: of the model.
        network: False for the cache alone.

    Raises:
        ConnectionError: if Kaggle cannot be reached, and the cache lacks it.
        FileNotFoundError: if there is no such model or version, or `network` is False
            and the cache lacks it.
        ImportError: if kagglehub is not installed.
        PermissionError: if Kaggle does not let the user read it.
    """
    _library()
    cached, offline = _newest_cached(handle), ""
    if cached is not None and handle.revision is not None:
        return _snapshot(cached, "")
    if network:
        try:
            return _snapshot(_download_config(handle).parent, "")
        except ConnectionError as error:
            offline = str(error)
    if cached is None and offline:
        raise ConnectionError(f"{offline} {handle.spec} is not in the cache.")
    if cached is None:
        raise FileNotFoundError(
            f"`load_weights=False` never uses the network, and {handle.spec} is not in "
            f"the cache. Fetch it before: kbert.BertTokenizer.from_preset("
            f"{handle.spec!r}) fetches all but the weights."
        )
    if offline:
        warnings.warn(
            f"{offline} {handle.spec} is used as it is in the cache: {cached}.",
            stacklevel=2,
        )
    return _snapshot(cached, offline)


def fetch(handle: Handle, snapshot: Snapshot, name: str, network: bool) -> Path | None:
    """Returns the path of a file of a version, None where there is none.

    It is fetched where it is missing. kagglehub compares the hash that comes with it,
    and goes on where an earlier attempt was interrupted.

    Raises:
        As `find`.
    """
    absent = snapshot.folder / _ABSENT / name
    if name not in _NAMES or absent.exists():
        return None
    versioned = f"{handle.repository}/{snapshot.revision}"
    if path := _complete(versioned, name):
        return path
    if snapshot.offline or not network:
        raise not_cached(handle.spec, name, snapshot)
    try:
        with _told(handle):
            return Path(_library().model_download(versioned, name))
    except FileNotFoundError:
        absent.parent.mkdir(parents=True, exist_ok=True)
        absent.touch()
        return None


def _download_config(handle: Handle) -> Path:
    """Returns the path of the file that tells whose files a version has."""
    for name in _CONFIGS[:-1]:
        with contextlib.suppress(FileNotFoundError), _told(handle):
            return Path(_library().model_download(_name(handle), name))
    with _told(handle):
        return Path(_library().model_download(_name(handle), _CONFIGS[-1]))


def _snapshot(folder: Path, offline: str) -> Snapshot:
    return Snapshot(folder, folder.name, dict.fromkeys(_NAMES), offline=offline)


def _name(handle: Handle) -> str:
    return "/".join(filter(None, (handle.repository, handle.revision)))


def _library() -> Any:
    """Returns kagglehub, which may log, but not where answers are written."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            import kagglehub
    except ImportError as error:
        raise ImportError(
            "Presets of Kaggle are fetched by kagglehub, which is not installed. Run: "
            "pip install 'keras-kbert[hub]'"
        ) from error
    return kagglehub


def _complete(versioned: str, name: str) -> Path | None:
    """Returns the path of a file that the cache has whole."""
    from kagglehub import cache, handle

    path = cache.Cache().load_from_cache(handle.parse_model_handle(versioned), name)
    return path and Path(path)


def _newest_cached(handle: Handle) -> Path | None:
    """Returns the folder of the version asked for, or of the newest, in the cache."""
    from kagglehub import cache
    from kagglehub.handle import parse_model_handle

    versions = [handle.revision]
    if handle.revision is None:
        parsed = parse_model_handle(f"{handle.repository}/1")
        parent = Path(cache.get_cached_path(parsed)).parent
        numbers = [int(path.name) for path in parent.glob("*") if path.name.isdigit()]
        versions = [str(number) for number in sorted(numbers, reverse=True)]
    for version in versions:
        for name in _CONFIGS:
            if path := _complete(f"{handle.repository}/{version}", name):
                return path.parent
    return None


@contextlib.contextmanager
def _told(handle: Handle) -> Iterator[None]:
    """Turns errors of kagglehub into sentences that say what to do."""
    from kagglehub import exceptions

    where = f"https://www.kaggle.com/models/{_name(handle)}"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except exceptions.KaggleApiHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        if status in (401, 403):
            raise PermissionError(
                f"{handle.spec} must be open to you. Accept its terms at {where}, make "
                "a token at https://www.kaggle.com/settings, and set KAGGLE_API_TOKEN "
                f"to it. Received from Kaggle: {status}."
            ) from error
        if status == 404:
            raise FileNotFoundError(
                f"{handle.spec} must be a BERT in the format of KerasHub, or a "
                f"SavedModel of one, and {where} is none, or does not exist. Check "
                "owner, model, framework, variation and version."
            ) from error
        raise ConnectionError(
            f"Kaggle does not answer about {handle.spec} ({status})."
        ) from error
    except exceptions.DataCorruptionError as error:
        raise ValueError(
            f"A file of {handle.spec} has arrived damaged and was removed; load the "
            f"preset again to fetch it anew. {' '.join(str(error).split())}"
        ) from error
    except OSError as error:
        # requests' errors are OSErrors, those of the disk as well
        if error.errno is not None:
            raise
        raise ConnectionError(
            f"{where} cannot be reached ({type(error).__name__}: {str(error)[:300]})."
        ) from error
