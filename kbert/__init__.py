"""BERT for Keras 3, from raw text to a served model."""

from kbert import layers, tokenization
from kbert.backbone import BertBackbone
from kbert.config import BertConfig
from kbert.convert.conversion import Conversion, convert_preset
from kbert.convert.inspection import Inspection, inspect_preset
from kbert.preprocessing.best_spans import QuestionAnswer
from kbert.preprocessing.preprocessor import BertPreprocessor
from kbert.presets import preset_names
from kbert.tasks.classifier import (
    BertClassifier,
    Classification,
    MultiLabelClassification,
    Regression,
)
from kbert.tasks.embedder import BertEmbedder
from kbert.tasks.feature_extractor import BertFeatureExtractor
from kbert.tasks.masked_lm import BertMaskedLM, FilledText, Filling
from kbert.tasks.multiple_choice import BertMultipleChoice, Choice
from kbert.tasks.pretrainer import BertPretrainer
from kbert.tasks.question_answerer import BertQuestionAnswerer
from kbert.tasks.token_classifier import BertTokenClassifier, Entity
from kbert.tokenization import BertTokenizer, Encoding
from kbert.training import AdamW, WarmupLinearDecay

__version__ = "0.1.0"

__all__ = [
    "AdamW",
    "BertBackbone",
    "BertClassifier",
    "BertConfig",
    "BertEmbedder",
    "BertFeatureExtractor",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertPreprocessor",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertTokenClassifier",
    "BertTokenizer",
    "Choice",
    "Classification",
    "Conversion",
    "Encoding",
    "Entity",
    "FilledText",
    "Filling",
    "Inspection",
    "MultiLabelClassification",
    "QuestionAnswer",
    "Regression",
    "WarmupLinearDecay",
    "convert_preset",
    "inspect_preset",
    "layers",
    "preset_names",
    "tokenization",
]
