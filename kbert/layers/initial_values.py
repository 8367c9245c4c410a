"""How the encoder's new weights are drawn, unless a file is about to give them."""

import contextlib
import contextvars
from collections.abc import Iterator

import keras

_DRAWN = contextvars.ContextVar("drawn", default=True)


def truncated_normal(stddev):
    """Returns the initializer of the encoder's kernels and embeddings.

    Args:
        stddev: standard deviation, `initializer_range` of the configuration; what lies
            beyond two of them is drawn again.

    Reference: google-research/bert `modeling.py`, `create_initializer`.
    """
    # Made in any case: it draws a seed, on which those of later layers depend.
    random = keras.initializers.TruncatedNormal(stddev=stddev)
    return random if _DRAWN.get() else keras.initializers.Zeros()


@contextlib.contextmanager
def drawn(wanted: bool) -> Iterator[None]:
    """Decides for the encoders that are made inside.

    Args:
        wanted: whether their weights are drawn. Else they are zeros, for a file to
            give them all: BERT-base's take longer to draw than to read.
    """
    token = _DRAWN.set(wanted)
    try:
        yield
    finally:
        _DRAWN.reset(token)
