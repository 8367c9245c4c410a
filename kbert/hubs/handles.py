"""What `hf://…` and `kaggle://…` name."""

import dataclasses
import re

_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}\w)?"
_FORMS = {
    "hf": (
        re.compile(rf"hf://(?P<repository>{_PART}/{_PART})(?:@(?P<revision>.+))?"),
        "hf://organisation/name, with @ and a branch, tag or commit where wanted",
    ),
    "kaggle": (
        re.compile(
            rf"kaggle://(?P<repository>{_PART}(?:/{_PART}){{3}})"
            r"(?:/(?P<revision>[1-9]\d{0,8}))?"
        ),
        "kaggle://owner/model/framework/variation, with / and a version where wanted",
    ),
}
_REVISION = re.compile(r"\w(?:[\w./-]{0,200}\w)?")


@dataclasses.dataclass(frozen=True)
class Handle:
    """The name of a repository of a hub.

    Args:
        spec: as the user wrote it.
        hub: "hf" or "kaggle".
        repository: what the hub calls it.
        revision: the branch, tag, commit or version; None for the newest.
    """

    spec: str
    hub: str
    repository: str
    revision: str | None


def is_handle(spec: str) -> bool:
    """Returns whether a preset's name is that of something elsewhere.

    Example:
    >>> is_handle("hf://google-bert/bert-base-uncased"), is_handle("C:/models/bert")
    (True, False)
    """
    return re.match("[a-z0-9+.-]+://", spec) is not None


def parse(spec: str) -> Handle:
    """Returns what a handle names.

    Raises:
        ValueError: if it has none of the two forms.

    Example:
    >>> parse("hf://google-bert/bert-base-uncased@main").revision
    'main'
    """
    hub = spec.partition("://")[0]
    if hub not in _FORMS:
        raise ValueError(
            "A preset elsewhere must begin with hf:// or kaggle://. "
            f"Received: {spec!r}."
        )
    pattern, form = _FORMS[hub]
    found = pattern.fullmatch(spec)
    revision = found and found["revision"]
    if not found or "--" in found["repository"] or not _is_revision(revision):
        raise ValueError(
            f"A preset there must be written as {form}. Received: {spec!r}."
        )
    return Handle(spec, hub, found["repository"], revision)


def at_revision(handle: Handle, revision: str) -> Handle:
    """Returns the handle of another revision.

    Raises:
        ValueError: if there can be none of that name.
    """
    if not _is_revision(revision):
        raise ValueError(
            f"{handle.spec} must be locked to a revision. Received: {revision[:200]!r}."
        )
    return dataclasses.replace(handle, revision=revision)


def check_repository(name: str) -> None:
    """Refuses what is no name of a repository of the Hugging Face Hub.

    Raises:
        ValueError: naming it.
    """
    if (
        not isinstance(name, str)
        or "--" in name
        or not re.fullmatch(f"{_PART}/{_PART}", name)
    ):
        raise ValueError(
            "A repository must be named as 'organisation/name', yours or that of an "
            f"organisation which you may write to. Received: {name!r}."
        )


def _is_revision(revision: str | None) -> bool:
    """Whether it may be a branch, tag, commit or version: no path that climbs."""
    return revision is None or (
        _REVISION.fullmatch(revision) is not None and ".." not in revision
    )
