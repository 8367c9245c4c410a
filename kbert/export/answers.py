"""From logits to a person's answer, as TensorFlow tensors; see `saved_model`."""


def single_label(logits, probabilities, labels) -> dict:
    """Returns the outputs of a text of which exactly one label is true.

    Args:
        logits: float32 (B, C).
        probabilities: float32 (B, C), which sum to 1.
        labels: C names.
    """
    import tensorflow as tf

    likeliest = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
    return {
        "label": tf.gather(tf.constant(labels), likeliest),
        **_columns(logits, probabilities, labels),
    }


def multi_label(logits, probabilities, labels) -> dict:
    """Returns the outputs of a text of which any number of labels may be true.

    Args:
        logits: float32 (B, C).
        probabilities: float32 (B, C), each in [0, 1].
        labels: C names.
    """
    return {
        "selected": probabilities >= 0.5,
        **_columns(logits, probabilities, labels),
    }


def regression(values) -> dict:
    """Returns the outputs of a text of which a number is asked.

    Args:
        values: float32 (B, 1).
    """
    return {"value": values[:, 0]}


def _columns(logits, probabilities, labels) -> dict:
    import tensorflow as tf

    return {
        "probabilities": probabilities,
        "logits": logits,
        "labels": tf.broadcast_to(tf.constant(labels), tf.shape(logits)),
    }
