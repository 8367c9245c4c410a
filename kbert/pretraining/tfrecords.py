"""Instances as Google's code writes and reads them: files of `tf.train.Example`.

The features of google-research/bert's `create_pretraining_data.py`, each padded with
zeros: `input_ids`, `input_mask`, `segment_ids` (as wide as `sequence_length`),
`masked_lm_positions`, `masked_lm_ids`, `masked_lm_weights` (as wide as the most that
are masked) and `next_sentence_labels`. Its `run_pretraining.py` reads these.
"""

import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kbert.files import replace_file
from kbert.pretraining.batches import InstanceBatches

_POSITIONS = "mask_positions"
# Of kbert's name: Google's.
_INPUTS = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    _POSITIONS: "masked_lm_positions",
}
_LABELS = "masked_lm_ids"
_WEIGHTS = "masked_lm_weights"
_NEXT = "next_sentence_labels"


def write_tfrecords(
    folder: str | os.PathLike,
    target: str | os.PathLike,
    *,
    files: int = 1,
    seed: int = 0,
) -> list[Path]:
    """Writes the instances of a folder as Google's TFRecord files, in a random order.

    Args:
        folder: what `create_instances` wrote.
        target: folder for `instances-00000-of-00001.tfrecord` and so on.
        files: how many; an instance goes to each in turn.
        seed: of the order, and of masks that were not decided before.

    Returns:
        The files.

    Raises:
        FileNotFoundError: if the folder is not complete.
        ValueError: if `files` is not positive.
        ImportError: if TensorFlow is missing.
    """
    tf = _tensorflow()
    if files < 1:
        raise ValueError(f"`files` must be at least 1. Received: {files}.")
    batches = InstanceBatches(folder, 1, seed=seed)
    settings = batches.settings
    most = settings.masking.most
    if most is None:
        most = math.ceil(settings.sequence_length * settings.masking.share)
    target = Path(target)
    target.mkdir(parents=True, exist_ok=True)
    paths = [
        target / f"instances-{number:05d}-of-{files:05d}.tfrecord"
        for number in range(files)
    ]
    for number, path in enumerate(paths):

        def write(temporary, number=number):
            with tf.io.TFRecordWriter(str(temporary)) as writer:
                for step in range(number, batches.num_instances, files):
                    example = _example(tf, *batches.at(step), most)
                    writer.write(example.SerializeToString(deterministic=True))

        replace_file(path, write)
    return paths


def _example(tf, x, y, most):
    """Returns one instance as an `Example`."""
    labels = y["mlm"] if isinstance(y, dict) else y
    count = int((x["mask_positions"][0] > 0).sum())
    # A word longer than all that may be masked is masked where there is no other.
    width = max(most, count)
    arrays = {name: x[key][0] for key, name in _INPUTS.items() if key != _POSITIONS}
    for name, values in ((_INPUTS[_POSITIONS], x[_POSITIONS]), (_LABELS, labels)):
        arrays[name] = np.pad(values[0, :count], (0, width - count))
    arrays[_NEXT] = y["nsp"] if isinstance(y, dict) else np.zeros(1, np.int32)
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))
        for name, values in arrays.items()
    }
    weights = np.arange(width) < count
    features[_WEIGHTS] = tf.train.Feature(
        float_list=tf.train.FloatList(value=weights.astype(float).tolist())
    )
    return tf.train.Example(features=tf.train.Features(feature=features))


def read_tfrecords(
    paths: str | os.PathLike | Sequence[str | os.PathLike],
    batch_size: int = 256,
    *,
    shuffle: int = 0,
    seed: int = 0,
):
    """Reads Google's TFRecord files as batches for `BertPretrainer.fit`.

    Args:
        paths: the files.
        batch_size: instances a batch; what is left over at the end is left out, as all
            batches are to be alike.
        shuffle: how many instances are kept to choose the next one from; 0 for the
            order of the files.
        seed: of that choice.

    Returns:
        A `tf.data.Dataset` of `(x, y)`; pass `steps_per_epoch` to `fit`.

    Raises:
        ValueError: if a file is empty or has other features.
        ImportError: if TensorFlow is missing.
    """
    tf = _tensorflow()
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    names = [os.fspath(path) for path in paths]
    records = tf.data.TFRecordDataset(names)
    widths = _widths(tf, records, names)
    schema = {
        name: tf.io.FixedLenFeature([width], tf.int64) for name, width in widths.items()
    }
    schema[_NEXT] = tf.io.FixedLenFeature([], tf.int64)

    def parse(batch):
        parsed = tf.io.parse_example(batch, schema)
        parsed = {name: tf.cast(value, tf.int32) for name, value in parsed.items()}
        x = {key: parsed[name] for key, name in _INPUTS.items()}
        return x, {"mlm": parsed[_LABELS], "nsp": parsed[_NEXT]}

    if shuffle:
        records = records.shuffle(shuffle, seed=seed)
    return records.batch(batch_size, drop_remainder=True).map(parse)


def _widths(tf, records, names) -> dict[str, int]:
    """Returns how many numbers each feature has, from the first record."""
    wanted = [*_INPUTS.values(), _LABELS, _NEXT]
    for record in records.take(1).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        widths = {
            name: len(features[name].int64_list.value)
            for name in wanted
            if name in features
        }
        if len(widths) == len(wanted) and all(widths.values()):
            return widths
        raise ValueError(
            f"A TFRecord file of instances must have the features {wanted}. Received: "
            f"{names[0]} with {sorted(features)}."
        )
    raise ValueError(
        f"There must be at least one instance. Received: {names}, without a record."
    )


def _tensorflow():
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(
            "TFRecord files are written and read by TensorFlow. To install it: "
            "pip install 'keras-kbert[tensorflow]'. On other backends pass the folder "
            "of instances to InstanceBatches."
        ) from error
    return tensorflow
