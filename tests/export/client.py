"""Asks a SavedModel as TensorFlow Serving does: a session, and nothing but TensorFlow.

Usage: python client.py FOLDER < requests.json > answers.json

A request is {"signature": name, "inputs": {name: values}}; strings are bytes written as
latin-1. It runs with every TensorFlow from 2.15.1 on, without kbert.
"""

import json
import sys

import numpy as np
import tensorflow as tf


def to_array(values):
    """Strings as an array of bytes, numbers as int32."""
    if not values or isinstance(values[0], str):
        return np.array([value.encode("latin-1") for value in values], dtype=object)
    return np.array(values, dtype="int32")


def to_json(array):
    if array.dtype == object:
        return [to_json(row) if array.ndim > 1 else row.decode() for row in array]
    return array.tolist()


def main(folder, requests):
    answers = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], folder)
        for request in requests:
            signature = meta.signature_def[request["signature"]]
            outputs = {name: info.name for name, info in signature.outputs.items()}
            feed = {
                signature.inputs[name].name: to_array(values)
                for name, values in request["inputs"].items()
            }
            answers.append(
                {
                    name: to_json(np.asarray(values))
                    for name, values in session.run(outputs, feed).items()
                }
            )
    strangers = {"kbert", "tensorflow_text"} & set(sys.modules)
    return {
        "version": tf.__version__,
        "strangers": sorted(strangers),
        "answers": answers,
    }


if __name__ == "__main__":
    json.dump(main(sys.argv[1], json.load(sys.stdin)), sys.stdout)
