"""The bricks of the model, each a Keras layer."""

from kbert.layers.attention import BertSelfAttention
from kbert.layers.embeddings import BertEmbeddings
from kbert.layers.encoder import BertEncoderLayer
from kbert.layers.heads import BertPooler, ChoiceLogits, MaskedLMHead, SpanHead
from kbert.layers.projection import BertProjection
from kbert.preprocessing.sentence_pair_packer import SentencePairPacker

__all__ = [
    "BertEmbeddings",
    "BertEncoderLayer",
    "BertPooler",
    "BertProjection",
    "BertSelfAttention",
    "ChoiceLogits",
    "MaskedLMHead",
    "SentencePairPacker",
    "SpanHead",
]
