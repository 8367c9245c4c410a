"""BERT for Keras 3, from raw text to a served model."""
