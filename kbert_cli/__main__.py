"""`python -m kbert_cli` is `kbert`."""

from kbert_cli import app

app(prog_name="kbert")
