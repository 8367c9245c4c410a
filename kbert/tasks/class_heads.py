"""What the tasks with logits of classes share: the head, and its names in files."""

import keras


def class_logits(x, num_classes, dropout, config):
    """Puts dropout and a dense layer on vectors.

    Args:
        x: symbolic float (…, H).
        num_classes: C.
        dropout: rate in front of the dense layer.
        config: the backbone's `BertConfig`.

    Returns:
        The dense layer, and the logits, symbolic float32 (…, C).
    """
    head = keras.layers.Dense(
        num_classes,
        kernel_initializer=keras.initializers.TruncatedNormal(
            stddev=config.initializer_range
        ),
        # In every policy: the loss is computed from these.
        dtype="float32",
        name="classifier",
    )
    return head, head(keras.layers.Dropout(dropout, name="classifier_dropout")(x))


def class_weights(head) -> dict:
    """Returns {path of `checkpoints/names.py`: variable} of the dense layer."""
    return {"classifier/kernel": head.kernel, "classifier/bias": head.bias}
