"""The owners of the formats: their own code writes, reads and computes.

`WRITE[format](head, folder)` lets the owner make a model with random weights, save it
and compute on `inputs()`; `READ[format](head, folder)` lets it load what lies in the
folder and compute. Both return {name of kbert's output: array}.
"""

import contextlib
import json
import pathlib
import shutil
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SEED, STDDEV, CLASSES = 0, 0.1, 3
# bert_tiny_en_uncased, whose vocabulary and architecture every owner can have.
SIZES = {
    "vocab_size": 30522,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "hidden_size": 128,
    "intermediate_size": 512,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
VOCABULARY = ROOT / "presets" / "vocabularies" / "uncased_en.txt"


def inputs():
    """Ids of six texts of uneven length, as kbert's models take them."""
    random = np.random.RandomState(SEED)
    shape = (6, 40)
    lengths = random.randint(3, shape[1] + 1, shape[0])
    mask = np.arange(shape[1]) < lengths[:, None]
    ids = np.where(mask, random.randint(1, SIZES["vocab_size"], shape), 0)
    segments = np.where(mask, random.randint(0, 2, shape), 0)
    arrays = {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}
    return {key: array.astype("int32") for key, array in arrays.items()}


def at_text(sequence):
    """What stands at the texts' positions; at padding every library has its own."""
    return np.asarray(sequence)[inputs()["padding_mask"] > 0]


def transformers_config():
    """A configuration of transformers' with the gelu that every owner can compute."""
    import transformers

    return transformers.BertConfig(**SIZES, hidden_act="gelu_new", num_labels=CLASSES)


def write_transformers(head, folder):
    """Transformers makes the model."""
    import torch
    import transformers

    torch.manual_seed(SEED)
    model = getattr(transformers, head.transformers)(transformers_config()).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(float(name.endswith("LayerNorm.weight")), STDDEV)
    model.save_pretrained(folder)
    shutil.copy(VOCABULARY, pathlib.Path(folder, "vocab.txt"))
    return _transformers_outputs(head, model)


def read_transformers(head, folder):
    """Transformers loads the model; it may miss nothing and have nothing to spare."""
    import transformers

    model, told = getattr(transformers, head.transformers).from_pretrained(
        folder, output_loading_info=True
    )
    odd = {key: list(value) for key, value in told.items() if value}
    if odd:
        raise ValueError(f"transformers must load all of {folder}. Received: {odd}.")
    return _transformers_outputs(head, model.eval())


def resave_transformers(head, folder, target):
    """Transformers loads the model and saves it."""
    import transformers

    model = getattr(transformers, head.transformers).from_pretrained(folder)
    model.save_pretrained(target)
    shutil.copy(VOCABULARY, pathlib.Path(target, "vocab.txt"))


def _transformers_outputs(head, model):
    import torch

    values = {key: torch.tensor(array).long() for key, array in inputs().items()}
    with torch.no_grad():
        found = model(
            input_ids=values["token_ids"],
            token_type_ids=values["segment_ids"],
            attention_mask=values["padding_mask"],
            output_hidden_states=True,
        )
        outputs = {"sequence_output": at_text(found.hidden_states[-1].numpy())}
        if "pooler_output" in found:
            outputs["pooled_output"] = found.pooler_output.numpy()
        if head.answers:
            outputs["answers"] = head.answers(found).numpy()
    return outputs


def write_google(head, folder):
    """Google's modeling.py makes the model, and TensorFlow 1's Saver writes it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    config = {**SIZES, "hidden_act": "gelu", "initializer_range": STDDEV}
    (folder / "bert_config.json").write_text(json.dumps(config))
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    with _google_session(head, folder) as (session, outputs, tf1):
        random = np.random.RandomState(SEED)
        for variable in tf1.trainable_variables():
            value = random.normal(scale=STDDEV, size=variable.shape)
            variable.load(value + float("gamma" in variable.name), session)
        tf1.train.Saver().save(session, str(folder / "bert_model.ckpt"))
        return _google_outputs(session.run(outputs))


def read_google(head, folder):
    """Google's modeling.py restores the model, every variable of it."""
    with _google_session(head, pathlib.Path(folder)) as (session, outputs, tf1):
        variables = tf1.trainable_variables()
        saver = tf1.train.Saver(variables)  # which fails where one is absent
        saver.restore(session, str(pathlib.Path(folder, "bert_model.ckpt")))
        return _google_outputs(session.run(outputs))


@contextlib.contextmanager
def _google_session(head, folder):
    """A session of TensorFlow 1 with the graph of Google's scripts."""
    import tensorflow.compat.v1 as tf1

    from tests.checkpoints import google_bert

    google = google_bert.modeling()
    with tf1.Graph().as_default(), tf1.Session() as session:
        values = {key: tf1.constant(array) for key, array in inputs().items()}
        model = google.BertModel(
            google.BertConfig.from_json_file(str(folder / "bert_config.json")),
            is_training=False,
            input_ids=values["token_ids"],
            input_mask=values["padding_mask"],
            token_type_ids=values["segment_ids"],
        )
        outputs = {
            "sequence_output": model.get_sequence_output(),
            "pooled_output": model.get_pooled_output(),
        }
        if head.google:
            outputs["answers"] = head.google(tf1, model)
        session.run(tf1.global_variables_initializer())
        yield session, outputs, tf1


def _google_outputs(found):
    return {**found, "sequence_output": at_text(found["sequence_output"])}


def google_classifier(tf1, model):
    """The head of `create_model` in run_classifier.py."""
    pooled = model.get_pooled_output()
    weights = tf1.get_variable("output_weights", [CLASSES, pooled.shape[-1]])
    bias = tf1.get_variable("output_bias", [CLASSES])
    return tf1.nn.bias_add(tf1.matmul(pooled, weights, transpose_b=True), bias)


def write_keras_hub(head, folder):
    """KerasHub makes the model."""
    import keras_hub

    models, lines = keras_hub.models, VOCABULARY.read_text().splitlines()
    backbone = models.BertBackbone(
        vocabulary_size=SIZES["vocab_size"],
        num_layers=SIZES["num_hidden_layers"],
        num_heads=SIZES["num_attention_heads"],
        hidden_dim=SIZES["hidden_size"],
        intermediate_dim=SIZES["intermediate_size"],
        max_sequence_length=SIZES["max_position_embeddings"],
    )
    model = backbone
    if head.keras_hub != "BertBackbone":
        tokenizer = models.BertTokenizer(vocabulary=lines, lowercase=True)
        preprocessor = getattr(models, f"{head.keras_hub}Preprocessor")(tokenizer)
        classes = {"num_classes": CLASSES} if "Classifier" in head.keras_hub else {}
        model = getattr(models, head.keras_hub)(
            backbone=backbone, preprocessor=preprocessor, **classes
        )
    random = np.random.RandomState(SEED)
    for weight in model.weights:
        value = random.normal(scale=STDDEV, size=weight.shape)
        weight.assign(value + float(weight.path.endswith("gamma")))
    model.save_to_preset(str(folder))
    if model is backbone:
        models.BertTokenizer(vocabulary=lines, lowercase=True).save_to_preset(
            str(folder)
        )
    return _keras_hub_outputs(head, model)


def read_keras_hub(head, folder):
    """KerasHub loads the model."""
    import keras_hub

    model = getattr(keras_hub.models, head.keras_hub).from_preset(str(folder))
    return _keras_hub_outputs(head, model)


def _keras_hub_outputs(head, model):
    import keras

    bare = head.keras_hub == "BertBackbone"
    values = inputs()
    found = (model if bare else model.backbone)(values)
    outputs = {key: keras.ops.convert_to_numpy(found[key]) for key in found}
    outputs["sequence_output"] = at_text(outputs["sequence_output"])
    if not bare:
        outputs["answers"] = keras.ops.convert_to_numpy(model(values))
    return outputs


WRITE = {
    "huggingface": write_transformers,
    "google": write_google,
    "keras_hub": write_keras_hub,
}
READ = {
    "huggingface": read_transformers,
    "google": read_google,
    "keras_hub": read_keras_hub,
}
