"""Pre-training (section 3.1): masked tokens and next sentences, both losses at once."""

import keras

from kbert.tasks import masked_feeds, masked_heads
from kbert.tasks.base import BertTask
from kbert.training.token_scores import TokenAccuracy, TokenCrossentropy


@keras.saving.register_keras_serializable(package="kbert")
class BertPretrainer(BertTask):
    """The heads of masked tokens and of next sentences on one encoder.

    Reads instances as ready arrays, or a dataset of batches of such. `x` has
    `token_ids`, `segment_ids` and `padding_mask`, int (N, S), and `mask_positions`, int
    (N, M), the columns of the masked tokens, 0 where there is none. `y` is
    `{"mlm": int (N, M), "nsp": int (N,)}`: the ids that stood there, and 0 where the
    second segment is the next one, 1 where it is a random one. The loss is the sum of
    both means; losses and accuracies are shown for each.

    It is also the model of next sentences alone (transformers'
    `BertForNextSentencePrediction`): its output "nsp".

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, needed to save a preset; or None.
        head_activation: of the head of masked tokens; None for the config's.
        head_epsilon: of its normalisation; None for the config's.
        name: of the model.

    `from_preset` takes `long_text`; activation and epsilon of the head are the
    preset's.

    Call arguments, a dictionary: those of `BertBackbone`, and
        mask_positions: int32 (masked,), where the masked tokens lie in the rows laid
            end to end: row * S + column.
        first_positions: int32 (instances,), where each instance's [CLS] lies in them;
            absent or None for one instance a row.

    Returns, a dictionary:
        mlm: logits, float32 (masked, V).
        nsp: logits, float32 (instances, 2).

    Raises:
        ValueError: if the head's activation or epsilon is none.

    Example:
    >>> backbone = kbert.BertBackbone(100, num_layers=1, num_heads=2, hidden_dim=8,
    ...     intermediate_dim=16)
    >>> pretrainer = BertPretrainer(backbone)
    >>> ids = np.array([[2, 5, 4, 3]], "int32")
    >>> inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    >>> inputs["mask_positions"] = np.array([[1, 2]])
    >>> logits = pretrainer.predict(inputs, verbose=0)
    >>> logits["mlm"].shape, logits["nsp"].shape
    ((2, 100), (1, 2))

    Reference: Devlin et al. 2018, section 3.1; google-research/bert
    `run_pretraining.py`.
    """

    has_next_sentence = True

    def __init__(
        self,
        backbone,
        preprocessor=None,
        *,
        head_activation=None,
        head_epsilon=None,
        name=None,
        **kwargs,
    ):
        inputs = dict(backbone.input)
        positions = keras.Input((), dtype="int32", name=masked_heads.POSITIONS)
        first_positions = keras.Input(
            (), dtype="int32", optional=True, name="first_positions"
        )
        sequence_output = backbone.output["sequence_output"]
        head, mlm = masked_heads.masked_logits(
            backbone, sequence_output, positions, head_activation, head_epsilon
        )
        next_sentence = keras.layers.Dense(
            2,
            kernel_initializer=keras.initializers.TruncatedNormal(
                stddev=backbone.config.initializer_range
            ),
            dtype="float32",
            name="nsp",
        )
        nsp = next_sentence(backbone.pooler(sequence_output, first_positions))
        super().__init__(
            {
                **inputs,
                masked_heads.POSITIONS: positions,
                "first_positions": first_positions,
            },
            {"mlm": mlm, "nsp": nsp},
            backbone,
            preprocessor,
            name=name,
            **kwargs,
        )
        self.head = head
        self.next_sentence = next_sentence
        self.compile()

    def read(self, x, y, sample_weight, *, training, targets=True):
        """Returns instances, which are ready arrays; see `BertTask.read`."""
        return masked_feeds.read(self, x, y, sample_weight, training, targets)

    def default_loss(self):
        """Returns the cross-entropy of each head, whose sum is minimised."""
        return {
            "mlm": TokenCrossentropy(),
            "nsp": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        }

    def default_metrics(self):
        """Returns the accuracy of each head."""
        return {
            "mlm": [TokenAccuracy()],
            "nsp": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        }

    def head_weights(self):
        """Returns {path of `checkpoints/names.py`: variable}."""
        return {
            **masked_heads.mlm_weights(self.head),
            "nsp/kernel": self.next_sentence.kernel,
            "nsp/bias": self.next_sentence.bias,
        }

    def hugging_face_head(self):
        """Returns what transformers' `BertForPreTraining` reads."""
        return {"architectures": ["BertForPreTraining"]}

    def preset_metadata(self):
        """Returns the maths of the head, where it is not the encoder's."""
        return masked_heads.head_maths(self.head, self.backbone.config)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "head_activation": self.head.activation,
            "head_epsilon": self.head.layer_norm_epsilon,
        }

    @classmethod
    def arguments_of(cls, parts, asked):
        """Returns the maths of the preset's head of masked tokens."""
        return masked_heads.saved_maths(parts.preset), ""
