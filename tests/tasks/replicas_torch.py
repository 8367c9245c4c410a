"""The program of test_distribution_torch.py: `FOLDER RESULT RANK PORT`."""

import keras
import numpy as np
import torch

import kbert
from kbert.pretraining.batches import InstanceBatches
from tests import tiny
from tests.tasks import replicas


def main(folder, rank, port):
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    found = replicas.train(folder, seed=rank)  # the first one's weights are to count
    found |= with_ddp(rank)
    return found | {f"told/{k}": np.array(v) for k, v in refusals(folder).items()}


def with_ddp(rank):
    """Weights after two steps of a loop of one's own around torch's DDP."""
    model, x, y = classifier()
    optimizer = kbert.AdamW(1e-3, global_clipnorm=0.1)
    optimizer.build(model.trainable_variables)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    own = slice(4 * rank, 4 * rank + 4)
    for _ in range(2):
        model.zero_grad()
        logits = parallel({key: value[own] for key, value in x.items()}, training=True)
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(y[own]).long())
        loss.backward()
        gradients = [v.value.grad for v in model.trainable_variables]
        with torch.no_grad():
            optimizer.apply(gradients, model.trainable_variables)
    return {f"ddp/{v.path}": v.numpy() for v in model.trainable_variables}


def without_ddp():
    """The same in one process."""
    model, x, y = classifier()
    model.compile(kbert.AdamW(1e-3, global_clipnorm=0.1))
    for _ in range(2):
        model.train_on_batch(x, y)
    return {f"ddp/{v.path}": v.numpy() for v in model.trainable_variables}


def classifier():
    """A classifier, and eight texts as arrays with their labels."""
    keras.utils.set_random_seed(3)
    model = tiny.classifier(dropout=0.0)
    texts, labels = tiny.sentiment(8)
    x = {key: np.array(value) for key, value in model.preprocessor(texts).items()}
    return model, x, np.array([tiny.LABELS.index(label) for label in labels])


def refusals(folder):
    """What is refused in two processes."""
    model, texts = replicas.pretrainer(), tiny.sentiment(32)
    batches, fit = InstanceBatches(folder, 8), {"steps_per_epoch": 1, "verbose": 0}
    other = replicas.pretrainer()
    other.compile(keras.optimizers.AdamW(1e-3))
    return {
        "batch": replicas.told(model.fit, InstanceBatches(folder, 7), **fit),
        "texts": replicas.told(tiny.classifier().fit, *texts, 8, verbose=0),
        "optimizer": replicas.told(other.fit, batches, **fit),
        "step": replicas.told(model.train_on_batch, *batches.at(0)),
    }


if __name__ == "__main__":
    replicas.run(main)
