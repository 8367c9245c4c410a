"""A task as a TensorFlow SavedModel: text in, the person's answer out.

The graph is made of core TensorFlow ops, tokenizer included, so that the stock session
loader runs the folder as it is: in TensorFlow Serving, in `saved_model_cli`, or in the
C, Java and Go runtimes.

Signatures. B is any number of texts, 0 too; S is any length up to the model's
positions.

| signature         | inputs                                                 |
|-------------------|--------------------------------------------------------|
| `serving_default` | `text`: string (B,)                                    |
| `pairs`           | `first`, `second`: string (B,) each                    |
| `ids`             | `token_ids`, `segment_ids`, `padding_mask`: int32 (B, S) |

A text that is too long is shortened by the preprocessor's rule (`sequence_length`,
`long_text`); bytes that are not UTF-8 are dropped. `ids` takes one text a row, with a
`padding_mask` of 1 for text and 0 for padding. A model with one segment has no `pairs`.

Outputs of a classifier, the same for each signature. C is the number of labels.

| output          | single_label | multi_label | regression | type           |
|-----------------|--------------|-------------|------------|----------------|
| `label`         | the likeliest |            |            | string (B,)    |
| `selected`      |              | probability at least one half | | bool (B, C) |
| `probabilities` | sum to 1     | each by itself |         | float32 (B, C) |
| `logits`        | yes          | yes         |            | float32 (B, C) |
| `labels`        | names of the columns | names of the columns | | string (B, C) |
| `value`         |              |             | the number | float32 (B,)   |

An embedder has one output, `embedding`: float32 (B, H).

`labels` repeats the names in every row, since servers that batch requests or answer row
by row expect the first axis of every output to be the batch.
"""

import shutil
from pathlib import Path

from kbert.files import replace_folder

TEXT, PAIRS, IDS = "serving_default", "pairs", "ids"

# The file by which a folder is known to be a SavedModel.
_MARK = "saved_model.pb"


def check_target(folder) -> Path:
    """Returns where to write to; refuses to replace what is not a SavedModel.

    Args:
        folder: a path that is free, an empty folder, or a SavedModel.

    Raises:
        ValueError: if anything else is there.
    """
    target = Path(folder).expanduser().resolve()
    if not target.exists() or (target / _MARK).is_file():
        return target
    content = sorted(target.iterdir()) if target.is_dir() else [target]
    if content:
        raise ValueError(
            "The path to export to must be free, an empty folder, or a SavedModel to "
            f"replace. Received: {target}, with {content[0].name!r}. Name another one."
        )
    return target


def write_saved_model(folder, task) -> None:
    """Writes a SavedModel, whole or not at all.

    Args:
        folder: where to; an existing SavedModel is replaced.
        task: a `BertTask` with a preprocessor, on the TensorFlow backend.

    Raises:
        ValueError: if something that is not a SavedModel is at `folder`.
    """
    import tensorflow as tf

    target = check_target(folder)
    weights = [weight.value for weight in task.weights]
    module = tf.Module()
    module.weights = weights  # pyright: ignore[reportAttributeAccessIssue]
    functions = signatures(task)

    def write(new: Path) -> None:
        for old in new.iterdir():  # folders of the old export, emptied
            shutil.rmtree(old)
        tf.saved_model.save(module, str(new), functions)

    replace_folder(target, write, keep=lambda filename: False)


def signatures(task) -> dict:
    """Returns {name: function} as in the table above, each with its input signature.

    Args:
        task: as for `write_saved_model`.
    """
    import tensorflow as tf

    def function(dtype, rank, *names):
        """Fixes the inputs: tensors of any size with these names."""
        spec = [tf.TensorSpec([None] * rank, dtype, name) for name in names]
        return tf.function(input_signature=spec, autograph=False)

    @function(tf.int32, 2, "token_ids", "segment_ids", "padding_mask")
    def from_ids(token_ids, segment_ids, padding_mask):
        inputs = {
            "token_ids": token_ids,
            "segment_ids": segment_ids,
            "padding_mask": padding_mask,
        }
        return task.serving_outputs(task(inputs, training=False))

    def from_packed(packed):
        # No text makes a batch without a column, hence without a [CLS] to look at.
        shape = tf.maximum(tf.shape(packed["token_ids"]), [0, 1])
        return from_ids(
            **{name: tf.reshape(tensor, shape) for name, tensor in packed.items()}
        )

    @function(tf.string, 1, "text")
    def from_text(text):
        return from_packed(task.preprocessor(text))

    @function(tf.string, 1, "first", "second")
    def from_pairs(first, second):
        return from_packed(task.preprocessor((first, second)))

    found = {TEXT: from_text, PAIRS: from_pairs, IDS: from_ids}
    if task.backbone.config.num_segments < 2:
        del found[PAIRS]
    return found
