"""Two replicas train what one device trains, and packed rows are refused."""

import json
import subprocess
import sys

SCRIPT = """
import json

import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)

import keras

import kbert
from tests import tiny

texts, labels = tiny.sentiment(32)
losses, told = [], ""
for strategy in (
    tf.distribute.get_strategy(),
    tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = tiny.classifier(dropout=0.0)
        # Keras clips the norm on each replica by itself: another one.
        model.compile(kbert.AdamW(0.01, global_clipnorm=None))
    history = model.fit(texts, labels, 8, 2, shuffle=False, verbose=0)
    losses.append(history.history["loss"])
    losses[-1] += model.evaluate(texts, labels, 8, verbose=0)[:1]
model.compile(rows="packed")
try:
    model.fit(texts, labels, verbose=0)
except ValueError as error:
    told = str(error)
print(json.dumps([*losses, told]))
"""


def test_replicas_have_one_text_a_row():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    one, two, told = json.loads(done.stdout.splitlines()[-1])
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-5
    assert "Received: rows='packed'" in told
