"""Ask an exported classifier, with TensorFlow alone: python ask.py FOLDER SENTENCE...

Neither kbert nor Keras takes part: both are barred before TensorFlow is imported, so
that anything that needed them would fail.
"""

import os
import sys

BARRED = ("kbert", "keras", "tensorflow_text", "transformers")
for _name in BARRED:
    sys.modules[_name] = None  # `import` then raises ImportError

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402


def ask(folder: str, sentences: list[str]) -> list[tuple[str, float]]:
    """Label and probability of every sentence."""
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    answers = signature(text=tf.constant(sentences))
    labels = [label.decode() for label in answers["label"].numpy()]
    probabilities = answers["probabilities"].numpy().max(axis=1).tolist()
    return list(zip(labels, probabilities, strict=True))


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("Usage: python ask.py FOLDER SENTENCE...")
    folder, *sentences = sys.argv[1:]
    answers = ask(folder, sentences)
    loaded = [name for name in BARRED if sys.modules[name] is not None]
    if loaded:
        sys.exit(f"The export must do with TensorFlow alone. Loaded: {loaded}.")
    for (label, probability), sentence in zip(answers, sentences, strict=True):
        print(f"{label}  {probability:.3f}  {sentence}")


if __name__ == "__main__":
    main()
