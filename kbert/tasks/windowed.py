"""What a question answerer learns from and says of windows, one window a row."""

import dataclasses
import functools
import math
import numbers
import warnings
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from kbert.layers.heads import RULED_OUT
from kbert.metrics import squad
from kbert.preprocessing.best_spans import best_spans, choose
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.layouts import SingleRows
from kbert.preprocessing.raw_text import PAIR_HINT, read_raw
from kbert.preprocessing.spans import Windows, find_targets, make_windows
from kbert.tasks.compiling import layout_for
from kbert.tasks.feeding import concatenate
from kbert.tasks.feeds import BATCH_SIZE, Arrays, Texts
from kbert.tasks.fitting import tell

_NAMED = 5


class SpanLogits(NamedTuple):
    """What a question answerer's `predict` returns, for W windows of S positions.

    Args:
        start: logits of an answer's first token, float32 (W, S); -1e9 outside of the
            context, but at [CLS].
        end: logits of its last token, the same.
        examples: the question that each window is of, int64 (W,).
    """

    start: np.ndarray
    end: np.ndarray
    examples: np.ndarray


def span_logits(computed, examples) -> SpanLogits:
    """Splits logits, float32 (W, 2, S), into those of starts and of ends."""
    return SpanLogits(computed[:, 0], computed[:, 1], examples)


def joined(parts) -> SpanLogits:
    """Joins the `SpanLogits` of batches; their questions are counted on."""
    numbers, count = [], 0
    for part in parts:
        numbers.append(part.examples + count)
        count += part.examples[-1] + 1  # every question has a window
    starts, ends = (
        concatenate([part[index] for part in parts], RULED_OUT) for index in (0, 1)
    )
    return SpanLogits(starts, ends, np.concatenate(numbers))


def cut(task, x) -> Windows:
    """Cuts raw `(questions, contexts)` into the windows that a task reads.

    Args:
        task: the `BertQuestionAnswerer`.
        x: two lists of N texts, or a dictionary of such.

    Raises:
        TypeError, ValueError: if `x` is no pair of texts, or a question leaves no room
            for its context.
    """
    task.require_preprocessor()
    pairs = read_raw(x)
    if pairs.second is None:
        raise ValueError(
            f"Every question needs a context: x=(questions, contexts). {PAIR_HINT} "
            "Received: single texts."
        )
    max_length = task.preprocessor.max_length
    return make_windows(
        pairs.first,
        pairs.second,
        task.preprocessor.tokenizer,
        max_length=max_length,
        doc_stride=task.doc_stride or max(1, max_length // 3),
    )


def texts(task, windows: Windows, gold, sample_weight, *, training=False) -> Texts:
    """Returns windows with their targets.

    Questions that nothing can be learned from are left out, told in a warning.

    Args:
        task: the `BertQuestionAnswerer`.
        windows: W windows of N questions.
        gold: N lists of `Answer`s, or None.
        sample_weight: one weight a question, which each of its windows gets; or None.
        training: whether this is for a `fit`.

    Raises:
        ValueError: if no question is left, or the weights are not N.
    """
    weights = window_weights(windows, sample_weight)
    positions, kept = None, np.arange(len(windows))
    if gold is not None:
        positions, kept = targets(windows, gold)
        if not kept.size:
            raise ValueError(
                "At least one question must have its answer where it says, or none. "
                f"Received: {len(gold)} questions without."
            )
        positions = positions[kept]
    return Texts(
        windows.encoded.select(kept),
        positions,
        None if weights is None else weights[kept],
        pad_id=task.backbone.config.pad_token_id,
        choose_layout=functools.partial(layout_for, task, training, packs=False),
        examples=windows.examples[kept],
    )


def targets(windows: Windows, gold) -> tuple[np.ndarray, np.ndarray]:
    """Returns where the answers lie, int32 (W, 2), and which windows have such.

    Args:
        windows: W windows of N questions.
        gold: N lists of `Answer`s.
    """
    found = find_targets(windows, gold)
    if found.unplaced:
        warnings.warn(
            f"{len(found.unplaced):,} of {len(gold):,} questions are left out, since "
            "their answer does not stand in the context where its start says "
            f"({_named(found.unplaced)}).",
            stacklevel=2,
        )
    if found.cut:
        warnings.warn(
            f"{len(found.cut):,} of {len(gold):,} answers are longer than what two "
            f"windows share and lie in none as a whole ({_named(found.cut)}): there "
            "the answer is [CLS]. Make the windows longer or `doc_stride` shorter.",
            stacklevel=2,
        )
    return found.positions, np.flatnonzero(~np.isin(windows.examples, found.unplaced))


def _named(examples) -> str:
    more = f" and {len(examples) - _NAMED:,} more" if len(examples) > _NAMED else ""
    return f"number {', '.join(map(str, examples[:_NAMED]))}{more}"


def window_weights(windows: Windows, sample_weight) -> np.ndarray | None:
    """Returns the weight of its question for each window, float32 (W, 1), or None.

    The second axis is that of start and end, which Keras takes the same weight for.
    """
    if sample_weight is None:
        return None
    count = len(windows.contexts)
    return check_weights(sample_weight, count, "sample_weight")[windows.examples, None]


def check_positions(y, count: int) -> np.ndarray:
    """Returns the positions of answers in ready rows as int32 (W, 2).

    Raises:
        ValueError: if they are not two integers a row, in order and not negative.
    """
    positions = np.asarray(y)
    if positions.shape != (count, 2) or positions.dtype.kind not in "iu":
        raise ValueError(
            "With ready arrays `y` must be the positions of the first and the last "
            f"token, integers ({count}, 2). Received: {positions.dtype} "
            f"{positions.shape}."
        )
    wrong = (positions[:, 0] < 0) | (positions[:, 1] < positions[:, 0])
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            "An answer must start at a position of its row and not end before. "
            f"Received: {positions[row].tolist()} in row {row}."
        )
    return positions.astype(np.int32)


def checked(arrays) -> Arrays:
    """Returns ready arrays with weights as in `window_weights`.

    Raises:
        ValueError: if an answer ends behind its row, on which the backends would
            differ, some of them in silence.
    """
    width = arrays.x["token_ids"].shape[1]
    if arrays.y is not None and arrays.y.max() >= width:
        raise ValueError(
            f"An answer must end at one of the {width} positions of its row. Received: "
            f"position {arrays.y.max()} in row {int(arrays.y[:, 1].argmax())}."
        )
    if arrays.sample_weight is None:
        return arrays
    return dataclasses.replace(arrays, sample_weight=arrays.sample_weight[:, None])


def logits(
    task, windows: Windows, batch_size=None, verbose: Any = "auto", callbacks=None
) -> np.ndarray:
    """Returns the logits of windows, each computed in rows about as wide as it is.

    Args:
        task: the `BertQuestionAnswerer`.
        windows: W windows.
        batch_size: windows a step; None for what `predict` takes.
        verbose: as in Keras.
        callbacks: as in Keras.

    Returns:
        Float32 (W, 2, S), S as wide as the longest needs.
    """
    lengths = windows.encoded.lengths
    layout: Any = layout_for(
        task, False, lengths, batch_size or BATCH_SIZE, "free", 1, packs=False
    )
    of_width = np.searchsorted(layout.widths, lengths)
    filled = np.full((len(windows), 2, layout.widths[-1]), RULED_OUT, np.float32)
    for number, width in enumerate(layout.widths):
        which = np.flatnonzero(of_width == number)
        if not which.size:
            continue
        part = Texts(
            windows.encoded.select(which),
            None,
            None,
            pad_id=task.backbone.config.pad_token_id,
            choose_layout=functools.partial(_rows_of, width, layout.shape_price),
        )
        arguments = part.predict_arguments(batch_size)
        # Keras joins what batches return, so they must be of one width.
        outputs = keras.Model.predict(
            task, **arguments, verbose=verbose, callbacks=callbacks
        )
        filled[which, :, :width] = part.restore(outputs, arguments)
    return filled


def _rows_of(width, shape_price, *_) -> SingleRows:
    return SingleRows([width], shape_price)


def measured(task, windows: Windows, gold, weights, computed) -> dict[str, float]:
    """Returns the loss and the compiled metrics of logits, by name.

    Args:
        task: the `BertQuestionAnswerer`.
        windows: W windows of N questions.
        gold: N lists of `Answer`s.
        weights: float (W, 1), or None.
        computed: the logits, float (W, 2, S).
    """
    positions, kept = targets(windows, gold)
    if not kept.size:
        return {"loss": math.nan}
    y = ops.convert_to_tensor(positions[kept])
    y_pred = ops.convert_to_tensor(computed[kept])
    if weights is not None:
        weights = ops.convert_to_tensor(weights[kept])
    task.reset_metrics()
    loss = task.compute_loss(None, y, y_pred, weights, training=False)
    metrics = task.compute_metrics(None, y, y_pred, weights)
    task.reset_metrics()
    return {name: float(value) for name, value in {**metrics, "loss": loss}.items()}


def scored(task, windows: Windows, gold, computed, verbose) -> dict[str, float]:
    """Returns the official scores of the answers that logits give, in percent.

    Args:
        task: the `BertQuestionAnswerer`.
        windows: W windows of N questions.
        gold: N lists of `Answer`s, [] where the context holds none; if there is such a
            one and the task has no threshold, 0 is taken, which is told.
        computed: the logits, float (W, 2, S).
        verbose: 0 to say nothing.
    """
    threshold = task.null_threshold
    if threshold is None and not all(gold):
        threshold = 0.0
        tell(verbose, "Some questions have no answer: null_threshold=0 is taken.")
    answers = [choose(each, threshold).text for each in best(task, windows, computed)]
    texts = [[answer.text for answer in answers] for answers in gold]
    return squad.squad_scores(answers, texts)


def best_threshold(task, windows: Windows, gold, computed) -> squad.Threshold:
    """Returns the `null_threshold` with the best F1.

    Args:
        task: the `BertQuestionAnswerer`.
        windows: W windows of N questions.
        gold: N lists of `Answer`s, [] where the context holds none.
        computed: the logits, float (W, 2, S).
    """
    answers = [choose(each, None) for each in best(task, windows, computed)]
    texts = [[answer.text for answer in answers] for answers in gold]
    _, f1 = squad.answer_scores([answer.text for answer in answers], texts)
    margins = [answer.null_score - answer.score for answer in answers]
    has_answer = [bool(answers) for answers in gold]
    return squad.best_threshold(f1, np.array(has_answer), np.array(margins))


def best(task, windows: Windows, computed):
    """Returns the best spans of every question, one after another; see `best_spans`."""
    start, end = computed.swapaxes(0, 1)
    return best_spans(
        windows,
        start,
        end,
        n_best_size=task.n_best_size,
        max_answer_length=task.max_answer_length,
    )


def check_settings(config, **settings):
    """Refuses a backbone or settings with which no answer could be found.

    Args:
        config: the backbone's `BertConfig`.
        **settings: positive integers by name; `doc_stride` may be None.

    Raises:
        ValueError: naming what came.
    """
    if config.num_segments < 2:
        raise ValueError(
            "Question and context need a segment each. Received: a backbone with "
            f"num_segments={config.num_segments}."
        )
    for name, value in settings.items():
        integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not (integer and int(value) >= 1) and not (
            name == "doc_stride" and value is None
        ):
            raise ValueError(
                f"`{name}` must be an integer of at least 1. Received: {value!r}."
            )
