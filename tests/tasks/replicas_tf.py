"""The program of test_distribution_tf.py: `FOLDER RESULT RANK PORT`."""

import keras
import numpy as np
import tensorflow as tf

import kbert
from kbert.pretraining.batches import InstanceBatches
from tests import tiny
from tests.tasks import replicas


def main(folder, rank, port):
    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = replicas.train(folder, strategy.scope)
    found |= replicas.classify(strategy.scope)
    told = refusals(folder, strategy)
    return found | {f"told/{key}": np.array(value) for key, value in told.items()}


def refusals(folder, strategy):
    """What is refused under two replicas."""
    batches, fit = InstanceBatches(folder, 8), {"steps_per_epoch": 1, "verbose": 0}
    with strategy.scope():
        model, classifier = replicas.pretrainer(), tiny.classifier()
        clipping, adding = replicas.pretrainer(), replicas.pretrainer()
        clipping.compile(keras.optimizers.AdamW(1e-3, global_clipnorm=1.0))
        adding.compile(kbert.AdamW(1e-3, gradient_accumulation_steps=2))
        compiled = tiny.classifier()
        compiled.compile(jit_compile=True)
    texts, labels = tiny.sentiment(33)
    classifier.compile(rows="packed")
    found = {"rows": replicas.told(classifier.fit, texts, labels, verbose=0)}
    classifier.compile()
    rows = np.ones((31, 4), "int32")
    ready = {"token_ids": rows, "segment_ids": rows, "padding_mask": rows}
    return found | {
        "rest": replicas.told(classifier.fit, ready, np.arange(31) % 2, 8, verbose=0),
        "clipping": replicas.told(clipping.fit, batches, **fit),
        "adding": replicas.told(adding.fit, batches, **fit),
        "texts": replicas.told(classifier.fit, texts, labels, 8, verbose=0),
        "batch": replicas.told(classifier.fit, texts[:32], labels[:32], 9, verbose=0),
        "xla": replicas.told(compiled.fit, texts[:8], labels[:8], 8, verbose=0),
        "arrays": replicas.told(model.fit, *batches.at(0), 8, verbose=0),
    }


if __name__ == "__main__":
    replicas.run(main)
