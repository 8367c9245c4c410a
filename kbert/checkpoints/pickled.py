"""`pytorch_model.bin`, a pickle, read by torch alone and without running what it names.

`torch.load(weights_only=True)` makes nothing but tensors and plain containers. Torch
itself says that it is no wall (https://pytorch.org/docs/stable/notes/serialization.html),
so that `Preset.weights_path` leads here only where the caller allowed it.
"""

import pickle
import zipfile
from pathlib import Path
from typing import Any

from kbert.checkpoints.shards import read_shards
from kbert.checkpoints.stored import StoredArray


def read_weights(path: Path) -> dict[str, StoredArray]:
    """Opens the file, or the several that an index names.

    Args:
        path: of the file, or of a `pytorch_model.bin.index.json`.

    Returns:
        The tensors by name.

    Raises:
        FileNotFoundError: if an index names a file that is not there.
        ImportError: if torch is not installed.
        ValueError: if a file is damaged, names anything but tensors, or holds anything
            but tensors by name; and as `read_shards`.
    """
    torch = _torch()
    if path.suffix == ".json":
        return read_shards(path, lambda part: _read_file(torch, part))
    return _read_file(torch, path)


def _read_file(torch: Any, path: Path) -> dict[str, StoredArray]:
    if not path.is_file():
        raise FileNotFoundError(
            f"The weights must lie in {path}, and no file is there."
        )
    try:
        content = torch.load(
            path,
            weights_only=True,
            map_location="cpu",
            mmap=zipfile.is_zipfile(path),  # older files cannot be mapped
        )
    except (
        pickle.UnpicklingError,
        *(RuntimeError, EOFError, ValueError, TypeError, KeyError, IndexError),
        *(AttributeError, OSError, zipfile.BadZipFile),
    ) as error:
        raise ValueError(
            f"{path} must be whole and hold tensors by name, and nothing that torch "
            f"would run. Received: {path.stat().st_size} bytes, of which torch says: "
            f"{str(error)[:500]}."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} must hold tensors by name. Received: {type(content).__name__}."
        )
    return {
        name: _stored(torch, name, tensor, path) for name, tensor in content.items()
    }


def _stored(torch: Any, name: Any, tensor: Any, path: Path) -> StoredArray:
    """Returns a tensor of torch's, after a look at whether it is a plain one."""
    where = f"{str(name)[:200]!r} in {path}"
    plain = isinstance(name, str) and isinstance(tensor, torch.Tensor)
    if not plain or tensor.layout != torch.strided or tensor.is_quantized:
        raise ValueError(
            f"{path} must hold dense tensors by name. Received: "
            f"{type(tensor).__name__} for {where}."
        )
    size = tensor.numel() * tensor.element_size()
    if tensor.device.type != "cpu" or size > tensor.untyped_storage().nbytes():
        raise ValueError(
            f"{path} must hold every number of its tensors. Received: {where} of the "
            f"shape {tuple(tensor.shape)} in {tensor.untyped_storage().nbytes()} bytes."
        )
    return StoredArray(
        where,
        str(tensor.dtype).removeprefix("torch."),
        tuple(tensor.shape),
        lambda: tensor.detach().to(torch.float32).numpy(),
    )


def _torch():
    """Returns torch, which reads the files on every backend."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "pytorch_model.bin is read by torch, on every backend. Received: an "
            "environment without it. Run: pip install 'keras-kbert[torch]', or save "
            "the model as safetensors where torch is."
        ) from error
    return torch
