"""Files of the Hugging Face Hub, through huggingface_hub and in its cache.

Its variables mean what they mean everywhere: HF_HOME and HF_HUB_CACHE say where files
are kept, HF_TOKEN who asks, HF_ENDPOINT whom, and HF_HUB_OFFLINE=1 that nobody is
asked.
"""

import contextlib
import hashlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.files import sha256
from kbert.hubs.handles import Handle
from kbert.hubs.selection import CONFIGS, Snapshot, check_size, not_cached

LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"
_SECONDS = 10.0  # to wait for an answer about a repository
_OFFLINE = "HF_HUB_OFFLINE is set, so that the Hugging Face Hub is not asked."


def find(handle: Handle, network: bool) -> Snapshot:
    """Returns what a repository holds; of its files, the configuration is fetched.

    Where the Hub cannot be reached, what the cache has of the same revision is used,
    which is told in a warning unless HF_HUB_OFFLINE asks for it.

    Args:
        handle: of the repository.
        network: False for the cache alone.

    Raises:
        ConnectionError: if the Hub cannot be reached, and the cache lacks it.
        FileNotFoundError: if there is no such repository or revision, or `network` is
            False and the cache lacks it.
        PermissionError: if the Hub does not let the user read it.
        ValueError: if it is no repository of a BERT.
    """
    if not network:
        return _in_cache(handle, "")
    try:
        asked = _ask(handle, handle.revision)
    except ConnectionError as error:
        return _in_cache(handle, str(error))
    name = next((name for name in CONFIGS if name in asked.sizes), None)
    if name is None:
        raise ValueError(
            f"{handle.spec} must hold a BERT, with a file {' or '.join(CONFIGS)}. "
            f"Received: {sorted(asked.sizes)[:20]}."
        )
    check_size(handle.spec, asked, name)
    folder = _download(handle, name, handle.revision).parent
    if folder.name != asked.revision:  # the branch has moved in between
        asked = _ask(handle, folder.name)
    return Snapshot(folder, asked.revision, asked.sizes, asked.hashes)


def fetch(handle: Handle, snapshot: Snapshot, name: str, network: bool) -> Path | None:
    """Returns the path of a file of a snapshot, None where there is none.

    It is fetched where it is missing. The Hub's hash of it is compared each time; a
    file that differs is removed, so that the next attempt fetches it anew.

    Raises:
        ConnectionError, FileNotFoundError, PermissionError: as `find`.
        ValueError: if it is too large, or its content is not what the Hub lists.
    """
    import huggingface_hub

    cached = huggingface_hub.try_to_load_from_cache(
        handle.repository, name, revision=snapshot.revision
    )
    if isinstance(cached, str):
        path = Path(cached)
    elif cached is not None:
        return None  # the cache notes what a commit lacks
    elif snapshot.offline or not network:
        raise not_cached(handle.spec, name, snapshot)
    else:
        check_size(handle.spec, snapshot, name)
        try:
            path = _download(handle, name, snapshot.revision)
        except FileNotFoundError:
            return None
    _check_content(handle, path, snapshot.hashes.get(name))
    return path


def _ask(handle: Handle, revision: str | None) -> Snapshot:
    """Asks the Hub for the commit, and for the sizes and hashes of its files."""
    with errors_told(handle.spec, handle.repository, handle.revision):
        info = hub().model_info(
            handle.repository, revision=revision, files_metadata=True, timeout=_SECONDS
        )
    files = info.siblings or []
    hashes = {
        each.rfilename: each.lfs.sha256 if each.lfs else each.blob_id for each in files
    }
    return Snapshot(
        Path(),
        str(info.sha),
        {each.rfilename: each.size for each in files},
        {name: value for name, value in hashes.items() if value},
    )


def _in_cache(handle: Handle, offline: str) -> Snapshot:
    """Returns what the cache has of a revision."""
    for name in CONFIGS:
        with contextlib.suppress(FileNotFoundError):
            folder = _download(handle, name, handle.revision, cached=True).parent
            break
    else:
        if offline:
            raise ConnectionError(f"{offline} {handle.spec} is not in the cache.")
        raise FileNotFoundError(
            f"`load_weights=False` never uses the network, and {handle.spec} is not in "
            f"the cache. Fetch it before: kbert.BertTokenizer.from_preset("
            f"{handle.spec!r}) fetches all but the weights."
        )
    if offline and offline != _OFFLINE:
        warnings.warn(
            f"{offline} {handle.spec} is used as it is in the cache: {folder}.",
            stacklevel=2,
        )
    paths = [path for path in folder.rglob("*") if path.is_file()]
    sizes = {p.relative_to(folder).as_posix(): p.stat().st_size for p in paths}
    return Snapshot(folder, folder.name, sizes, offline=offline)


def _download(
    handle: Handle, name: str, revision: str | None, cached: bool = False
) -> Path:
    """Returns the path of a file in the cache, where it is put whole or not at all.

    Raises:
        FileNotFoundError: if the repository lacks it, or, of `cached`, the cache.
    """
    with errors_told(handle.spec, handle.repository, handle.revision):
        path = hub().hf_hub_download(
            handle.repository, name, revision=revision, local_files_only=cached
        )
    return Path(str(path))


def _check_content(handle: Handle, path: Path, expected: str | None) -> None:
    """Compares a file with the Hub's hash, by which the cache calls it as well."""
    stored = path.parent / os.readlink(path) if path.is_symlink() else path
    expected = expected or stored.name
    if re.fullmatch("[0-9a-f]{64}", expected):
        actual = sha256(path)
    elif re.fullmatch("[0-9a-f]{40}", expected):
        actual = _git_hash(path)
    else:
        return  # a mirror of the Hub that names files by no hash
    if actual != expected:
        for each in (path.resolve(), stored, path):
            each.unlink(missing_ok=True)
        raise ValueError(
            f"{path.name!r} of {handle.spec} has arrived damaged, or was damaged in "
            f"the cache: its hash must be {expected}. Received: {actual}. It was "
            "removed; load the preset again to fetch it anew."
        )


def hub() -> Any:
    """Returns the Hub, as the environment describes it."""
    import huggingface_hub

    return huggingface_hub.HfApi(library_name="kbert")


@contextlib.contextmanager
def errors_told(spec: str, repository: str, revision: str | None) -> Iterator[None]:
    """Turns errors of huggingface_hub into sentences that say what to do.

    Args:
        spec: what the user asked for.
        repository: the name of the repository.
        revision: which of it.
    """
    from huggingface_hub import errors

    # The base of its HTTP library's errors; it has changed that library twice.
    http_error: Any = errors.HfHubHTTPError.__bases__[0]
    where = f"{hub().endpoint}/{repository}"
    try:
        yield
    except errors.GatedRepoError as error:
        raise PermissionError(
            f"{spec} must be granted to you by its owners. Ask for it at {where}, then "
            f"{LOG_IN}, and load it again."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"{spec} must be a repository that exists and that you may read. Received: "
            f"{where}. Check the spelling; if it is private, {LOG_IN}."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(
            f"A revision must be a branch, tag or commit of {where}. Received: "
            f"{revision!r} of {spec}."
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise ConnectionError(_OFFLINE) from error
    except errors.LocalEntryNotFoundError as error:
        if error.__cause__ is None:  # the cache alone was asked
            raise
        raise ConnectionError(_unreachable(where, error.__cause__)) from error
    except errors.EntryNotFoundError as error:
        raise FileNotFoundError(f"{spec} lacks a file: {error}") from error
    except errors.HfHubHTTPError as error:
        raise _refusal(spec, error.response.status_code, str(error)) from error
    except (http_error, OSError) as error:
        if getattr(error, "errno", None) is not None and not isinstance(
            error, ConnectionError
        ):
            raise  # of the disk
        raise ConnectionError(_unreachable(where, error)) from error


def _unreachable(where: str, error: BaseException) -> str:
    told = " ".join(str(error).split())[:300]
    return f"{where} cannot be reached ({type(error).__name__}: {told})."


def _refusal(spec: str, status: int, told: str) -> OSError:
    """Returns the error for an answer that is none of the usual ones."""
    told = " ".join(told.split())[:300]
    if status in (401, 403):
        return PermissionError(
            f"The Hugging Face Hub refuses {spec} ({status}); {LOG_IN}, with a token "
            f"that is valid and may do it. It says: {told}."
        )
    if status >= 500 or status == 429:
        return ConnectionError(f"The Hugging Face Hub does not answer ({told}).")
    return OSError(f"The Hugging Face Hub answers {status} about {spec}: {told}.")


def _git_hash(path: Path) -> str:
    """Returns git's hash of a file: that of a blob."""
    content = path.read_bytes()
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
