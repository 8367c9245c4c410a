"""What a pre-trained encoder is worth to a task: fine-tuned and scored, in one go."""

import keras
import numpy as np

from kbert.data.splits import stratified_split
from kbert.data.tables import read_table
from kbert.pretraining.run_settings import Downstream
from kbert.tasks.classifier import BertClassifier


def score(task: Downstream, preset, seed: int) -> float:
    """Fine-tunes a classifier on a preset and returns its accuracy on rows held out.

    Args:
        task: what to fine-tune on.
        preset: name or folder of the encoder.
        seed: of split and training, so that two presets are judged alike.

    Raises:
        ValueError: if the table cannot be read, or a class has but one row.
    """
    table = read_table(str(task.data), task.text, task.label, task.second)
    labels = table.labels or []
    learn, judge = stratified_split(labels, task.test_share, seed)
    keras.utils.set_random_seed(seed)
    classifier = BertClassifier.from_preset(preset, labels=sorted(set(labels)))
    classifier.compile(learning_rate=task.learning_rate)

    def texts(rows):
        firsts = [table.texts[row] for row in rows]
        if table.seconds is None:
            return firsts
        return firsts, [table.seconds[row] for row in rows]

    names = [labels[row] for row in learn]
    classifier.fit(texts(learn), names, epochs=task.epochs, verbose=0)
    found = classifier.predict(texts(judge), verbose=0).argmax(-1)
    right = [sorted(set(labels)).index(labels[row]) for row in judge]
    return float(np.mean(found == np.array(right)))
