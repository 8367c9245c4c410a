"""The examples lie in the checkout; with an installed wheel alone there are none."""

import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"

if not EXAMPLES.is_dir():
    collect_ignore_glob = ["test_*.py"]
else:
    for example in ("sentiment", "pretraining"):
        sys.path.insert(0, str(EXAMPLES / example))
