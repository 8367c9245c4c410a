"""Writes the saved models in tests/goldens/ that guard kbert's file format.

    KERAS_BACKEND=jax .venv-jax/bin/python -m scripts.make_saved_backbone

tests/test_backbone_saving.py loads them. Run this again only where the format is meant
to change, since users have such files as well.
"""

import pathlib

import numpy as np

from tests import random_bert

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "goldens"


def main():
    backbone = random_bert.make()
    random_bert.shake(backbone, seed=11)
    backbone.embeddings.norm.beta.trainable = False
    backbone.save(GOLDENS / "saved_backbone.keras")
    backbone.save_weights(GOLDENS / "saved_backbone.weights.h5")
    sequence, pooled = random_bert.run(backbone, random_bert.inputs())
    np.savez_compressed(
        GOLDENS / "saved_backbone.npz", sequence_output=sequence, pooled_output=pooled
    )


if __name__ == "__main__":
    main()
