"""What `kbert.json` may say: anyone can write its every value, digests included."""

from kbert.strict_json import Required

_LENGTH = range(3, 1 << 20)
SCHEMA = {
    Required("files"): {...: str},
    "preprocessing": {
        "sequence_length": (_LENGTH, None),
        "max_sequence_length": _LENGTH,
        "long_text": ("truncate", "head_tail"),
        ...: (),
    },
    "provenance": dict.fromkeys(("preset", "revision", "repository", "licence"), str),
    "answering": {
        "doc_stride": (range(1, 1 << 20), None),
        "n_best_size": range(1, 1 << 10),
        "max_answer_length": range(1, 1 << 20),
        "null_threshold": (float, None),
        ...: (),
    },
    "head": {"activation": str, "layer_norm_epsilon": float},
    "embedding": {
        "pooling": ("mean", "cls", "max"),
        "normalize": bool,
        "special_tokens": bool,
        "temperature": (float, int),
        "symmetric": bool,
        "longest": _LENGTH,
        ...: (),
    },
    "features": {
        "layers": (str, [int]),
        "mix": ([float], None),
        ...: (),
    },
}
