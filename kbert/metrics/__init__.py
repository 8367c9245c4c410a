"""Scores on numpy arrays, for reports to people."""
