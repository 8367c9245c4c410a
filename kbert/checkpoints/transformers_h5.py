"""`tf_model.h5`, as transformers 4 wrote TensorFlow models: Keras's names and kernels.

A dataset lies under the layer of the model's top and is called by its scopes, of which
the first is the model: `bert/tf_bert_model/bert/embeddings/LayerNorm/gamma:0`. Keras
writes a layer that two others share with each of them, so that a model with the head of
masked words has its embeddings twice. The rules of the names are those of transformers
4's `modeling_tf_pytorch_utils.py` (`convert_tf_weight_name_to_pt_weight_name`).
"""

import dataclasses
import functools
import re
from pathlib import Path

import numpy as np

from kbert.checkpoints import hdf5, names
from kbert.checkpoints.stored import StoredArray

_ENDS = {
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "beta": "bias",
}


def hugging_face_name(path: str) -> tuple[str, str]:
    """Returns transformers' name for torch of a dataset, and how it lies otherwise.

    Args:
        path: of the dataset in the file.

    Returns:
        The name, and NONE or TRANSPOSE of `names`.

    Example:
    >>> hugging_face_name(
    ...     "bert/tf_bert_model/bert/encoder/layer_._3/attention/self/query/kernel:0")
    ('bert.encoder.layer.3.attention.self.query.weight', 'transpose')
    >>> hugging_face_name(
    ...     "mlm___cls/tf_bert_for_masked_lm/mlm___cls/predictions/bias:0")
    ('cls.predictions.bias', 'none')
    """
    scopes = path.removesuffix(":0").replace("_._", "/").split("/")[2:]
    scopes = [re.sub(".*___", "", scope) for scope in scopes]
    if not scopes:
        return path, names.NONE
    *parents, end = scopes
    transform = names.TRANSPOSE if end == "kernel" else names.NONE
    return ".".join([*parents, _ENDS.get(end, end)]), transform


def read_weights(path: Path) -> dict[str, StoredArray]:
    """Opens the file.

    Returns:
        The tensors by transformers' names for torch, in its layout. Each is read when
        numpy asks for it.

    Raises:
        ValueError: as `hdf5.read_datasets`, or if two datasets have one name; when it
            is read, if a shared tensor is not the same in both places.
    """
    own, shared = {}, {}
    for name, stored in hdf5.read_datasets(path).items():
        top, *scopes = name.split("/")
        (own if scopes[1:2] in ([top], []) else shared)[name] = stored
    found = as_torch(own, hugging_face_name, path)
    for name, copy in as_torch(shared, hugging_face_name, path).items():
        if name in found:
            read = functools.partial(_equal, found[name], copy)
            copy = dataclasses.replace(found[name], read=read)
        found[name] = copy
    return found


def _equal(first: StoredArray, second: StoredArray) -> np.ndarray:
    """Returns an array that lies in two places."""
    array = first.read()
    if not np.array_equal(array, second.read(), equal_nan=True):
        raise ValueError(
            "A tensor that layers share must be the same with each. Received two that "
            f"differ: {first.where} and {second.where}."
        )
    return array


def as_torch(stored, rename, path: Path) -> dict[str, StoredArray]:
    """Returns tensors with the names and the layout that transformers has for torch.

    Args:
        stored: the tensors by the names in a file.
        rename: returns a tensor's other name, and NONE or TRANSPOSE.
        path: of the file, for messages.

    Raises:
        ValueError: if two tensors get one name.
    """
    found: dict[str, StoredArray] = {}
    for old, tensor in stored.items():
        name, transform = rename(old)
        if name in found:
            raise ValueError(
                f"{path} must have each tensor once. Received two for {name!r}: "
                f"{found[name].where} and {tensor.where}."
            )
        if transform == names.TRANSPOSE:
            read = functools.partial(_turned, tensor)
            tensor = dataclasses.replace(tensor, shape=tensor.shape[::-1], read=read)
        found[name] = tensor
    return found


def _turned(stored: StoredArray) -> np.ndarray:
    """Returns an array with its axes in reverse."""
    return stored.read().T
