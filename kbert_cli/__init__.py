"""The command line: kbert finetune, evaluate, predict, export, convert and more.

It lies beside the package kbert, not in it: `import kbert` imports Keras, which reads
KERAS_BACKEND at that moment. The commands import kbert when `--backend` is known; so
`kbert --help` is quick as well.
"""

from kbert_cli.commands import app as app
