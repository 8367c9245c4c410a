"""Text to WordPiece ids, exactly as Google's `tokenization.py`, on every path."""

from kbert.tokenization.encoding import Encoding, WordsEncoding
from kbert.tokenization.wordpiece import BertTokenizer

__all__ = ["BertTokenizer", "Encoding", "WordsEncoding"]
