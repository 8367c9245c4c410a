"""Tensors by another format's names to variables, all or none, and back."""

import dataclasses
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import keras
import numpy as np

from kbert.checkpoints import names
from kbert.checkpoints.stored import StoredArray


@dataclasses.dataclass(frozen=True)
class Format:
    """What the generic code has to know of a format.

    Args:
        column: the format's column in the table of names.
        config: the file that says the sizes, for messages.
        is_extra: whether a tensor without a row is a known one that is no weight of
            kbert's models: an optimizer's, a buffer, another task's head.
        full_name: turns a name in a file into the one in the table.
        twins: {name: that of the tensor which it must equal}, for heads that store one
            array twice; either of the two may be absent.
    """

    column: str
    config: str
    is_extra: Callable[[str], bool]
    full_name: Callable[[str], str] = str
    twins: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a preset: names and shapes are known, the numbers not read yet.

    Args:
        source: where they lie, for messages.
        format: whose names they have.
        arrays: objects with a `shape` that numpy can turn into an array, by name.
    """

    source: str
    format: Format
    arrays: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What `load_into` did.

    Args:
        source: where the tensors came from.
        loaded: the paths of the variables that now hold a tensor.
        random: the paths of the variables, all of a head, that had none.
        ignored: the tensors that belong to other heads, or are no weights.
        tensors: what the tensor of each loaded variable is called in the file.
        unused: those of them that belong to other heads.
        twins: what the file holds a second time, and the tensor that it must equal.
    """

    source: str
    loaded: tuple[str, ...]
    random: tuple[str, ...]
    ignored: tuple[str, ...]
    unused: tuple[str, ...] = ()
    tensors: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)
    twins: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)


def load_into(
    variables: Mapping[str, Any],
    arrays: Mapping[str, Any],
    format: Format,
    *,
    source: str,
    optional: Collection[str] = (),
) -> LoadReport:
    """Assigns tensors with a format's names to variables, all or none.

    Args:
        variables: the model's variables by kbert's path: objects with `shape` and
            `assign`.
        arrays: the tensors by name: numpy arrays, or objects with a `shape` that numpy
            can turn into one.
        format: whose names they are.
        source: where they come from, for messages.
        optional: the heads that may be absent from `arrays`, as a whole, like
            "pooler"; they keep their values, which is told in a warning.

    Returns:
        What was loaded, what stays random, what was ignored.

    Raises:
        ValueError: as `match`, or if tensors differ that must be equal, before anything
            is assigned; or if a file is damaged.
    """
    shapes = {path: tuple(variable.shape) for path, variable in variables.items()}
    report = match(shapes, arrays, format, source=source, optional=optional)
    _check_twins(report.twins, arrays, source)
    for path, name in report.tensors.items():
        _, transform = _tensor_name(path, format)
        _assign(variables[path], transform, np.asarray(arrays[name]))
    if report.random:
        warnings.warn(
            f"{source} has no weights for {list(report.random)}: they stay random. "
            "Train them before the model's answers mean anything.",
            stacklevel=3,
        )
    return report


def match(
    shapes: Mapping[str, tuple[int, ...]],
    arrays: Mapping[str, Any],
    format: Format,
    *,
    source: str,
    optional: Collection[str] = (),
) -> LoadReport:
    """Finds the tensor for every variable, reading none.

    Args:
        shapes: of the variables, by kbert's path.
        arrays: as for `load_into`; so are the others.
        format: whose names they are.
        source: where they come from, for messages.
        optional: the heads that may be absent.

    Returns:
        What loading does.

    Raises:
        ValueError: if a tensor is missing, is nobody's, is there twice, has the wrong
            shape, or holds no floating-point numbers.
    """
    tensors = {path: _tensor_name(path, format) for path in shapes}
    wanted = {name for name, _ in tensors.values()}
    found, ignored = _match(arrays, wanted, format, source)
    twins = _twins(found, ignored, wanted, format)
    ignored = [name for name in ignored if name not in twins]
    absent = [path for path, (name, _) in tensors.items() if name not in found]
    present = {path: found[tensors[path][0]] for path in shapes if path not in absent}
    absent_heads = set(optional) - {names.head_of(path) for path in present}
    missing = [path for path in absent if names.head_of(path) not in absent_heads]
    if missing:
        raise ValueError(
            f"{source} must have a tensor for every variable. Missing: "
            f"{[tensors[path][0] for path in missing]}, for the variables {missing}."
        )
    for path, stored in present.items():
        _check_shape(path, shapes[path], stored, arrays, tensors[path][1], source)
    for stored in present.values():
        if isinstance(arrays[stored], StoredArray):
            arrays[stored].check_dtype()
    unused = [
        name
        for name in ignored
        if format.full_name(name) in format.twins
        or _of_a_head(format.full_name(name), format)
    ]
    return LoadReport(
        source,
        loaded=tuple(present),
        random=tuple(absent),
        ignored=tuple(ignored),
        unused=tuple(unused),
        tensors=present,
        twins=twins,
    )


def dump(variables: Mapping[str, Any], format: Format) -> dict[str, np.ndarray]:
    """Returns the variables as a format names and shapes them, float32.

    Args:
        variables: the model's variables by kbert's path.
        format: whose names to use.

    Returns:
        The arrays by name.

    Raises:
        ValueError: if a variable has no row in the table.
    """
    arrays = {}
    for path, variable in variables.items():
        name, transform = _tensor_name(path, format)
        array = names.apply(transform, np.asarray(variable).astype(np.float32))
        arrays[name] = np.ascontiguousarray(array)
    return arrays


def _tensor_name(path: str, format: Format) -> tuple[str, str]:
    """Returns the name and the transform of the tensor for a variable."""
    translated = names.translate(path, "kbert", format.column)
    if translated is None:
        raise ValueError(
            "A variable must have a row in kbert/checkpoints/names.py to be loaded or "
            f"saved. Received: {path!r}."
        )
    return translated


def _match(
    arrays: Mapping[str, Any], wanted: set[str], format: Format, source: str
) -> tuple[dict[str, str], list[str]]:
    """Returns what each wanted tensor is called in the file, and the ones to ignore."""
    found: dict[str, str] = {}
    ignored, unknown = [], []
    for stored in arrays:
        name = format.full_name(stored)
        if name in wanted:
            if name in found:
                raise ValueError(
                    f"{source} must have each tensor once. Received both "
                    f"{found[name]!r} and {stored!r}."
                )
            found[name] = stored
        elif format.is_extra(name) or _of_a_head(name, format):
            ignored.append(stored)
        else:
            unknown.append(stored)
    if unknown:
        raise ValueError(
            f"{source} must have no tensor but the model's. It has no place for: "
            f"{unknown}. Compare num_hidden_layers in {format.config}, or take them "
            "out."
        )
    return found, ignored


def _twins(found, ignored, wanted, format) -> dict[str, str]:
    """Returns {twin: the tensor that it must equal}, both as the file calls them.

    A tensor that is absent is found in its twin, by whose name `found` gets it.
    """
    stored = {format.full_name(name): name for name in ignored}
    if not any(name in wanted for name in _heads_with_twins(format)):
        return {}
    twins = {}
    for twin, name in format.twins.items():
        if twin in stored:
            twins[stored[twin]] = found.setdefault(name, stored[twin])
    return twins


def _heads_with_twins(format) -> list[str]:
    """Returns the tensors of heads that have a twin: who wants them, uses both."""
    return [name for name in format.twins.values() if _of_a_head(name, format)]


def _check_twins(twins, arrays, source):
    """Compares tensors that must be equal, once their shapes are known to be right."""
    for twin, name in twins.items():
        same = tuple(arrays[twin].shape) == tuple(arrays[name].shape)
        if not same or not np.array_equal(np.asarray(arrays[twin]), arrays[name]):
            raise ValueError(
                f"{source} must have the same numbers under {twin!r} and {name!r}, "
                "which are one variable in BERT (tie_word_embeddings). Received: "
                f"different ones, of the shapes {tuple(arrays[twin].shape)} and "
                f"{tuple(arrays[name].shape)}."
            )


def _check_shape(path, expected, stored, arrays, transform, source):
    """Compares the shapes of a variable and of the tensor for it."""
    received = tuple(arrays[stored].shape)
    if transform == names.TRANSPOSE:
        expected = expected[::-1]
    if received != expected:
        raise ValueError(
            f"The tensor {stored!r} of {source} must have the shape {expected}, which "
            f"the configuration asks for (variable {path!r}). Received: {received}."
        )


def _assign(variable: Any, transform: str, array: np.ndarray) -> None:
    """Gives a variable its numbers, in memory of their own.

    What is read-only is the memory of a file, which may change with the file. It is
    copied here unless the backend does so: TensorFlow copies every array of numpy's,
    JAX writes what it transposes elsewhere.
    """
    backend = keras.backend.backend() if isinstance(variable, keras.Variable) else ""
    transposes = backend and transform == names.TRANSPOSE
    copies = backend == "tensorflow" or (backend == "jax" and transposes)
    if not (array.flags.writeable or copies):
        array = array.copy()
    if transposes:
        # The backends are faster at it than numpy.
        variable.assign(keras.ops.transpose(keras.ops.convert_to_tensor(array)))
    else:
        variable.assign(names.apply(transform, array))


def _of_a_head(name: str, format: Format) -> bool:
    """Returns whether a tensor belongs to a head that the model lacks."""
    translated = names.translate(name, format.column, "kbert")
    return translated is not None and names.head_of(translated[0]) is not None
