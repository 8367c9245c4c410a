"""Answers to questions as spans of a context (sections 4.2 and 4.3)."""

import math
import numbers

import keras
import numpy as np

from kbert.layers.heads import SpanHead
from kbert.preprocessing.best_spans import choose
from kbert.preprocessing.gold_answers import read_answers
from kbert.preprocessing.raw_text import is_raw
from kbert.preprocessing.spans import Windows
from kbert.tasks import feeding, windowed
from kbert.tasks.base import BertTask

# Of run_squad.py: positions of a window, where nothing else is said.
_WINDOW = 384


@keras.saving.register_keras_serializable(package="kbert")
class BertQuestionAnswerer(BertTask):
    """Two vectors, S and E: where in the context the answer starts, and where it ends.

    Raw x is a pair `(questions, contexts)`. A context that is too long is read in
    windows of the preprocessor's length. y holds, for each question, the answer's text
    and the index of its first character in the context, `("May", 10)`; or a list of
    such, of which the loss takes the first, `[]` where the context holds no answer.
    A window without the answer points to [CLS]. With ready arrays y is int (W, 2), the
    positions of the first and the last token.

    Args:
        backbone: a `BertBackbone` with at least two segments. Its pooler is no part of
            the model: it is not trained, loaded or saved.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only.
        doc_stride: tokens of the context from one window to the next; None for a third
            of a window's positions, as in run_squad.py (128 of 384).
        n_best_size: starts and ends that are combined, and spans that are kept.
        max_answer_length: most tokens of an answer.
        null_threshold: no answer is given where `null_score - score` is more; None to
            answer always. `fit` on texts sets it to 0 if some question has no answer,
            and `tune_null_threshold` finds the best one.
        name: of the model.

    `from_preset` takes the settings `doc_stride`, `n_best_size`, `max_answer_length`
    and `null_threshold`; windows have 384 positions, if the model has as many, where
    neither `sequence_length` nor the preset says.

    Call arguments, a dictionary: those of `BertBackbone`, one text a row.

    Returns:
        Logits, float32 (W, 2, S), of starts and ends; see `kbert.layers.SpanHead`. The
        loss is the mean of both cross-entropies, as in run_squad.py.

    Raises:
        ValueError: if the backbone has one segment, or a setting is out of range.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> answerer = BertQuestionAnswerer(backbone)
    >>> inputs = {"token_ids": np.array([[2, 5, 3, 7, 8, 3]], "int32"),
    ...     "segment_ids": np.array([[0, 0, 0, 1, 1, 1]], "int32"),
    ...     "padding_mask": np.ones((1, 6), "int32")}
    >>> (answerer.predict(inputs, verbose=0).start > -1e9).tolist()
    [[True, False, False, True, True, False]]

    Reference: Devlin et al. 2018, sections 4.2 and 4.3; google-research/bert
    `run_squad.py`.
    """

    uses_pooler = False
    preset_arguments = (
        "doc_stride",
        "n_best_size",
        "max_answer_length",
        "null_threshold",
    )

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        doc_stride=None,
        n_best_size=20,
        max_answer_length=30,
        null_threshold=None,
        name=None,
        **kwargs,
    ):
        windowed.check_settings(
            backbone.config,
            doc_stride=doc_stride,
            n_best_size=n_best_size,
            max_answer_length=max_answer_length,
        )
        inputs = dict(backbone.input)
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        head = SpanHead(
            backbone.config.initializer_range, dtype="float32", name="spans"
        )
        logits = head(
            backbone.output["sequence_output"],
            inputs["segment_ids"],
            inputs["padding_mask"],
        )
        super().__init__(
            {**inputs, "first_positions": first_positions},
            logits,
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        self.head = head
        self.doc_stride = doc_stride
        self.n_best_size = n_best_size
        self.max_answer_length = max_answer_length
        self.null_threshold = null_threshold
        backbone.pooler.trainable = False
        self.compile()

    @property
    def null_threshold(self):
        """No answer is given where `null_score - score` is more; None for always."""
        return self._null_threshold

    @null_threshold.setter
    def null_threshold(self, value):
        if value is not None:
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise ValueError(
                    "`null_threshold` must be a finite number, or None to answer "
                    f"always. Received: {value!r}."
                )
            value = float(value)
        self._null_threshold = value

    def answer(self, questions, contexts, batch_size=None):
        """Answers every question from its context, in order.

        Args:
            questions: a question, or a list of them.
            contexts: a context, or a list with one for each question.
            batch_size: windows a step.

        Returns:
            A list with a `QuestionAnswer` a question.
        """
        windows = self.windows({"first": questions, "second": contexts})
        logits = windowed.logits(self, windows, batch_size, verbose=0)
        found = windowed.best(self, windows, logits)
        return [choose(each, self.null_threshold) for each in found]

    def windows(self, x) -> Windows:
        """Cuts raw `(questions, contexts)` into the windows that the model reads.

        Raises:
            TypeError, ValueError: if `x` is no pair, or a question fills a window.
        """
        return windowed.cut(self, x)

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        """Measures loss and metrics, and on texts the official scores of SQuAD.

        Arguments are those of `BertTask.evaluate`.

        Returns:
            The loss and metrics, a list or, with `return_dict`, a dictionary. For texts
            in lists it goes on with what `kbert.metrics.squad.squad_scores` returns, in
            percent: exact_match, f1, and, where some questions have no answer, both for
            those with and those without.
        """
        if kwargs or steps is not None or feeding.is_dataset(x) or not is_raw(x):
            return super().evaluate(
                x,
                y,
                batch_size,
                verbose,
                sample_weight,
                steps,
                callbacks,
                return_dict,
                **kwargs,
            )
        windows, gold = self._windows_and_gold(x, y)
        weights = windowed.window_weights(windows, sample_weight)
        logits = windowed.logits(self, windows, batch_size, verbose, callbacks)
        scores = windowed.measured(self, windows, gold, weights, logits)
        scores |= windowed.scored(self, windows, gold, logits, verbose)
        return scores if return_dict else list(scores.values())

    def tune_null_threshold(self, x, y, batch_size=None):
        """Finds the threshold with the best F1 on held-out questions, and keeps it.

        Args:
            x: `(questions, contexts)`.
            y: as for `evaluate`; some of the questions must have no answer.
            batch_size: windows a step.

        Returns:
            A `kbert.metrics.squad.Threshold`: the F1 in percent, and the threshold,
            which is `null_threshold` from now on and saved with the model.

        Raises:
            ValueError: if every question has an answer, or none has.
        """
        windows, gold = self._windows_and_gold(x, y)
        has_answer = np.array([bool(answers) for answers in gold])
        if has_answer.all() or not has_answer.any():
            raise ValueError(
                "A threshold is found on questions of which some have an answer and "
                f"some have none. Received: {len(gold)} questions, "
                f"{int(has_answer.sum())} with an answer."
            )
        logits = windowed.logits(self, windows, batch_size, verbose=0)
        found = windowed.best_threshold(self, windows, gold, logits)
        self.null_threshold = found.threshold
        return found

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """Returns the logits of every window, and the question that each is of.

        Args:
            x: `(questions, contexts)`; ready arrays, a window a row; or a dataset of
                batches of either, which are predicted one by one.
            batch_size: windows a step.
            verbose: as in Keras.
            steps: as in Keras; it goes with a dataset.
            callbacks: as in Keras.

        Returns:
            `kbert.tasks.windowed.SpanLogits`.

        Raises:
            TypeError, ValueError: if `x` is none of these.
        """
        if feeding.is_dataset(x):
            batches = feeding.raw_batches(x, steps)
            return windowed.joined(
                [self.predict(raw, batch_size, 0, None, callbacks) for raw in batches]
            )
        if not is_raw(x) or steps is not None:
            logits = super().predict(x, batch_size, verbose, steps, callbacks)
            return windowed.span_logits(logits, np.arange(len(logits)))
        windows = self.windows(x)
        logits = windowed.logits(self, windows, batch_size, verbose, callbacks)
        return windowed.span_logits(logits, windows.examples)

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns pairs of texts as windows, with positions as targets."""
        if not is_raw(x):
            arrays = feeding.read(self, x, y, sample_weight, training, targets)
            return windowed.checked(arrays)
        windows, gold = self.windows(x), None
        if y is not None:
            gold = read_answers(y, len(windows.contexts))
        texts = windowed.texts(self, windows, gold, sample_weight, training=training)
        if training and gold is not None and not all(gold):
            self.null_threshold = self.null_threshold or 0.0
        return texts

    def _windows_and_gold(self, x, y):
        windows = self.windows(x)
        if y is None:
            raise ValueError(
                "`y` must hold the answers to every question. Received: None."
            )
        return windows, read_answers(y, len(windows.contexts))

    def encode_targets(self, y, count, *, training):
        """Returns the positions of answers in ready arrays, int32 (W, 2)."""
        return windowed.check_positions(y, count)

    def default_loss(self):
        """Returns the cross-entropy of starts and ends, the mean of both."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self):
        """Returns the share of starts and ends that are right."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable}."""
        dense = self.head.dense
        return {"spans/kernel": dense.kernel, "spans/bias": dense.bias}

    def hugging_face_head(self):
        """Returns what transformers' `BertForQuestionAnswering` reads."""
        return {"architectures": ["BertForQuestionAnswering"]}

    def settings(self):
        """Returns the constructor's own arguments, which a preset keeps."""
        return {
            "doc_stride": self.doc_stride,
            "n_best_size": self.n_best_size,
            "max_answer_length": self.max_answer_length,
            "null_threshold": self.null_threshold,
        }

    def preset_metadata(self):
        """Returns the settings of answering."""
        return {"answering": self.settings()}

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self.settings()}

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the settings asked for, or else those of the preset.

        The preprocessor's length, where neither says one, is that of a window.
        """
        if parts.preprocessor.sequence_length is None:
            window = min(_WINDOW, parts.preprocessor.max_length)
            parts.preprocessor.sequence_length = window
        said = parts.preset.metadata().get("answering", {})
        told = {key: value for key, value in asked.items() if value is not None}
        return {**said, **told}, ""
