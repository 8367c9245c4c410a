"""Text classification, single texts and pairs (section 4.1)."""

import dataclasses

import keras
from keras import ops

from kbert.export import answers as served
from kbert.preprocessing import class_names
from kbert.preprocessing import labels as label_codes
from kbert.tasks import saving
from kbert.tasks.base import BertTask
from kbert.tasks.class_heads import class_logits, class_weights

# Ours: transformers' `problem_type`.
_PROBLEM_TYPES = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}
_HINT = (
    'Where a number is asked, use problem="regression"; for one yes or no, '
    'problem="multi_label".'
)


@dataclasses.dataclass(frozen=True)
class Classification:
    """The answer for one text of which exactly one label is true.

    Args:
        label: the likeliest.
        probability: its probability.
        probabilities: {label: probability}, which sum to 1.
    """

    label: str
    probability: float
    probabilities: dict[str, float] = dataclasses.field(
        repr=False, default_factory=dict
    )


@dataclasses.dataclass(frozen=True)
class MultiLabelClassification:
    """The answer for one text of which any number of labels may be true.

    Args:
        labels: those with a probability of at least one half.
        probabilities: {label: probability}, each by itself.
    """

    labels: tuple[str, ...]
    probabilities: dict[str, float] = dataclasses.field(
        repr=False, default_factory=dict
    )


@dataclasses.dataclass(frozen=True)
class Regression:
    """The answer for one text of which a number is asked.

    Args:
        value: the number.
    """

    value: float


@keras.saving.register_keras_serializable(package="kbert")
class BertClassifier(BertTask):
    """Dropout and a dense layer on the pooled [CLS], one logit a class.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only.
        labels: the names of the classes, in the order of the logits.
        num_classes: C, instead of `labels`; the names are LABEL_0, LABEL_1, …
        problem: "single_label": exactly one class is true; "multi_label": any number;
            "regression": one number, no classes.
        dropout: rate in front of the dense layer; None for the config's.
        name: of the model.

    `from_preset` takes `labels`, `num_classes`, `problem`, `dropout` and `long_text`. A
    head that the preset holds is used unless other labels or another problem are asked
    for.

    Call arguments, a dictionary: those of `BertBackbone`, and
        first_positions: int32 (texts,), where each text's [CLS] lies in the rows laid
            end to end; absent or None for one text a row.

    Returns:
        Logits, float32 (texts, C); for a regression the numbers, (texts, 1).

    Raises:
        TypeError: if `num_classes` is no integer.
        ValueError: if the labels are fewer than two or not distinct, given for a
            regression, or contradict `num_classes`.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> classifier = BertClassifier(backbone, labels=["negative", "positive"])
    >>> ids = np.array([[2, 5, 3, 0]], "int32")
    >>> inputs = {"token_ids": ids, "padding_mask": np.array([[1, 1, 1, 0]], "int32")}
    >>> classifier.predict(inputs, verbose=0).shape
    (1, 2)

    Reference: Devlin et al. 2018, section 4.1; Google's `run_classifier.py`.
    """

    is_served = True
    preset_arguments = ("labels", "num_classes", "problem", "dropout", "long_text")

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        labels=None,
        num_classes=None,
        problem="single_label",
        dropout=None,
        name=None,
        **kwargs,
    ):
        labels = _check_labels(labels, num_classes, problem)
        config = backbone.config
        if dropout is None:
            dropout = config.head_dropout
        inputs = dict(backbone.input)
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        pooled = backbone.pooled(inputs, first_positions)
        head, logits = class_logits(pooled, max(len(labels), 1), dropout, config)
        super().__init__(
            {**inputs, "first_positions": first_positions},
            logits,
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        self.labels = labels
        self.problem = problem
        self.dropout = dropout
        self.head = head
        self.compile()

    def classify(self, texts, batch_size=None):
        """Answers for every text, in order.

        Args:
            texts: a text, a list of texts, or a pair `(firsts, seconds)`.
            batch_size: texts a step.

        Returns:
            A list with, a text, a `Classification`, a `MultiLabelClassification` or,
            for a regression, a `Regression`.
        """
        logits = self.predict(texts, batch_size=batch_size, verbose=0)
        if self.problem == "regression":
            return [Regression(float(value)) for (value,) in logits]
        probabilities = ops.convert_to_numpy(self.probabilities(logits))
        answers = [
            dict(zip(self.labels, map(float, row), strict=True))
            for row in probabilities
        ]
        if self.problem == "multi_label":
            return [
                MultiLabelClassification(
                    tuple(label for label, p in answer.items() if p >= 0.5), answer
                )
                for answer in answers
            ]
        likeliest = [max(answer, key=answer.__getitem__) for answer in answers]
        return [
            Classification(label, answer[label], answer)
            for label, answer in zip(likeliest, answers, strict=True)
        ]

    def probabilities(self, logits):
        """Returns the probabilities that logits (texts, C) stand for."""
        if self.problem == "multi_label":
            return ops.sigmoid(logits)
        return ops.softmax(logits, axis=-1)

    def serving_outputs(self, logits):
        """Returns the outputs that `kbert.export.saved_model` lists."""
        if self.problem == "regression":
            return served.regression(logits)
        probabilities = self.probabilities(logits)
        if self.problem == "multi_label":
            return served.multi_label(logits, probabilities, self.labels)
        return served.single_label(logits, probabilities, self.labels)

    def encode_targets(self, y, count, *, training):
        """Returns `y` as int32 (N,), float32 (N, C) or, for a regression, (N, 1)."""
        targets = label_codes.encode_labels(
            y, self.labels, problem=self.problem, count=count
        )
        if training and self.problem == "single_label":
            label_codes.check_several_classes(targets, self.labels)
        return targets

    def class_indices(self, class_weight):
        """Returns `class_weight` with labels replaced by their indices."""
        if self.problem != "single_label":
            raise ValueError(
                "`class_weight` needs one class a text. Received: "
                f"problem={self.problem!r}. Use `sample_weight`."
            )
        return label_codes.encode_class_weight(class_weight, self.labels)

    def default_loss(self):
        """Returns cross-entropy, binary cross-entropy or the mean squared error."""
        if self.problem == "single_label":
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        if self.problem == "multi_label":
            return keras.losses.BinaryCrossentropy(from_logits=True)
        return keras.losses.MeanSquaredError()

    def default_metrics(self):
        """Returns accuracy, or, for a regression, the mean absolute error."""
        if self.problem == "single_label":
            return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        if self.problem == "multi_label":
            return [keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")]
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable}."""
        return class_weights(self.head)

    def hugging_face_head(self):
        """Returns what transformers' `BertForSequenceClassification` reads."""
        names = dict(enumerate(self.labels or ("LABEL_0",)))
        return {
            "architectures": ["BertForSequenceClassification"],
            "problem_type": _PROBLEM_TYPES[self.problem],
            "id2label": {str(index): name for index, name in names.items()},
            "label2id": {name: index for index, name in names.items()},
            "classifier_dropout": self.backbone.config.told_dropout(self.dropout),
        }

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "labels": list(self.labels) or None,
            "problem": self.problem,
            "dropout": self.dropout,
        }

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns labels and problem, those asked for or else those of the preset."""
        saved = saved_head(parts.config)
        head = {key: asked[key] for key in ("labels", "num_classes", "problem")}
        head = _asked_head(saved, **head)
        differs = ""
        if saved and not _same_head(saved, head):
            differs = f"{saved}, not for {head}"
        return {**head, "dropout": asked["dropout"]}, differs


def _check_labels(labels, num_classes, problem) -> tuple[str, ...]:
    """Returns the labels of a head, () for a regression."""
    label_codes.check_problem(problem)
    least = 2 if problem == "single_label" else 1
    if problem != "regression":
        return class_names.name_classes(labels, num_classes, at_least=least, hint=_HINT)
    class_names.check_number(num_classes, least, _HINT)
    if labels or num_classes not in (None, 1):
        raise ValueError(
            "A regression has no classes. Received: "
            f"labels={labels!r}, num_classes={num_classes!r}."
        )
    return ()


def saved_head(config) -> dict | None:
    """Returns the labels and problem of the head in a `config.json`, None if none."""
    labels = saving.saved_labels(config, "BertForSequenceClassification")
    if labels is None:
        return None
    types = {theirs: ours for ours, theirs in _PROBLEM_TYPES.items()}
    guess = "regression" if len(labels) == 1 else "single_label"
    problem = types.get(config.get("problem_type"), guess)
    return {"labels": None if problem == "regression" else labels, "problem": problem}


def _asked_head(saved, labels, num_classes, problem) -> dict:
    """Returns labels and problem: what was asked for, else what the preset says."""
    problem = problem or (saved["problem"] if saved else "single_label")
    if labels is None and num_classes is None and saved and problem != "regression":
        labels = saved["labels"]
    return {"labels": labels, "num_classes": num_classes, "problem": problem}


def _same_head(saved, asked) -> bool:
    """Whether a saved head means what was asked for.

    Nameless classes (LABEL_0, LABEL_1, …) take any names of the same number.
    """
    labels = _check_labels(**asked)
    if saved["problem"] != asked["problem"]:
        return False
    return class_names.same_names(saved["labels"] or (), labels)
