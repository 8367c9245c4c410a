"""The programs of test_distribution_jax.py: `FOLDER RESULT RANK PORT`."""

import os

import keras
import numpy as np

from kbert.pretraining.batches import InstanceBatches
from tests import tiny
from tests.tasks import replicas


def main(folder, rank, port):
    if os.environ.get("PROCESSES"):
        keras.distribution.initialize(
            f"127.0.0.1:{port}", int(os.environ["PROCESSES"]), rank
        )
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    found = replicas.train(folder)
    if not os.environ.get("PROCESSES"):
        found |= replicas.classify()
        found |= {f"told/{k}": np.array(v) for k, v in refusals(folder).items()}
    return found


def refusals(folder):
    """What is refused under four devices."""
    model, texts = replicas.pretrainer(), tiny.sentiment(30)
    fit = {"steps_per_epoch": 1, "verbose": 0}
    return {
        "batch": replicas.told(model.fit, InstanceBatches(folder, 6), **fit),
        "packed": replicas.told(
            model.fit, InstanceBatches(folder, 8, rows="packed"), **fit
        ),
        "texts": replicas.told(tiny.classifier().fit, *texts, 8, verbose=0),
        "arrays": replicas.told(
            model.fit, *InstanceBatches(folder, 8).at(0), 8, verbose=0
        ),
    }


if __name__ == "__main__":
    replicas.run(main)
