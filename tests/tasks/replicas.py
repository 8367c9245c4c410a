"""A short training, here on one device and in child processes on several."""

import contextlib
import os
import socket
import subprocess
import sys

import numpy as np

# A step an epoch: Keras weighs the steps of an epoch by their slots, which differ.
BATCH, STEPS, EPOCHS = 8, 1, 4


def pretrainer(**changes):
    """A model whose gradients are longer than the clipping allows."""
    import kbert
    from tests.pretraining import toy

    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24}
    backbone = kbert.BertBackbone(
        len(toy.PIECES),
        **sizes,
        max_sequence_length=32,
        initializer_range=0.2,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = kbert.BertPretrainer(backbone)
    arguments = {"learning_rate": 1e-3, "global_clipnorm": 0.1, **changes}
    model.compile(kbert.AdamW(**arguments))
    return model


def train(folder, scope=contextlib.nullcontext, seed=0):
    """{name: array} of the weights after training, and of what was shown."""
    import keras

    from kbert.pretraining.batches import InstanceBatches

    keras.utils.set_random_seed(seed)
    with scope():
        model = pretrainer()
    batches = InstanceBatches(folder, BATCH)
    shown = model.fit(batches, epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0).history
    return {
        **{f"history/{name}": np.array(values) for name, values in shown.items()},
        **weights(model),
    }


def classify(scope=contextlib.nullcontext):
    """The losses of a classifier on texts, and its weights."""
    import keras

    import kbert
    from tests import tiny

    texts, labels = tiny.sentiment(32)
    keras.utils.set_random_seed(0)
    with scope():
        model = tiny.classifier(dropout=0.0)
        model.compile(kbert.AdamW(1e-3, global_clipnorm=0.1))
    history = model.fit(texts, labels, 8, 2, shuffle=False, verbose=0)
    losses = [*history.history["loss"], model.evaluate(texts, labels, 8, verbose=0)[0]]
    return {"classifier/losses": np.array(losses), **weights(model, "classifier/")}


def weights(model, prefix=""):
    """{path: array} of what a model trains."""
    from keras import ops

    variables = model.trainable_variables
    return {f"{prefix}{v.path}": ops.convert_to_numpy(v) for v in variables}


def told(function, *arguments, **named):
    """What the ValueError says that a call raises; "" where it raises none."""
    try:
        function(*arguments, **named)
    except ValueError as error:
        return str(error)
    return ""


def check_equal(found, expected):
    """Compares what `train` or `classify` returned on one device and on several."""
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)


def in_children(module, count, folder, tmp_path, **environment):
    """What so many processes of a program write: a list of {name: array}.

    Args:
        module: with a `main(folder, rank, port)` that returns the arrays.
        count: processes, all at once.
        folder: of instances.
        tmp_path: where their files go.
        **environment: of the processes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", module),
                *map(str, (folder, tmp_path / f"{rank}.npz", rank, port)),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    errors = [child.communicate(timeout=240)[1] for child in children]
    for child, error in zip(children, errors, strict=True):
        assert child.returncode == 0, error[-3000:]
    return [dict(np.load(tmp_path / f"{rank}.npz")) for rank in range(count)]


def run(main):
    """The program of a child: writes what `main(folder, rank, port)` returns."""
    folder, result, rank, port = sys.argv[1:]
    np.savez(result, **main(folder, int(rank), int(port)))
