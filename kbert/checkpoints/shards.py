"""Weights in several files, and the index that names them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kbert.files import path_inside
from kbert.strict_json import check_schema, read_json


def read_shards(path: Path, read_file: Callable[[Path], Mapping]) -> dict[str, Any]:
    """Opens the files that an index names, and no others.

    Args:
        path: of the index: JSON with the file of each tensor under "weight_map".
        read_file: opens one of them.

    Returns:
        The tensors by name.

    Raises:
        FileNotFoundError: as `read_file`.
        ValueError: as `read_file`, or if the index names a file outside the folder or
            does not list what the files hold.
    """
    listed: Any = read_json(path).get("weight_map")
    check_schema({"weight_map": listed}, {"weight_map": {...: str}}, str(path))
    arrays = {}
    for filename in sorted(set(listed.values())):
        for name, array in read_file(path_inside(path.parent, filename)).items():
            if listed.get(name) != filename:
                raise ValueError(
                    f"{path} must list every tensor of its files. Received: {name!r} "
                    f"in {filename}, which it places in {listed.get(name)!r}."
                )
            arrays[name] = array
    missing = sorted(set(listed) - set(arrays))
    if missing:
        raise ValueError(f"{path} lists tensors that its files lack: {missing}.")
    return arrays
