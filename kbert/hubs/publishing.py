"""A preset folder to the Hugging Face Hub, in one commit."""

import warnings
from pathlib import Path

from kbert import stale_files
from kbert.hubs import hugging_face
from kbert.hubs.model_card import model_card
from kbert.strict_json import read_json

CARD = "README.md"


def push(
    folder: Path,
    repository: str,
    private: bool | None = None,
    licence: str | None = None,
    message: str = "Upload a model of kbert's",
) -> str:
    """Uploads a preset that kbert saved; makes the repository where there is none.

    Files of the repository that say the same in another format are deleted in the same
    commit. A README.md that is there stays as it is, which is told in a warning.

    Args:
        folder: of the preset.
        repository: "organisation/name".
        private: whether a new repository is private; None for the organisation's rule.
        licence: for the model card, as `model_card`.
        message: of the commit.

    Returns:
        The address of the commit.

    Raises:
        ConnectionError: if the Hub cannot be reached.
        PermissionError: if nobody is logged in, or may not write there.
        ValueError: if the Hub refuses the content of the card.
    """
    import huggingface_hub

    hub = hugging_face.hub()
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    card = model_card(
        repository,
        read_json(folder / "config.json"),
        read_json(folder / "kbert.json"),
        licence,
    )
    with hugging_face.errors_told(repository, repository, None):
        hub.create_repo(repository, private=private, exist_ok=True)
        present = hub.list_repo_files(repository)
        operations: list = [
            huggingface_hub.CommitOperationAdd(name, path)
            for name, path in files.items()
        ]
        if CARD not in present:
            operations.append(
                huggingface_hub.CommitOperationAdd(CARD, card.encode("utf-8"))
            )
        operations += [
            huggingface_hub.CommitOperationDelete(name, is_folder=False)
            for name in present
            if name not in files and stale_files.is_stale(name, files)
        ]
        done = hub.create_commit(repository, operations, commit_message=message)
    if CARD in present:
        warnings.warn(
            f"{repository} has a {CARD}, which was left as it is. Delete it there and "
            "push again for one that kbert writes.",
            stacklevel=2,
        )
    return str(done.commit_url)
