"""Variables of TensorFlow 2's BERTs (tf-models' `official/nlp`) by Google's old names.

`tf.train.Checkpoint` calls a variable by the attributes that lead to it,
`encoder/layer_with_weights-4/_attention_layer/_query_dense/kernel`, and keeps the
name that Keras gave it beside, `transformer/layer_0/self_attention/query/kernel`. What
leads to it changes with the program that saved it, so that the latter decides where
the former says nothing. Attention's weights have an axis of heads there.

Names as in tf-models' tf1_bert_checkpoint_converter_lib.py, and in transformers 4's
convert_bert_original_tf2_checkpoint_to_pytorch.py.
"""

import re
from collections.abc import Mapping

from kbert.bundles.reading import (
    MAX_INDEX_BYTES,
    Entry,
    inner_messages,
    message_fields,
)

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"

_ATTRIBUTES = re.compile(r"(?:encoder|model)/layer_with_weights-(\d+)/(.+)")
_FIRST_LAYER = 4  # behind three embeddings and their normalisation
_EMBEDDINGS = {
    "0/embeddings": "bert/embeddings/word_embeddings",
    "1/embeddings": "bert/embeddings/position_embeddings",
    "1/_position_embeddings": "bert/embeddings/position_embeddings",
    "2/embeddings": "bert/embeddings/token_type_embeddings",
    "3/gamma": "bert/embeddings/LayerNorm/gamma",
    "3/beta": "bert/embeddings/LayerNorm/beta",
}
_PARTS_OF_A_LAYER = {
    "_attention_layer/_query_dense": "attention/self/query",
    "_attention_layer/_key_dense": "attention/self/key",
    "_attention_layer/_value_dense": "attention/self/value",
    "_attention_layer/_output_dense": "attention/output/dense",
    "_attention_output_dense": "attention/output/dense",
    "_attention_layer_norm": "attention/output/LayerNorm",
    "_intermediate_dense": "intermediate/dense",
    "_output_dense": "output/dense",
    "_output_layer_norm": "output/LayerNorm",
}
# Keras's names: those of 2020 and later, and, with "bert_model/", those before.
_KERAS = (
    (r"(?:bert_model/)?word_embeddings/embeddings", "bert/embeddings/word_embeddings"),
    (
        r"position_embedding/(?:position_)?embeddings",
        "bert/embeddings/position_embeddings",
    ),
    (r"type_embeddings/embeddings", "bert/embeddings/token_type_embeddings"),
    (
        r"bert_model/embedding_postprocessor/position_embeddings",
        "bert/embeddings/position_embeddings",
    ),
    (
        r"bert_model/embedding_postprocessor/type_embeddings",
        "bert/embeddings/token_type_embeddings",
    ),
    (
        r"(?:embeddings|bert_model/embedding_postprocessor)/layer_norm/(gamma|beta)",
        r"bert/embeddings/LayerNorm/\1",
    ),
    (r"(?:bert_model/)?pooler_transform/(kernel|bias)", r"bert/pooler/dense/\1"),
    (r"(?:bert/)?cls/predictions/output_bias(?:/bias)?", "cls/predictions/output_bias"),
    (
        r"(?:bert/)?cls/predictions/transform/(dense|LayerNorm)/(kernel|bias|gamma|beta)",
        r"cls/predictions/transform/\1/\2",
    ),
)
_KERAS_LAYER = re.compile(r"(?:transformer|bert_model/encoder)/layer_(\d+)/(.+)/(\w+)")
_KERAS_PARTS = {
    "self_attention/query": "attention/self/query",
    "self_attention/key": "attention/self/key",
    "self_attention/value": "attention/self/value",
    "self_attention/attention_output": "attention/output/dense",
    "self_attention_output": "attention/output/dense",
    "self_attention_layer_norm": "attention/output/LayerNorm",
    "intermediate": "intermediate/dense",
    "output": "output/dense",
    "output_layer_norm": "output/LayerNorm",
}
_IN_HEADS = re.compile(r"/attention/self/(?:query|key|value)/(?:kernel|bias)$")
_OUT_OF_HEADS = re.compile(r"/attention/output/dense/kernel$")
_QUERY_BIAS = "bert/encoder/layer_0/attention/self/query/bias"


def by_google_names(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Returns the tensors of a checkpoint by the names of google-research/bert.

    Args:
        entries: the tensors by TensorFlow 2's names, among them the graph of objects.

    Returns:
        The tensors; one that is no weight of a BERT's keeps its name, without the end
        that all have.

    Raises:
        ValueError: if the graph is damaged, or two tensors have one name.
    """
    named = _names_of_keras(entries[GRAPH])
    found = {}
    for key, entry in entries.items():
        if key == GRAPH:
            continue
        plain = key.removesuffix(VALUE)
        name = from_attributes(plain) or from_keras(named.get(key, "")) or plain
        if ".OPTIMIZER_SLOT" in key:
            name = plain
        if name in found:
            raise ValueError(
                f"A checkpoint must have each tensor once. Received two for {name!r}: "
                f"{found[name].where} and {entry.where}."
            )
        found[name] = entry
    return found


def from_attributes(key: str) -> str | None:
    """Returns Google's name of a variable that attributes lead to.

    Example:
    >>> from_attributes("encoder/layer_with_weights-5/_output_dense/bias")
    'bert/encoder/layer_1/output/dense/bias'
    """
    match = _ATTRIBUTES.fullmatch(key)
    if match is None:
        return None
    number, rest = int(match[1]), match[2]
    if number < _FIRST_LAYER:
        return _EMBEDDINGS.get(f"{number}/{rest}")
    if rest in ("kernel", "bias"):
        return f"bert/pooler/dense/{rest}"
    part, _, variable = rest.rpartition("/")
    if part not in _PARTS_OF_A_LAYER:
        return None
    layer = number - _FIRST_LAYER
    return f"bert/encoder/layer_{layer}/{_PARTS_OF_A_LAYER[part]}/{variable}"


def from_keras(name: str) -> str | None:
    """Returns Google's name of a variable that Keras named.

    Example:
    >>> from_keras("transformer/layer_1/self_attention/attention_output/kernel")
    'bert/encoder/layer_1/attention/output/dense/kernel'
    """
    name = name.removesuffix(":0")
    match = _KERAS_LAYER.fullmatch(name)
    if match and match[2] in _KERAS_PARTS:
        return f"bert/encoder/layer_{match[1]}/{_KERAS_PARTS[match[2]]}/{match[3]}"
    for pattern, replacement in _KERAS:
        found = re.fullmatch(pattern, name)
        if found:
            return found.expand(replacement)
    return None


def flat_shape(
    name: str, shape: tuple[int, ...], num_heads: int, where: str
) -> tuple[int, ...]:
    """Returns a tensor's shape with the axes of heads and of their width in one.

    Args:
        name: Google's, of the tensor.
        shape: of the tensor.
        num_heads: N of the model.
        where: what it is called in errors.

    Raises:
        ValueError: if it has another number of heads.

    Example:
    >>> name = "bert/encoder/layer_0/attention/self/query/kernel"
    >>> flat_shape(name, (8, 2, 4), 2, "here")
    (8, 8)
    """
    at = None
    if _IN_HEADS.search(name) and len(shape) == (2 if name.endswith("bias") else 3):
        at = len(shape) - 2
    elif _OUT_OF_HEADS.search(name) and len(shape) == 3:
        at = 0
    return shape if at is None else joined_heads(shape, at, num_heads, where)


def joined_heads(
    shape: tuple[int, ...], at: int, num_heads: int, where: str
) -> tuple[int, ...]:
    """Returns a shape with the axis of heads, at `at`, and that of their width in one.

    Args:
        shape: of the tensor.
        at: the axis of heads.
        num_heads: N of the model.
        where: what the tensor is called in errors.

    Raises:
        ValueError: if it has another number of heads.
    """
    if shape[at] != num_heads:
        raise ValueError(
            f"{where} must have {num_heads} heads, as the configuration says. "
            f"Received: the shape {shape}."
        )
    return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])


def config_of(entries: Mapping[str, Entry], where: str) -> dict:
    """Returns a `config.json` of the sizes that tensors have.

    Args:
        entries: as `by_google_names` returns them.
        where: what they are called in errors.

    Raises:
        ValueError: if they are not those of a BERT's encoder.
    """
    needed = {
        "word": "bert/embeddings/word_embeddings",
        "position": "bert/embeddings/position_embeddings",
        "segment": "bert/embeddings/token_type_embeddings",
        "inner": "bert/encoder/layer_0/intermediate/dense/bias",
        "query": _QUERY_BIAS,
    }
    shapes = {key: entries[n].shape for key, n in needed.items() if n in entries}
    absent = [name for key, name in needed.items() if key not in shapes]
    lengths = {"word": 2, "position": 2, "segment": 2, "inner": 1, "query": 2}
    if absent or any(len(shapes[key]) != count for key, count in lengths.items()):
        raise ValueError(
            f"{where} must hold the encoder of a BERT. Received: "
            f"{f'no {absent}' if absent else shapes} among {sorted(entries)[:20]}."
        )
    layers = {n.split("/")[2] for n in entries if n.startswith("bert/encoder/layer_")}
    return {
        "vocab_size": shapes["word"][0],
        "hidden_size": shapes["word"][1],
        "num_hidden_layers": len(layers),
        "num_attention_heads": shapes["query"][0],
        "intermediate_size": shapes["inner"][0],
        "max_position_embeddings": shapes["position"][0],
        "type_vocab_size": shapes["segment"][0],
        "hidden_act": "gelu_new",
    }


def _names_of_keras(graph: Entry) -> dict[str, str]:
    """Returns the names that Keras gave, by the names in the checkpoint.

    The graph is a message of tensorflow/core/protobuf/trackable_object_graph.proto.
    """
    where = graph.where
    if graph.size > MAX_INDEX_BYTES:
        raise ValueError(
            f"{where} must have at most {MAX_INDEX_BYTES} bytes. Received: "
            f"{graph.size}."
        )
    named = {}
    for node in inner_messages(message_fields(graph.read_string(), where), 1, where):
        for attribute in inner_messages(message_fields(node, where), 2, where):
            fields = message_fields(attribute, where)
            name, key = (fields.get(number, [b""])[0] for number in (2, 3))
            if isinstance(name, bytes) and isinstance(key, bytes):
                named[key.decode(errors="replace")] = name.decode(errors="replace")
    return named
