"""From what a user passes to `fit` to what Keras's `fit` takes."""

import functools
from collections.abc import Iterable, Mapping

import keras
import numpy as np

from kbert.backbone import INPUTS, check_inputs, check_keys
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.raw_text import is_raw
from kbert.preprocessing.streaming import StreamedBatches, StreamWidths
from kbert.tasks.compiling import compiles_shapes, layout_for
from kbert.tasks.dividing import divided
from kbert.tasks.feeds import Arrays, Stream, Texts
from kbert.tasks.replicas import division_of

# Widths of a stream's batches, whose texts are not known in advance.
_STREAM_WIDTHS = (16, 32, 64, 128, 256, 512)


def prepare(
    task, x, y=None, sample_weight=None, *, steps=None, training=False, targets=True
):
    """Sorts what a user passed into `Texts`, `Arrays` or a `Stream`, all checked.

    Args:
        task: the `BertTask` that will read them.
        x: as for `BertTask.fit`.
        y: targets, or None.
        sample_weight: one weight a text, or None.
        steps: batches an epoch, for a dataset that does not know its length.
        training: whether `y` is a whole training set.
        targets: whether there are to be any; False to predict.

    Returns:
        A `Texts`, an `Arrays` or a `Stream`.

    Raises:
        ValueError: if the data are not what the task takes.
    """
    if is_dataset(x):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "A dataset holds its targets and weights itself, as (x, y) or "
                f"(x, y, sample_weight). Received: a {type(x).__name__} and `y` or "
                "`sample_weight` beside it."
            )
        return Stream(_streamed(task, x, steps, targets, training))
    if is_raw(x) or isinstance(x, dict):
        return task.read(x, y, sample_weight, training=training, targets=targets)
    raise TypeError(
        "`x` must be texts, a dictionary of arrays, or a dataset. Received: "
        f"{type(x).__name__} {str(x)[:60]}."
    )


def read(task, x, y, sample_weight, training, targets):
    """Sorts texts with one target each, or such arrays, into `Texts` or `Arrays`.

    Args:
        task: the `BertTask`.
        x: raw text, or a dictionary of ready arrays.
        y: targets, or None.
        sample_weight: one weight a text, or None.
        training: whether `y` is a whole training set.
        targets: whether there are to be any, for tasks that make theirs of `x`.
    """
    if is_raw(x):
        encoded = task.require_preprocessor().encode(x)
        return Texts(
            encoded,
            *_targets(task, y, sample_weight, len(encoded), training),
            pad_id=task.backbone.config.pad_token_id,
            choose_layout=functools.partial(layout_for, task, training),
        )
    inputs = ready_arrays(x, task.backbone.config)
    count = len(inputs["token_ids"])
    return Arrays(inputs, *_targets(task, y, sample_weight, count, training))


def require_targets(data):
    """Refuses texts or arrays without targets, where they are to be learned or judged.

    Raises:
        ValueError: if there are none.
    """
    if not isinstance(data, Stream) and data.y is None:
        raise ValueError("`y` must hold a target for every text. Received: None.")


def prepare_validation(task, data, *, steps=None):
    """Does the same for `validation_data`: a tuple with targets, or a dataset."""
    if isinstance(data, tuple):
        if len(data) not in (2, 3):
            raise ValueError(
                "`validation_data` must be (x, y), (x, y, sample_weight) or a dataset."
                f" Received: a tuple of {len(data)}."
            )
        return prepare(task, *data, steps=steps)
    return prepare(task, data, steps=steps)


def prepare_prediction(task, x, steps=None):
    """Does the same for `predict`, which has no targets."""
    if steps is not None and not is_dataset(x):
        raise ValueError(f"`steps` goes with a dataset. Received: steps={steps}.")
    return prepare(task, x, steps=steps, targets=False)


def called_with(task, inputs) -> dict:
    """Returns what a task is called with, checked; None for what may be absent.

    Args:
        task: the `BertTask`.
        inputs: a dictionary of arrays or tensors.

    Raises:
        ValueError: if it is text, a key is missing or unknown, or a value out of range.
    """
    if is_raw(inputs):
        raise ValueError(
            f"Calling {type(task).__name__} takes a dictionary of arrays. For text "
            "use `fit`, `evaluate`, `predict` or the task's answering method. "
            f"Received: {type(inputs).__name__} of text."
        )
    required = [key for key in task.input if key not in task.optional_inputs]
    check_keys(inputs, required, optional=task.optional_inputs)
    others = [key for key in task.input if key not in INPUTS]
    check_inputs(inputs, task.backbone.config, optional=others)
    for key in others:
        if len(task.input[key].shape) == 1:
            _check_positions(key, inputs)
    return {**dict.fromkeys(task.optional_inputs), **inputs}


def _check_positions(key, inputs):
    """Refuses positions, as a numpy array, that lie in no row."""
    values, rows = inputs.get(key), inputs["token_ids"]
    known = isinstance(values, np.ndarray) and isinstance(rows, np.ndarray)
    if not known or not values.size:
        return
    limit = rows.size
    integers = values.dtype.kind in "iu" and values.ndim == 1
    if not integers or values.min() < 0 or values.max() >= limit:
        raise ValueError(
            f"`{key}` must be integers of the shape (positions,), each at least 0 and "
            f"below {limit}, the positions of all rows. Received: {values.dtype} of "
            f"shape {values.shape} from {values.min()} to {values.max()}."
        )


def symbols(task, inputs) -> dict:
    """Returns symbolic inputs with a symbol for those absent: one text a row."""
    rows = inputs["token_ids"].shape[:1]
    given = {key: value for key, value in inputs.items() if value is not None}
    absent = {}
    for key in task.optional_inputs:
        ones = [1] * (len(task.input[key].shape) - 1)
        absent[key] = keras.KerasTensor((*rows, *ones), "int32")
    return {**absent, **given}


def ready_arrays(x, config) -> dict[str, np.ndarray]:
    """Returns ready inputs as checked int32 arrays.

    Args:
        x: a dictionary with token_ids, padding_mask and, optionally, segment_ids (0
            everywhere where absent), each (N, S).
        config: the backbone's `BertConfig`.

    Raises:
        ValueError: if a key is missing or unknown, or a value out of range.
    """
    check_keys(x, ("token_ids", "padding_mask"), optional=INPUTS)
    arrays = {
        key: keras.ops.convert_to_numpy(x[key])
        for key in INPUTS
        if x.get(key) is not None
    }
    arrays.setdefault("segment_ids", np.zeros_like(arrays["token_ids"]))
    check_inputs(arrays, config)
    shapes = {key: value.shape for key, value in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"Ready inputs must be of one shape. Received: {shapes}.")
    if arrays["token_ids"].shape[0] == 0:
        raise ValueError("There must be at least one row. Received: 0 rows.")
    if arrays["padding_mask"].max() > 1:
        raise ValueError(
            "In ready arrays `padding_mask` must be 1 for text and 0 for padding. "
            f"Received: values up to {arrays['padding_mask'].max()}."
        )
    return {key: value.astype("int32") for key, value in arrays.items()}


def grouped_arrays(x, config) -> dict[str, np.ndarray]:
    """Returns ready inputs (N, K, S), K texts an example, checked as `ready_arrays`.

    Args:
        x: as there, with an axis more.
        config: the backbone's `BertConfig`.

    Raises:
        ValueError: as there.
    """
    check_keys(x, ("token_ids", "padding_mask"), ("segment_ids",))
    given = {key: value for key, value in x.items() if value is not None}
    arrays = {key: keras.ops.convert_to_numpy(value) for key, value in given.items()}
    arrays.setdefault("segment_ids", np.zeros_like(arrays["token_ids"]))
    shapes = {key: value.shape for key, value in arrays.items()}
    if len(set(shapes.values())) > 1 or len(arrays["token_ids"].shape) != 3:
        raise ValueError(
            "Ready inputs must be of one shape, (examples, choices, length). "
            f"Received: {shapes}."
        )
    if not arrays["token_ids"].size:
        raise ValueError(f"There must be at least one example. Received: {shapes}.")
    check_inputs(
        {key: value.reshape(-1, value.shape[-1]) for key, value in arrays.items()},
        config,
    )
    return arrays


def is_dataset(x) -> bool:
    """Whether `x` yields batches, as opposed to being texts or an array."""
    if isinstance(x, keras.utils.PyDataset):
        return True
    if isinstance(x, str | bytes | list | tuple | Mapping) or hasattr(x, "ndim"):
        return False
    return isinstance(x, Iterable)


def raw_batches(source, steps):
    """Yields x of each batch of a dataset, as it is.

    Args:
        source: the dataset.
        steps: batches to read; None for the length of the dataset.
    """
    batches = StreamedBatches(source, lambda *raw: raw, steps)
    for index in range(batches.steps):
        yield batches[index][0]


def predict_each(task, source, batch_size, steps, callbacks) -> np.ndarray:
    """Predicts the batches of a dataset one by one, for their outputs differ in width.

    Args:
        task: the `BertTask`.
        source: the dataset.
        batch_size: as for `BertTask.predict`.
        steps: batches to read; None for the length of the dataset.
        callbacks: as in Keras.

    Returns:
        The outputs of all, `task.behind_end` behind those that are narrower.
    """
    outputs = [
        task.predict(raw, batch_size, verbose=0, callbacks=callbacks)
        for raw in raw_batches(source, steps)
    ]
    return concatenate(outputs, task.behind_end)


def concatenate(batches, fill) -> np.ndarray:
    """Joins the outputs of batches, made equally wide with what says nothing.

    Args:
        batches: arrays (texts, W, …), of several W.
        fill: number behind the end.
    """
    widest = max(batch.shape[1] for batch in batches)
    return np.concatenate(
        [
            np.pad(
                batch,
                [(0, 0), (0, widest - batch.shape[1]), *[(0, 0)] * (batch.ndim - 2)],
                constant_values=fill,
            )
            for batch in batches
        ]
    )


def _streamed(task, source, steps, targets, training) -> StreamedBatches:
    """Returns the batches of a dataset, each prepared when its turn comes."""
    longest = task.backbone.config.max_sequence_length
    if task.preprocessor is not None:
        longest = task.preprocessor.max_length
    widths = [width for width in _STREAM_WIDTHS if width < longest]
    choose_width = StreamWidths([*widths, longest])

    division = division_of(task, training)

    def prepare_batch(x, y, sample_weight):
        positions = x.get("mask_positions") if isinstance(x, dict) else None
        if positions is not None and np.ndim(positions) == 1:
            batch = laid_instances(task, x, y, sample_weight)
        else:
            data = prepare(task, x, y, sample_weight, targets=targets)
            batch = data.single_batch(choose_width)
        return divided(batch, division, compiles_shapes(task))

    return StreamedBatches(source, prepare_batch, steps)


def laid_instances(task, x, y, sample_weight) -> tuple:
    """Checks a batch of instances that lie in rows already, perhaps several a row.

    Args:
        task: a `BertTask` with a head of masked tokens.
        x: what it is called with, arrays.
        y: ids (slots,), below 0 for a slot that is empty; for two heads `{"mlm": these,
            "nsp": (instances,)}`; or None.
        sample_weight: None, as the rows say not what belongs to which instance.

    Returns:
        The same.

    Raises:
        ValueError: if a position lies in no row, or targets are none of these.
    """
    called_with(task, x)
    if sample_weight is not None:
        raise ValueError(
            "Instances in rows of several have no sample weights. Received: weights of "
            f"shape {np.shape(sample_weight)}. Pass one instance a row."
        )
    if y is not None:
        wanted = {"mlm": len(x["mask_positions"])}
        if task.has_next_sentence:
            firsts = x.get("first_positions")
            wanted["nsp"] = len(x["token_ids"] if firsts is None else firsts)
        targets = y if isinstance(y, dict) else {"mlm": y}
        found = {key: len(value) for key, value in targets.items()}
        largest = {key: int(np.max(value)) for key, value in targets.items()}
        limits = {"mlm": task.backbone.config.vocabulary_size, "nsp": 2}
        if found != wanted or any(largest[key] >= limits[key] for key in wanted):
            raise ValueError(
                f"Targets must be so many, {wanted}, and below {limits}. Received: "
                f"{found} of values up to {largest}."
            )
    return x, y, None


def _targets(task, y, sample_weight, count, training):
    if y is not None:
        y = task.encode_targets(y, count, training=training)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, count, "sample_weight")
    return y, sample_weight
