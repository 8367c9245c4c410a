"""Which files of a repository kbert reads; no other file is ever fetched."""

import dataclasses
import fnmatch
from collections.abc import Collection, Mapping
from pathlib import Path

from kbert import google_release, keras_hub_folder
from kbert.bundles import saved_model_folder
from kbert.files import path_inside
from kbert.strict_json import read_json

# One of these tells whose files there are.
CONFIGS = ("config.json", google_release.CONFIG, saved_model_folder.MODEL)
TEXTS = (
    "config.json",
    google_release.CONFIG,
    "kbert.json",
    "vocab.txt",
    "tokenizer_config.json",
    "tokenizer.json",
    "added_tokens.json",
    # Of sentence-transformers.
    "modules.json",
    "1_Pooling/config.json",
    "2_Normalize/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    keras_hub_folder.TASK,
    keras_hub_folder.PREPROCESSOR,
    keras_hub_folder.VOCABULARY,
    saved_model_folder.VOCABULARY,
)
SAFETENSORS, INDEX = "model.safetensors", "model.safetensors.index.json"
# Where transformers' models have their weights, the best first; the rest are pickles,
# programs that loading them could run.
WEIGHTS = (SAFETENSORS, INDEX, "tf_model.h5", "flax_model.msgpack")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
KERAS_HUB = ("model.weights.h5", "task.weights.h5")

# A stranger's file may be of any size. No tokenizer's comes near the first, and
# BERT-large in float64 takes a sixth of the second.
MOST_BYTES_OF_TEXT = 1 << 26
MOST_BYTES_OF_WEIGHTS = 1 << 34
_MOST_SHARDS = 100


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A repository at one revision, and where its files lie once fetched.

    Args:
        folder: of the files.
        revision: the commit, or the version; what it holds never changes.
        sizes: in bytes, by filename; empty where nobody says.
        hashes: by filename, where the hub says: a sha256, or git's of a blob.
        offline: why the hub was not asked; "" where it was.
    """

    folder: Path
    revision: str
    sizes: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    offline: str = ""


def check_size(spec: str, snapshot: Snapshot, name: str) -> None:
    """Refuses a file that is larger than that of any BERT.

    Raises:
        ValueError: naming its size.
    """
    limit = MOST_BYTES_OF_TEXT if name in TEXTS else MOST_BYTES_OF_WEIGHTS
    size = snapshot.sizes.get(name) or 0
    if size > limit:
        raise ValueError(
            f"{spec} must be a BERT, of which {name!r} takes at most {limit} bytes. "
            f"Received: {size} bytes, which were not fetched."
        )


def not_cached(spec: str, name: str, snapshot: Snapshot) -> OSError:
    """Returns the error for a file that only a hub has, which is not to be asked."""
    told = f"The file {name!r} of {spec} is not in the cache."
    if snapshot.offline:
        return ConnectionError(f"{snapshot.offline} {told}")
    return FileNotFoundError(
        f"`load_weights=False` never uses the network. {told} Fetch it before: "
        f"kbert.BertTokenizer.from_preset({spec!r}) fetches all but the weights."
    )


def checkpoint(names: Collection[str]) -> list[str]:
    """Returns the files of a checkpoint of Google's, [] where one is missing.

    Example:
    >>> checkpoint(["README.md", "bert.ckpt.index", "bert.ckpt.data-00000-of-00001"])
    ['bert.ckpt.data-00000-of-00001', 'bert.ckpt.index']
    """
    found = [
        name
        for name in sorted(names)
        if "/" not in name
        and name not in TEXTS
        and any(fnmatch.fnmatchcase(name, each) for each in google_release.FILES)
    ]
    kinds = {name.rpartition(".")[2].partition("-")[0] for name in found}
    return found if kinds == {"index", "data"} else []


def weights(format: str, names: Collection[str], allow_pickle: bool) -> list[list[str]]:
    """Returns the files that hold the weights, group by group, the best first.

    Args:
        format: whose files they are, as of `kbert.presets.Preset`.
        names: what a repository holds.
        allow_pickle: whether pickles may be among them.

    Example:
    >>> weights("hugging_face", ["tf_model.h5", "pytorch_model.bin"], False)
    [['tf_model.h5']]
    """
    groups: list[list[str]]
    if format == "google":
        groups = [checkpoint(names)]
    elif format == "keras_hub":
        groups = [list(KERAS_HUB)]
    elif format == "tf_hub":
        prefix = f"{saved_model_folder.PREFIX}."
        groups = [[name for name in sorted(names) if name.startswith(prefix)]]
    else:
        usable = WEIGHTS + PICKLED * allow_pickle
        groups = [[name] for name in usable if name in names]
    return [group for group in groups if group]


def shards(folder: Path, index: str) -> list[str]:
    """Returns the files that an index in a folder lists.

    Raises:
        ValueError: if a name leaves the folder, or there are too many.
    """
    listed = read_json(path_inside(folder, index)).get("weight_map")
    values = listed.values() if isinstance(listed, dict) else ()
    names = sorted({name for name in values if isinstance(name, str)})
    if len(names) > _MOST_SHARDS:
        raise ValueError(
            f"{folder / index} must list at most {_MOST_SHARDS} files. "
            f"Received: {len(names)}."
        )
    for name in names:
        path_inside(folder, name)
    kind = Path(index.removesuffix(".index.json")).suffix
    return [name for name in names if name.endswith(kind)]


def no_weights(name: str, there: str, pickled: bool) -> FileNotFoundError:
    """Returns the error for a preset without weights that kbert may read.

    Args:
        name: of the preset.
        there: what it holds.
        pickled: whether there are pickled weights that are not allowed.
    """
    told = f"The preset {name!r} must have the file {SAFETENSORS!r}. {there} "
    if pickled:
        return FileNotFoundError(
            f"{told}{PICKLED[0]} is a pickle, which can name code to run. If you trust "
            "where it comes from, pass allow_pickle=True: torch then makes nothing but "
            "tensors of it (weights_only=True), which `kbert convert --allow-pickle` "
            "writes as safetensors. `load_weights=False` gives random weights."
        )
    return FileNotFoundError(
        f"{told}Weights in other formats than {[*WEIGHTS, *PICKLED]} must be saved as "
        "safetensors first; `load_weights=False` gives random weights."
    )
