"""Presets of the Hugging Face Hub and of Kaggle, and what was fetched of them."""
