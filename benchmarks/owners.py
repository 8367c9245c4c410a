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
GOOGLE_CONFIG = {**SIZES, "hidden_act": "gelu", "initializer_range": STDDEV}
SENTENCE_MODELS = "sentence_transformers.models"
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


def in_context(starts, ends):
    """Both logits of every position, -1e9 where kbert lets no answer start or end."""
    values = inputs()
    second = (values["segment_ids"] == 1) & (values["padding_mask"] > 0)
    kept = np.zeros_like(second)
    kept[:, 0] = True  # [CLS], for no answer
    kept[:, 1:-1] = second[:, 1:-1] & second[:, 2:]  # without the last, [SEP]
    logits = np.stack([np.asarray(starts), np.asarray(ends)], axis=1)
    return np.where(kept[:, None], logits, -1e9)


def end_to_end(*arrays):
    """Several outputs as one array."""
    return np.concatenate([np.asarray(array).reshape(-1) for array in arrays])


def mean_of_texts(sequence):
    """The mean of each text's positions, of length 1."""
    mask = inputs()["padding_mask"][..., None]
    pooled = (np.asarray(sequence) * mask).sum(axis=1) / mask.sum(axis=1)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def transformers_config(head):
    """A configuration of transformers' with the gelu that every owner can compute."""
    import transformers

    labels = 2 if head.kbert == "BertQuestionAnswerer" else CLASSES
    return transformers.BertConfig(**SIZES, hidden_act="gelu_new", num_labels=labels)


def write_transformers(head, folder):
    """Transformers makes the model."""
    import torch
    import transformers

    torch.manual_seed(SEED)
    model = getattr(transformers, head.transformers)(transformers_config(head)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(float(name.endswith("LayerNorm.weight")), STDDEV)
    model.save_pretrained(folder)
    _write_beside(head, folder)
    return _transformers_outputs(head, model)


def read_transformers(head, folder):
    """Transformers loads the model; it may miss nothing and have nothing to spare."""
    import transformers

    model, told = getattr(transformers, head.transformers).from_pretrained(
        folder, output_loading_info=True, **_without_pooler(head)
    )
    odd = {key: list(value) for key, value in told.items() if value}
    if odd:
        raise ValueError(f"transformers must load all of {folder}. Received: {odd}.")
    return _transformers_outputs(head, model.eval())


def resave_transformers(head, folder, target):
    """Transformers loads the model and saves it."""
    import transformers

    model = getattr(transformers, head.transformers).from_pretrained(
        folder, **_without_pooler(head)
    )
    model.save_pretrained(target)
    _write_beside(head, target)


def _without_pooler(head):
    """What transformers must be told of an embedder, which pools in its own way."""
    return {"add_pooling_layer": False} if head.kbert == "BertEmbedder" else {}


def _write_beside(head, folder):
    """Writes the vocabulary, and for an embedder what sentence-transformers writes."""
    folder = pathlib.Path(folder)
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    if head.kbert != "BertEmbedder":
        return
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"{SENTENCE_MODELS}.{kind}"}
        for i, (kind, path) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    pooling = {
        "word_embedding_dimension": SIZES["hidden_size"],
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def _transformers_outputs(head, model):
    import torch

    values = {key: torch.tensor(array).long() for key, array in inputs().items()}
    if head.kbert == "BertMultipleChoice":  # every text the one choice of a prompt
        values = {key: value[:, None] for key, value in values.items()}
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
            outputs["answers"] = head.answers(found)
    return outputs


def write_google(head, folder):
    """Google's modeling.py makes the model, and TensorFlow 1's Saver writes it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    (folder / "bert_config.json").write_text(json.dumps(GOOGLE_CONFIG))
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    with _google_session(head, folder) as (session, outputs, tf1):
        random = np.random.RandomState(SEED)
        for variable in tf1.trainable_variables():
            value = random.normal(scale=STDDEV, size=variable.shape)
            variable.load(value + float("gamma" in variable.name), session)
        tf1.train.Saver().save(session, str(folder / "bert_model.ckpt"))
        return _google_outputs(session.run(outputs))


def read_google(head, folder):
    """Google's modeling.py restores the model, every variable that kbert has."""
    with _google_session(head, pathlib.Path(folder)) as (session, outputs, tf1):
        variables = [
            variable
            for variable in tf1.trainable_variables()
            if head.pooler or "/pooler/" not in variable.name
        ]
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
            outputs["answers"] = head.google(tf1, google_bert, model)
        session.run(tf1.global_variables_initializer())
        yield session, outputs, tf1


def _google_outputs(found):
    return {**found, "sequence_output": at_text(found["sequence_output"])}


def google_classifier(tf1, google_bert, model):
    """The head of `create_model` in run_classifier.py."""
    pooled = model.get_pooled_output()
    weights = tf1.get_variable("output_weights", [CLASSES, pooled.shape[-1]])
    bias = tf1.get_variable("output_bias", [CLASSES])
    return tf1.nn.bias_add(tf1.matmul(pooled, weights, transpose_b=True), bias)


def google_masked_lm(tf1, google_bert, model):
    """The logits of run_pretraining.py at the first token of every row."""
    scripts = google_bert.pretraining()
    positions = np.zeros((len(inputs()["token_ids"]), 1), "int32")
    _, _, probabilities = scripts.get_masked_lm_output(
        _google_config(scripts.modeling),
        model.get_sequence_output(),
        model.get_embedding_table(),
        tf1.constant(positions),
        tf1.constant(positions),
        tf1.zeros(positions.shape),
    )
    return _logits_of(probabilities)


def google_pretrainer(tf1, google_bert, model):
    """The logits of both heads of run_pretraining.py, end to end."""
    scripts = google_bert.pretraining()
    masked = google_masked_lm(tf1, google_bert, model)
    pooled = model.get_pooled_output()
    _, _, probabilities = scripts.get_next_sentence_output(
        _google_config(scripts.modeling), pooled, tf1.zeros(pooled.shape[0], tf1.int32)
    )
    both = [masked, _logits_of(probabilities)]
    return tf1.concat([tf1.reshape(logits, [-1]) for logits in both], axis=0)


def _google_config(modeling):
    """The configuration that `write_google` writes, as Google's class."""
    return modeling.BertConfig.from_dict(GOOGLE_CONFIG)


def _logits_of(probabilities):
    """What Google's code takes the softmax of: the logits themselves."""
    if probabilities.op.type != "LogSoftmax":
        raise TypeError(f"It must be a log-softmax. Received: {probabilities.op.type}.")
    return probabilities.op.inputs[0]


def google_squad(tf1, google_bert, model):
    """The head of `create_model` in run_squad.py, in the context alone."""
    hidden = model.get_sequence_output()
    weights = tf1.get_variable("cls/squad/output_weights", [2, hidden.shape[-1]])
    bias = tf1.get_variable("cls/squad/output_bias", [2])
    logits = tf1.einsum("bsh,ch->bcs", hidden, weights) + bias[:, None]
    outside = in_context(*np.zeros((2, *inputs()["token_ids"].shape))) < 0
    return tf1.where_v2(outside, tf1.constant(-1e9), logits)


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
        if head.keras_hub == "BertMaskedLM":  # at the first token of every row
            positions = np.zeros((len(values["token_ids"]), 1), "int32")
            values = {**values, "mask_positions": positions}
        answers = keras.ops.convert_to_numpy(model(values))
        outputs["answers"] = answers[:, 0] if answers.ndim == 3 else answers
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
