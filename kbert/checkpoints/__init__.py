"""Checkpoints: other people's variable names and files, to and from ours."""
