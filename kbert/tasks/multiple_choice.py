"""Multiple choice: the likeliest of several continuations or answers (section 4.4)."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from kbert.layers.heads import RULED_OUT, ChoiceLogits
from kbert.preprocessing import choices as choice_codes
from kbert.preprocessing.labels import check_weights
from kbert.preprocessing.raw_text import is_raw
from kbert.tasks import feeding
from kbert.tasks.base import BertTask
from kbert.tasks.class_heads import class_logits, class_weights
from kbert.tasks.compiling import layout_for
from kbert.tasks.feeds import Texts
from kbert.tasks.replicas import check_one_device


@dataclasses.dataclass(frozen=True)
class Choice:
    """The answer for one prompt.

    Args:
        index: of the likeliest choice.
        text: the choice itself.
        probability: its probability.
        probabilities: those of all choices, in their order, which sum to 1.
    """

    index: int
    text: str
    probability: float
    probabilities: tuple[float, ...] = dataclasses.field(repr=False, default=())


@keras.saving.register_keras_serializable(package="kbert")
class BertMultipleChoice(BertTask):
    """Dropout and a dense layer on the pooled [CLS], one logit a choice.

    Raw x is `(prompts, choices)`, N texts and for each a list of two texts or more;
    their number may differ from prompt to prompt, and a prompt and a choice that are
    too long together are cut by the preprocessor's rule. y is the index of the right
    choice. A batch holds whole examples, one choice a row. In a dataset every batch
    must have as many choices at most as the first; to predict, any number.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only.
        dropout: rate in front of the dense layer; None for the config's.
        name: of the model.

    `from_preset` takes `dropout` and `long_text`.

    Call arguments, a dictionary: those of `BertBackbone`, (N * K, S) each, and
        first_positions: int32 (N * K,), where each text's [CLS] lies in the rows laid
            end to end; absent or None for one text a row.
        choice_mask: int32 (N, K), 0 where an example has no choice; absent or None
            for rows that are examples of their own.

    Returns:
        Logits, float32 (N, K), -1e9 where an example has no choice. `fit`, `evaluate`
        and `predict` take ready arrays (N, K, S), as transformers has them.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> model = BertMultipleChoice(backbone)
    >>> ids = np.array([[[2, 5, 3, 6, 3], [2, 5, 3, 7, 3]]], "int32")
    >>> segments = np.array([[[0, 0, 0, 1, 1]] * 2], "int32")
    >>> model.predict({"token_ids": ids, "segment_ids": segments,
    ...     "padding_mask": np.ones_like(ids)}, verbose=0).shape
    (1, 2)

    Reference: Devlin et al. 2018, section 4.4.
    """

    optional_inputs = ("first_positions", "choice_mask")
    behind_end = RULED_OUT
    preset_arguments = ("dropout", "long_text")

    def __init__(
        self, backbone, preprocessor=None, *, dropout=None, name=None, **kwargs
    ):
        config = backbone.config
        if dropout is None:
            dropout = config.head_dropout
        inputs = dict(backbone.input)
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        choice_mask = keras.Input(
            (None,), dtype="int32", optional=True, name="choice_mask"
        )
        pooled = backbone.pooled(inputs, first_positions)
        head, logits = class_logits(pooled, 1, dropout, config)
        logits = ChoiceLogits(dtype="float32", name="choices")(logits, choice_mask)
        super().__init__(
            {**inputs, "first_positions": first_positions, "choice_mask": choice_mask},
            logits,
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        self.dropout = dropout
        self.head = head
        self.compile()

    def choose(self, prompt, choices, batch_size=None):
        """Chooses among the choices of a prompt, or of each of several.

        Args:
            prompt: a text, or a list of texts.
            choices: a list of texts; for several prompts a list of such lists.
            batch_size: prompts a step.

        Returns:
            A list with a `Choice` for each prompt.
        """
        if isinstance(prompt, str | bytes):
            prompt, choices = [prompt], [choices]
        prompts, choices = choice_codes.read_choices((prompt, choices))
        logits = self.predict((prompts, choices), batch_size=batch_size, verbose=0)
        rows = ops.convert_to_numpy(ops.softmax(logits, axis=-1))
        answers = []
        for texts, row in zip(choices, rows, strict=True):
            likely = tuple(map(float, row[: len(texts)]))
            best = int(np.argmax(likely))
            text = texts[best]
            if isinstance(text, bytes):
                text = text.decode()
            answers.append(Choice(best, str(text), likely[best], likely))
        return answers

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns prompts with choices, or ready arrays; see `BertTask.read`."""
        check_one_device(self)
        if is_raw(x):
            encoded = choice_codes.encode_choices(x, self.require_preprocessor())
        else:
            arrays = feeding.grouped_arrays(x, self.backbone.config)
            encoded = choice_codes.choices_of_arrays(arrays)
        if y is not None:
            y = choice_codes.encode_answers(y, encoded.counts)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(encoded))
        return Texts(
            encoded,
            y,
            sample_weight,
            pad_id=self.backbone.config.pad_token_id,
            choose_layout=functools.partial(layout_for, self, training, packs=False),
            lay=choice_codes.lay_choices,
        )

    def default_loss(self):
        """Returns the cross-entropy over the choices."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self):
        """Returns the accuracy."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable}."""
        return class_weights(self.head)

    def hugging_face_head(self):
        """Returns what transformers' `BertForMultipleChoice` reads."""
        return {
            "architectures": ["BertForMultipleChoice"],
            "classifier_dropout": self.backbone.config.told_dropout(self.dropout),
        }

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "dropout": self.dropout}
