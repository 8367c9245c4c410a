"""Labels as people write them to the numbers that a loss takes, and their checks."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

PROBLEMS = ("single_label", "multi_label", "regression")


def check_problem(problem) -> None:
    """Raises ValueError unless `problem` is one that a classifier solves."""
    if problem not in PROBLEMS:
        raise ValueError(f"`problem` must be one of {PROBLEMS}. Received: {problem!r}.")


def check_names(names: Sequence[str], *, at_least: int = 2) -> tuple[str, ...]:
    """Checks the names of the classes, in the order of their indices.

    Args:
        names: the names.
        at_least: least number of classes.

    Returns:
        The names as a tuple.

    Raises:
        TypeError: if `names` is one string, or a name is no string.
        ValueError: if a name comes twice or there are too few.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"The labels must be a list of names. Received: {names!r}.")
    names = tuple(names)
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise TypeError(
                "The name of a label must be a string, not empty. Received: "
                f"{name!r} as label {index}."
            )
        if name in names[:index]:
            raise ValueError(
                f"Every label must have a name of its own. Received: {name!r} twice."
            )
    if len(names) < at_least:
        raise ValueError(
            f"There must be at least {at_least} labels. Received: {list(names)}."
        )
    return tuple(str(name) for name in names)


def infer_names(labels, *, problem: str = "single_label") -> tuple[str, ...]:
    """Finds the names of the classes in labels, where the caller gave none.

    Args:
        labels: for "single_label" N strings or N class indices; for "multi_label" N
            lists of strings, or a matrix of 0 and 1 `(N, C)`.
        problem: "single_label" or "multi_label".

    Returns:
        The strings that occur, sorted; or "0", "1", … for indices.

    Raises:
        TypeError, ValueError: as `encode_labels`; also if only one class occurs, or
            indices skip one.

    Example:
    >>> infer_names(["pos", "neg", "pos"])
    ('neg', 'pos')
    """
    if problem == "multi_label":
        values = _read_sets(labels)
        if isinstance(values, np.ndarray):
            return tuple(str(index) for index in range(values.shape[1]))
        return check_names(sorted({name for row in values for name in row}), at_least=1)
    values = _read_values(labels)
    found = sorted(set(values))
    if len(found) < 2:
        raise ValueError(
            "A classifier needs at least two classes. Received: "
            f"{len(values)} labels, all of them {found[0]!r}."
        )
    if isinstance(found[0], str):
        return check_names(found)
    _refuse_hidden(values)
    if found != list(range(len(found))):
        raise ValueError(
            "Integer labels are class indices from 0, without gaps. Received: "
            f"{_some(found)}. If they are names, pass them as strings; else give the "
            "names of all classes."
        )
    return tuple(str(index) for index in found)


def encode_labels(
    labels,
    names: Sequence[str] = (),
    *,
    problem: str = "single_label",
    count: int | None = None,
) -> np.ndarray:
    """Turns labels into targets.

    Args:
        labels: for "single_label" N names or N class indices; for "multi_label" N
            lists of names, or a matrix of 0 and 1 `(N, C)`; for "regression" N
            numbers. Lists, numpy arrays, pandas Series and tensors.
        names: the names of the C classes in the order of their indices.
        problem: "single_label", "multi_label" or "regression".
        count: the number of texts, which N must equal; None not to check.

    Returns:
        int32 `(N,)` for "single_label", float32 `(N, C)` for "multi_label", float32
        `(N, 1)` for "regression", in the shape of the logits.

    Raises:
        TypeError: if a label is of the wrong kind or missing; its index is named.
        ValueError: if a label is unknown, out of range or hidden (-1), integers could
            mean indices as well as names, or their number is not `count`.

    Example:
    >>> encode_labels(["pos", "neg"], ["neg", "pos"]).tolist()
    [1, 0]
    >>> encode_labels([["b"], []], ["a", "b"], problem="multi_label").tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    check_problem(problem)
    if problem == "regression":
        targets = _read_numbers(labels)
    elif problem == "multi_label":
        targets = _encode_sets(_read_sets(labels), names)
    else:
        targets = _encode_values(_read_values(labels), names)
    if count is not None and len(targets) != count:
        raise ValueError(
            f"Every text needs one label. Received: {count} texts, {len(targets)} "
            "labels."
        )
    return targets


def check_several_classes(targets: np.ndarray, names: Sequence[str]) -> None:
    """Raises ValueError if class indices `(N,)`, int, to train on are all the same."""
    if len(targets) and (targets == targets[0]).all():
        raise ValueError(
            "Training needs texts of at least two classes. Received: "
            f"{len(targets)} texts, all of them {names[targets[0]]!r}."
        )


def encode_class_weight(class_weight: Mapping, names: Sequence[str]) -> dict:
    """Returns class weights by class index, as Keras takes them.

    Args:
        class_weight: a weight for each name, or for each class index.
        names: the names of the classes in the order of their indices.

    Returns:
        Dictionary from class index to weight.

    Raises:
        ValueError: if a class is unknown or a weight is negative or not finite.
    """
    indices = {name: index for index, name in enumerate(names)}
    weights = {}
    for key, weight in class_weight.items():
        index = indices.get(key, -1) if isinstance(key, str) else key
        if index not in range(len(names)):
            raise ValueError(
                f"`class_weight` must be keyed by a name or an index of {_some(names)}."
                f" Received: {key!r}."
            )
        weights[int(index)] = float(check_weights([weight], 1, "class_weight")[0])
    return weights


def check_weights(weights, count: int, name: str = "sample_weight") -> np.ndarray:
    """Returns weights as float32 `(N,)`.

    Args:
        weights: N numbers, at least 0.
        count: N.
        name: what the caller calls them.

    Raises:
        ValueError: if there are not N, or one is negative or not finite.
    """
    array = np.asarray(weights, dtype=np.float32)
    if array.shape != (count,):
        raise ValueError(
            f"`{name}` must be one number a text. Received: shape {array.shape} for "
            f"{count} texts."
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(
            f"`{name}` must be finite and not negative. Received: {array[bad[0]]} at "
            f"{bad[0]}."
        )
    return array


def _encode_values(values: list, names: Sequence[str]) -> np.ndarray:
    if values and isinstance(values[0], str):
        indices = {name: index for index, name in enumerate(names)}
        for index, value in enumerate(values):
            if value not in indices:
                raise ValueError(_unknown(value, index, names))
        return np.array([indices[value] for value in values], np.int32)
    _refuse_hidden(values)
    numerals = all(name.isdecimal() for name in names)
    if numerals and list(names) != [str(index) for index in range(len(names))]:
        raise ValueError(
            "Integers could mean class indices or the names, which are numerals. Pass "
            f"the labels as strings. Received: {_some(values)} for the names "
            f"{_some(names)}."
        )
    for index, value in enumerate(values):
        if not 0 <= value < len(names):
            raise ValueError(
                f"A class index must lie in [0, {len(names)}). Received: {value} as "
                f"label {index}; the classes are {_some(names)}."
            )
    return np.array(values, np.int32)


def _encode_sets(rows, names: Sequence[str]) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        if rows.shape[1] != len(names):
            raise ValueError(
                f"The matrix of labels must have a column for each of {_some(names)}. "
                f"Received: shape {rows.shape}."
            )
        return rows
    indices = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)), np.float32)
    for index, row in enumerate(rows):
        for name in row:
            if name not in indices:
                raise ValueError(_unknown(name, index, names))
            matrix[index, indices[name]] = 1
    return matrix


def _listed(labels) -> list:
    if not isinstance(labels, list | tuple):
        array = np.asarray(labels)  # numpy, pandas, a tensor
        if array.ndim == 0:
            raise TypeError(f"Labels must be a list. Received: {labels!r}.")
        labels = array.tolist()
    return list(labels)


def _read_values(labels) -> list:
    """Reads N labels as all strings or all integers."""
    values = _listed(labels)
    for index, value in enumerate(values):
        if type(value) is not str and type(value) is not int:
            values[index] = _to_value(value, index)
    if len({type(value) for value in values}) > 1:
        raise TypeError(
            "Labels must be all names or all class indices. Received: both, as in "
            f"{_some(values)}."
        )
    return values


def _to_value(value, index: int) -> str | int:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple | np.ndarray) and len(value) == 1:
        return _to_value(value[0], index)  # a column (N, 1)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        raise TypeError(
            "A label must be a name or a class index; pass 0 and 1, or names, for "
            f"booleans. Received: {value} as label {index}."
        )
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    if isinstance(value, list | tuple | np.ndarray):
        raise TypeError(
            'One label a text; for several, problem="multi_label", for one-hot rows '
            f"pass the argmax. Received: {_some(value)} as label {index}."
        )
    raise TypeError(
        'A label must be a name or a class index (for numbers, problem="regression"). '
        f"Received: {value!r} as label {index}."
    )


def _read_sets(labels) -> list[list[str]] | np.ndarray:
    """Reads N lists of names, or a matrix of 0 and 1 as float32 `(N, C)`."""
    rows = _listed(labels)
    for index, row in enumerate(rows):
        if not isinstance(row, list | tuple | set | frozenset | np.ndarray):
            raise TypeError(
                "The labels of a text must be a list of names, or a row of 0 and 1. "
                f"Received: {row!r} as label {index}."
            )
    rows = [list(row) for row in rows]
    if all(isinstance(name, str) for row in rows for name in row):
        return rows
    for index, row in enumerate(rows):
        bad = [value for value in row if value not in (0, 1)]
        if bad or len(row) != len(rows[0]):
            raise ValueError(
                "The matrix of labels must hold 0 and 1, in rows of equal length. "
                f"Received: {_some(row)} as label {index}."
            )
    return np.array(rows, np.float32)


def _read_numbers(labels) -> np.ndarray:
    """Reads N numbers as float32 `(N, 1)`."""
    values = _listed(labels)
    for index, value in enumerate(values):
        if isinstance(value, list | tuple) and len(value) == 1:
            value = values[index] = value[0]
        number = isinstance(value, int | float | np.number)
        if not number or isinstance(value, bool) or not np.isfinite(value):
            raise TypeError(
                "A label of a regression must be one finite number. Received: "
                f"{value!r} as label {index}."
            )
    return np.array(values, np.float32)[:, None]


def _refuse_hidden(values) -> None:
    if -1 in values:
        raise ValueError(
            "A label of -1 marks a test split whose labels are hidden: there is "
            f"nothing to train on or evaluate; use predict. Received: -1 as label "
            f"{list(values).index(-1)}."
        )


def _unknown(value, index: int, names) -> str:
    return (
        f"A label must be one of {_some(names)}. Received: {value!r} as label {index}."
    )


def _some(values) -> str:
    values = list(values)
    told = ", ".join(repr(value) for value in values[:10])
    return f"[{told}{', …' if len(values) > 10 else ''}]"
