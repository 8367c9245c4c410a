"""Texts of which every token is to be answered for, laid for Keras's `predict`."""

import dataclasses
import functools

import numpy as np

from kbert.tasks import feeds
from kbert.tasks.word_feed import one_width


@dataclasses.dataclass(frozen=True)
class Tokens:
    """N encoded texts in rows of one width.

    Args:
        texts: the texts.
    """

    texts: feeds.Texts

    def predict_arguments(self, batch_size) -> dict:
        """Returns the data arguments of Keras's `predict`."""
        return self.texts.predict_arguments(batch_size)

    def single_batch(self, choose_width=int) -> tuple:
        """Returns all texts as one batch; see `Texts.single_batch`."""
        return self.texts.single_batch(choose_width)

    def restore(self, outputs, arguments) -> np.ndarray:
        """Returns the output (N, S, …) at every text's positions, 0 behind its end."""
        values = arguments["x"].collect(outputs)
        return feeds.padded(values, self.texts.encoded.lengths)


def tokens_of(task, encoded) -> Tokens:
    """Returns encoded texts as a task reads them to predict.

    Args:
        task: the `BertTask`.
        encoded: an `EncodedTexts`.
    """
    return Tokens(
        feeds.Texts(
            encoded,
            None,
            None,
            task.backbone.config.pad_token_id,
            functools.partial(one_width, task, False),
        )
    )
