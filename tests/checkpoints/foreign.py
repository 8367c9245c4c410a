"""Writes a BERT as other frameworks did, by hand: their programs are gone.

The layouts are those of transformers 4.57 (`TFPreTrainedModel.save_pretrained`, which
is Keras 2's `save_weights` to HDF5, and `FlaxPreTrainedModel.save_pretrained`, which is
`flax.serialization.to_bytes`) and of tensorflow/models 2.3 and later
(`official/nlp/tools/tf1_bert_checkpoint_converter_lib.py`, `export_tfhub.py`).
"""

import json
import re

import h5py
import msgpack
import numpy as np

from tests.bundles import writer

# Ours: transformers', below the encoder.
EMBEDDINGS = {
    "embeddings/token_embedding": "embeddings/word_embeddings",
    "embeddings/position_embedding": "embeddings/position_embeddings",
    "embeddings/segment_embedding": "embeddings/token_type_embeddings",
    "embeddings/norm": "embeddings/LayerNorm",
}
LAYER = {
    "attention/query": "attention/self/query",
    "attention/key": "attention/self/key",
    "attention/value": "attention/self/value",
    "attention/output": "attention/output/dense",
    "attention_norm": "attention/output/LayerNorm",
    "intermediate": "intermediate/dense",
    "output": "output/dense",
    "output_norm": "output/LayerNorm",
}
# Ours: the attributes, and the scopes, of tf-models.
OBJECTS = {
    "attention/query": ("_attention_layer/_query_dense", "self_attention/query"),
    "attention/key": ("_attention_layer/_key_dense", "self_attention/key"),
    "attention/value": ("_attention_layer/_value_dense", "self_attention/value"),
    "attention/output": (
        "_attention_layer/_output_dense",
        "self_attention/attention_output",
    ),
    "attention_norm": ("_attention_layer_norm", "self_attention_layer_norm"),
    "intermediate": ("_intermediate_dense", "intermediate"),
    "output": ("_output_dense", "output"),
    "output_norm": ("_output_layer_norm", "output_layer_norm"),
}
EMBEDDING_OBJECTS = {
    "embeddings/token_embedding": ("0", "word_embeddings"),
    "embeddings/position_embedding": ("1", "position_embedding"),
    "embeddings/segment_embedding": ("2", "type_embeddings"),
    "embeddings/norm": ("3", "embeddings/layer_norm"),
}
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def split(path):
    """Returns the number of the layer or None, the part, and the variable's name."""
    part, _, variable = path.rpartition("/")
    match = re.fullmatch(r"encoder_layer_(\d+)/(.+)", part)
    return (int(match[1]), match[2], variable) if match else (None, part, variable)


def scopes(path, layer):
    """Returns transformers' scopes of a variable, with `bert/` in the encoder."""
    number, part, _ = split(path)
    if number is not None:
        return f"bert/encoder/{layer.format(number)}/{LAYER[part]}"
    if part in EMBEDDINGS:
        return f"bert/{EMBEDDINGS[part]}"
    return {"pooler/dense": "bert/pooler/dense"}.get(part, part)


def tf_model_h5(path, arrays, model="tf_bert_model", more=None):
    """Writes `tf_model.h5`: by the layer of the model's top, then all scopes."""
    named = {}
    for ours, array in arrays.items():
        scope, variable = scopes(ours, "layer_._{}"), ours.rsplit("/", 1)[1]
        if scope.endswith("word_embeddings"):
            variable = "weight"
        named[f"{scope}/{variable}:0"] = array
    named.update(more or {})
    with h5py.File(path, "w") as file:
        tops = sorted({name.split("/")[0] for name in named})
        file.attrs["layer_names"] = [top.encode() for top in (*tops, "dropout_37")]
        file.attrs["backend"] = b"tensorflow"
        file.create_group("dropout_37").attrs["weight_names"] = []
        file.create_group("top_level_model_weights").attrs["weight_names"] = []
        for top in tops:
            # The head of masked words shares the layer of the embeddings.
            starts = [f"{top}/", *["bert/embeddings/"] * (top == "mlm___cls")]
            mine = [name for name in named if name.startswith(tuple(starts))]
            own = {f"{model}/{name}": named[name] for name in mine}
            group = file.create_group(top)
            group.attrs["weight_names"] = [name.encode() for name in own]
            for name, array in own.items():
                group.create_dataset(name, data=array)


def packed(array, dtype=None):
    """Returns an array as `flax.serialization` packs it."""
    array = np.asarray(array)
    whole = (array.shape, dtype or array.dtype.name, array.tobytes())
    return msgpack.ExtType(1, msgpack.packb(whole, use_bin_type=True))


def chunked(array, size):
    """Returns an array as Flax packs one above 2**30 bytes, in chunks of `size`."""
    flat = array.reshape(-1)
    parts = [flat[start : start + size] for start in range(0, flat.size, size)]
    return {
        "__msgpack_chunked_array__": True,
        "shape": {str(axis): length for axis, length in enumerate(array.shape)},
        "chunks": {str(number): packed(part) for number, part in enumerate(parts)},
    }


def flax_tree(arrays, bare=True):
    """Returns nested maps of arrays, without `bert` where there is no head."""
    tree = {}
    for ours, array in arrays.items():
        keys = [*scopes(ours, "layer/{}").split("/"), ours.rsplit("/", 1)[1]]
        names = {"embeddings": "embedding", "gamma": "scale", "beta": "bias"}
        keys[-1] = names.get(keys[-1], keys[-1])
        inner = tree
        for key in keys[bare:-1]:
            inner = inner.setdefault(key, {})
        inner[keys[-1]] = packed(array)
    return tree


def flax_msgpack(path, arrays, more=None):
    """Writes `flax_model.msgpack`."""
    heads = {ours for ours in arrays if ours.startswith("classifier")} or more
    tree = {**flax_tree(arrays, bare=not heads), **(more or {})}
    path.write_bytes(msgpack.packb(tree, strict_types=True))


def with_heads(ours, array, num_heads):
    """Returns an array with attention's axis of heads, as tf-models has it."""
    _, part, variable = split(ours)
    if part in ("attention/query", "attention/key", "attention/value"):
        return array.reshape(*array.shape[:-1], num_heads, -1)
    if (part, variable) == ("attention/output", "kernel"):
        return array.reshape(num_heads, -1, array.shape[-1])
    return array


def objects(arrays, num_heads):
    """Returns {attributes: array} and {attributes: Keras's name} of an encoder."""
    found, named = {}, {}
    layers = 1 + max(split(ours)[0] or 0 for ours in arrays)
    for ours, array in arrays.items():
        number, part, variable = split(ours)
        if number is not None:
            attributes, scope = OBJECTS[part]
            attributes = f"{number + 4}/{attributes}"
            scope = f"transformer/layer_{number}/{scope}"
        else:
            pooler = (str(layers + 4), "pooler_transform")
            attributes, scope = EMBEDDING_OBJECTS.get(part, pooler)
        key = f"layer_with_weights-{attributes}/{variable}"
        found[key] = with_heads(ours, array, num_heads)
        named[key] = f"{scope}/{variable}"
    return found, named


def tf2_checkpoint(prefix, arrays, num_heads, root="encoder", more=None):
    """Writes what `tf.train.Checkpoint(encoder=…)` of tf-models writes."""
    found, named = objects(arrays, num_heads)
    stored = {f"{root}/{key}{VALUE}": array for key, array in found.items()}
    stored[f"save_counter{VALUE}"] = np.int64(1)
    names = {f"{root}/{key}{VALUE}": name for key, name in named.items()}
    writer.write(prefix, {**stored, **(more or {})}, names)


def hub_saved_model(folder, arrays, num_heads, vocabulary, lowercase=True):
    """Writes what export_tfhub.py leaves, but for the graph, which nobody reads here.

    Keras lists a model's variables, so that the shortest way to each is its number.
    """
    found, named = objects(arrays, num_heads)
    keys = {key: f"variables/{index}{VALUE}" for index, key in enumerate(found)}
    stored = {keys[key]: array for key, array in found.items()}
    if lowercase is not None:
        stored[f"do_lower_case{VALUE}"] = np.bool_(lowercase)
    names = {keys[key]: name for key, name in named.items()}
    writer.write(folder / "variables" / "variables", stored, names)
    (folder / "saved_model.pb").write_bytes(b"")
    (folder / "assets").mkdir()
    (folder / "assets" / "vocab.txt").write_text("\n".join(vocabulary) + "\n")


def google_config(config):
    """Returns the content of a `bert_config.json`."""
    return json.dumps({**config.to_hugging_face(), "hidden_act": "gelu"})
