"""Tagging of words: named entities, parts of speech and the like (section 5.3)."""

import dataclasses

import keras
import numpy as np
from keras import ops

from kbert.backbone import INPUTS
from kbert.metrics import tagging
from kbert.preprocessing import class_names
from kbert.preprocessing import labels as label_codes
from kbert.preprocessing.raw_text import is_raw
from kbert.preprocessing.tags import check_several_tags, encode_tags
from kbert.preprocessing.words import encode_words, read_words
from kbert.tasks import saving, word_feed
from kbert.tasks.base import BertTask
from kbert.tasks.class_heads import class_logits, class_weights
from kbert.tasks.word_scores import EntityScores
from kbert.training.token_scores import TokenAccuracy, TokenCrossentropy


@dataclasses.dataclass(frozen=True)
class Entity:
    """A run of words of one type, found in a text.

    Args:
        label: the type, such as "LOC"; the tag where tags mark no entities.
        text: the characters of the original.
        start: index of the first of them in the text; where words came as a list, in
            these joined by single blanks.
        end: index behind the last of them.
        score: mean probability of the tags of its words.
        words: index of its first word, and index behind its last.
    """

    label: str
    text: str
    start: int
    end: int
    score: float
    words: tuple[int, int] = dataclasses.field(repr=False)


@keras.saving.register_keras_serializable(package="kbert")
class BertTokenClassifier(BertTask):
    """Dropout and a dense layer on every position; the first piece of a word counts.

    Raw text is a list of words a text, or a string, whose words end at blanks, at
    punctuation and round ideographs. A list of strings is several texts. Tags are
    names or indices, one a word; IOB1, BIO, IOBES and BILOU mark entities, and any
    other names tags of words. Long texts lie in windows: `kbert.preprocessing.words`
    has the rules.

    The model does not use the backbone's pooler, which is frozen.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None to take ready arrays only; of its
            settings `sequence_length` is used, the length of a window.
        labels: the names of the C tags, in the order of the logits.
        num_classes: C, instead of `labels`; the names are LABEL_0, LABEL_1, …
        dropout: rate in front of the dense layer; None for the config's.
        name: of the model.

    `from_preset` takes `labels`, `num_classes` and `dropout`. A head that the preset
    holds is used unless other labels are asked for.

    Call arguments, a dictionary: those of `BertBackbone`. Beside ready arrays `y` is
        int (B, S), below 0 at every token that is not scored, and so are the targets
        that a loss or metric of your own gets.

    Returns:
        Logits, float32 (B, S, C), for a row of one or several texts. `predict` returns
        (texts, S, C): those of [CLS], of each piece, and of [SEP]; 0 behind the end.

    Raises:
        TypeError: if `num_classes` is no integer.
        ValueError: if the labels are fewer than two or not distinct, or contradict
            `num_classes`.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> tagger = BertTokenClassifier(backbone, labels=["O", "B-LOC", "I-LOC"])
    >>> ids = np.array([[2, 5, 3, 0]], "int32")
    >>> inputs = {"token_ids": ids, "padding_mask": np.array([[1, 1, 1, 0]], "int32")}
    >>> tagger.predict(inputs, verbose=0).shape
    (1, 4, 3)

    Reference: Devlin et al. 2018, section 5.3.
    """

    uses_pooler = False
    behind_end = 0
    preset_arguments = ("labels", "num_classes", "dropout")

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        labels=None,
        num_classes=None,
        dropout=None,
        name=None,
        **kwargs,
    ):
        labels = class_names.name_classes(labels, num_classes)
        config = backbone.config
        if dropout is None:
            dropout = config.head_dropout
        inputs = {key: backbone.input[key] for key in INPUTS}
        x = backbone(inputs)["sequence_output"]
        head, logits = class_logits(x, len(labels), dropout, config)
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        super().__init__(
            {**inputs, "first_positions": first_positions},
            logits,
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        backbone.pooler.trainable = False
        self.labels = labels
        self.dropout = dropout
        self.head = head
        self.compile()

    # Answers -------------------------------------------------------------------------

    def tag(self, texts, batch_size=None):
        """Finds the entities of every text.

        Args:
            texts: a text, a list of texts, or a list of lists of words.
            batch_size: texts a step.

        Returns:
            A list with, a text, the list of its `Entity`s in order. Where the labels
            mark no entities, every word is one.
        """
        words = self._read(texts)
        answers = []
        for index, rows in enumerate(self._probabilities(texts, batch_size)):
            tags = [self.labels[row.argmax()] for row in rows]
            chunks = [
                tagging.Chunk(tag, place, place + 1) for place, tag in enumerate(tags)
            ]
            if tagging.has_entities(self.labels):
                chunks = tagging.chunks(tags)
            answers.append(
                [self._entity(words, index, chunk, rows) for chunk in chunks]
            )
        return answers

    def tag_words(self, texts, batch_size=None):
        """Returns the likeliest tag of every word: for each text, a list of names.

        Args:
            texts: as for `tag`.
            batch_size: texts a step.
        """
        return [
            [self.labels[row.argmax()] for row in rows]
            for rows in self._probabilities(texts, batch_size)
        ]

    def _probabilities(self, texts, batch_size) -> list[np.ndarray]:
        """Returns the probabilities of every word's tags, (words, C) for each text."""
        encoded = self._encode(texts)
        logits = self.predict(texts, batch_size=batch_size, verbose=0)
        found = []
        for index, rows in enumerate(logits):
            part = slice(*encoded.word_splits[index : index + 2])
            places = encoded.first_pieces[part] - encoded.row_splits[index]
            found.append(ops.convert_to_numpy(ops.softmax(rows[places], axis=-1)))
        return found

    def _entity(self, words, index, chunk, rows) -> Entity:
        spans = words.spans[index][chunk.begin : chunk.end]
        start, end = spans[0][0], spans[-1][1]
        score = rows[chunk.begin : chunk.end].max(axis=-1).mean()
        return Entity(
            chunk.type,
            words.texts[index][start:end],
            start,
            end,
            float(score),
            (chunk.begin, chunk.end),
        )

    # Data ----------------------------------------------------------------------------

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns words or ready arrays with their tags; see `BertTask.read`."""
        if not is_raw(x):
            return word_feed.read_arrays(self, x, y, sample_weight, training)
        encoded = self._encode(x)
        if y is not None:
            y = encode_tags(y, self.labels, encoded)
            if training:
                check_several_tags(y, self.labels)
        if sample_weight is not None:
            weights = label_codes.check_weights(sample_weight, len(encoded))
            sample_weight = np.repeat(weights, np.diff(encoded.word_splits))
        return word_feed.Words(self, encoded, y, sample_weight, training)

    def _read(self, texts):
        return read_words(texts, self.require_preprocessor().tokenizer)

    def _encode(self, texts):
        preprocessor = self.require_preprocessor()
        words = read_words(texts, preprocessor.tokenizer)
        return encode_words(words, preprocessor.tokenizer, preprocessor.max_length)

    def weigh_classes(self, data, class_weight):
        """Returns the data with every word's weight multiplied by that of its tag."""
        by_index = self.class_indices(class_weight)
        by_tag = np.ones(len(self.labels), "float32")
        by_tag[list(by_index)] = list(by_index.values())
        return word_feed.weighted(data, by_tag), None

    def class_indices(self, class_weight):
        """Returns `class_weight` with the names of tags replaced by their indices."""
        return label_codes.encode_class_weight(class_weight, self.labels)

    # Choices -------------------------------------------------------------------------

    def default_loss(self):
        """Returns the cross-entropy of the tags, averaged over words."""
        return TokenCrossentropy()

    def default_metrics(self):
        """Returns the accuracy over words and, for entities, their scores."""
        if tagging.has_entities(self.labels):
            return [TokenAccuracy(), EntityScores(list(self.labels))]
        return [TokenAccuracy()]

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable}."""
        return class_weights(self.head)

    def hugging_face_head(self):
        """Returns what transformers' `BertForTokenClassification` reads."""
        return {
            "architectures": ["BertForTokenClassification"],
            "id2label": {str(i): name for i, name in enumerate(self.labels)},
            "label2id": {name: index for index, name in enumerate(self.labels)},
            "classifier_dropout": self.backbone.config.told_dropout(self.dropout),
        }

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "labels": list(self.labels),
            "dropout": self.dropout,
        }

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the labels asked for, or else those of the preset."""
        saved = saving.saved_labels(parts.config, "BertForTokenClassification")
        if asked["labels"] is None and asked["num_classes"] is None:
            return {**asked, "labels": saved}, ""
        labels = class_names.name_classes(asked["labels"], asked["num_classes"])
        differs = ""
        if saved and not class_names.same_names(saved, labels):
            differs = f"{saved}, not for {list(labels)}"
        return {**asked, "labels": labels}, differs
