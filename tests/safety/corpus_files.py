"""Hostile folders: names, links and what is no file; weights; pickles; beside code."""

import json
import pickle

from tests.safety.hostile import (
    PIPE,
    SOCKET,
    Case,
    appended,
    content,
    directory,
    each,
    first_tensor,
    header,
    header_bytes,
    index,
    link,
    node,
    signed,
    sparse,
    without,
)

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
READERS = {  # who reads a file, or looks for it
    "config.json": "BCT",
    WEIGHTS: "BC",
    "vocab.txt": "CT",
    "tokenizer_config.json": "CT",
    "tokenizer.json": "CT",
    "kbert.json": "BCT",
}
LEAVES = "must lie in its folder"


class Shell:
    """Unpickled, it would call the shell."""

    def __reduce__(self):
        import os

        return os.system, ("touch unpickled",)


H5 = b"\x89HDF\r\n\x1a\n"
PICKLE = pickle.dumps({"embeddings.word_embeddings.weight": Shell()})


def many_tensors(count):
    """The header of that many tensors without a number, made when it is asked for."""
    entry = '"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    return lambda: f"{{{','.join(entry % i for i in range(count))}}}".encode()


def outside(folder):
    return str(folder.parent / "outside" / WEIGHTS)


NAMES = {
    "index: traversal": Case(
        index(lambda folder: f"../outside/{WEIGHTS}"), LEAVES, "BC"
    ),
    "index: inner traversal": Case(
        index(lambda folder: f"x/../../outside/{WEIGHTS}"), LEAVES, "BC"
    ),
    "index: absolute": Case(index(outside), LEAVES, "BC"),
    "index: address": Case(index(lambda f: "file:///etc/passwd"), LEAVES, "BC"),
    "index: backslashes": Case(index(lambda f: "..\\outside"), LEAVES, "BC"),
    "index: zero byte": Case(index(lambda f: f"{WEIGHTS}\0"), LEAVES, "BC"),
    "index: long name": Case(index(lambda f: "x" * 900), LEAVES, "BC"),
    "index: longer name": Case(index(lambda f: "x" * 10**6), "weight_map", "BC"),
    "index: surrogate": Case(index(lambda f: "\ud800"), "must hold JSON", "BC"),
    "index: empty name": Case(index(lambda f: ""), LEAVES, "BC"),
    "index: number": Case(index(lambda f: 1), "Received: 1", "BC"),
    "index: list": Case(index(lambda f: ["x"]), r"Received: \['x'\]", "BC"),
    "index: itself": Case(index(lambda f: INDEX), "whole safetensors", "BC"),
    "index: no file": Case(index(lambda f: "x.safetensors"), "no file is there", "BC"),
    "index: 100,000 tensors": Case(
        index(lambda f: "x.safetensors", 100_000), "at most 65536 entries", "BC"
    ),
    "index: through a linked folder": Case(
        each(index(lambda f: f"sub/{WEIGHTS}"), link("sub", "../outside")),
        "a link to",
        "BC",
    ),
    "kbert.json: files, traversal": Case(
        signed(files={"../outside/vocab.txt": "0" * 64}), LEAVES, "BC"
    ),
    "kbert.json: files, absolute": Case(
        signed(files={"/etc/passwd": "0" * 64}), LEAVES, "BC"
    ),
    "kbert.json: files, 100,000": Case(
        signed(files={str(i): "0" for i in range(100_000)}), "at most 65536 entries"
    ),
    "kbert.json: vocabulary, traversal": Case(
        each(
            without("vocab.txt", "tokenizer.json"),
            signed(vocabulary="../outside/vocab.txt"),
        ),
        "must have the file 'vocab.txt'",
        "CT",
    ),
    "kbert.json: vocabulary, absolute": Case(
        each(without("vocab.txt", "tokenizer.json"), signed(vocabulary="/etc/passwd")),
        "must have the file 'vocab.txt'",
        "CT",
    ),
    "kbert.json: many files in the folder": Case(
        lambda f: (
            [(f / f"{i:05d}{'x' * 200}").touch() for i in range(1000)]
            and (f / WEIGHTS).unlink()
        ),
        "must have the file 'model.safetensors'.*and more",
        "BC",
    ),
    "link inside": Case(
        lambda f: (f / WEIGHTS).rename(f / "x") and link(WEIGHTS, "x")(f),
        refused_by="",
    ),
    "link to a device": Case(link(WEIGHTS, "/dev/zero"), "a link to /dev/zero", "BC"),
    "link to a process": Case(link("vocab.txt", "/proc/self/environ"), LEAVES, "CT"),
}
for _name, _readers in READERS.items():
    NAMES |= {
        f"link out: {_name}": Case(
            link(_name, f"../outside/{_name}"), "a link to .*outside", _readers
        ),
        f"link, absolute: {_name}": Case(link(_name, "/etc/passwd"), LEAVES, _readers),
        f"link to itself: {_name}": Case(
            link(_name, _name), "regular file.*to nothing", _readers
        ),
        f"link to nothing: {_name}": Case(
            link(_name, "absent"), "regular file.*to nothing", _readers
        ),
        f"folder: {_name}": Case(directory(_name), "regular file.*a folder", _readers),
        f"pipe: {_name}": Case(node(_name, PIPE), "regular file.*a pipe", _readers),
        f"socket: {_name}": Case(node(_name, SOCKET), "regular file", _readers),
    }

HEADER = "must be a whole safetensors file"
HUGE = 1 << 62
TENSORS = {
    "empty": Case(content(WEIGHTS, b""), HEADER, "BC"),
    "seven bytes": Case(content(WEIGHTS, bytes(7)), HEADER, "BC"),
    "eight zeros": Case(content(WEIGHTS, bytes(8)), "header of", "BC"),
    "header of 2**64 - 1": Case(header_bytes(b"{}", length=2**64 - 1), HEADER, "BC"),
    "header of 2**63": Case(header_bytes(b"{}", length=2**63), HEADER, "BC"),
    "header past the end": Case(header_bytes(b"{}", length=3), HEADER, "BC"),
    "header of 300 MB": Case(
        sparse(WEIGHTS, 3 * 10**8 + 8, (3 * 10**8).to_bytes(8, "little")), HEADER, "BC"
    ),
    "1,000,000 tensors": Case(header_bytes(many_tensors(10**6)), HEADER, "BC"),
    "50,000 tensors": Case(header_bytes(many_tensors(50_000)), "more than a", "BC"),
    "20,000 tensors": Case(header_bytes(many_tensors(20_000)), "no place for", "BC"),
    "no tensors": Case(header_bytes(b"{}"), "a tensor for every variable", "BC"),
    "shape of 10**24": Case(first_tensor(shape=[10**12, 10**12]), HEADER, "BC"),
    "shape that overflows": Case(first_tensor(shape=[HUGE, 4]), HEADER, "BC"),
    "shape below 0": Case(first_tensor(shape=[-1]), HEADER, "BC"),
    "shape with a zero": Case(first_tensor(shape=[0, HUGE]), HEADER, "BC"),
    "shape of 100,000 axes": Case(first_tensor(shape=[1] * 100_000), HEADER, "BC"),
    "shape of words": Case(first_tensor(shape=["x"]), HEADER, "BC"),
    "shape that is null": Case(first_tensor(shape=None), HEADER, "BC"),
    "offsets past the end": Case(first_tensor(data_offsets=[0, HUGE]), HEADER, "BC"),
    "offsets backwards": Case(first_tensor(data_offsets=[64, 0]), HEADER, "BC"),
    "offsets below 0": Case(first_tensor(data_offsets=[-64, 0]), HEADER, "BC"),
    "offsets that are one": Case(first_tensor(data_offsets=[0]), HEADER, "BC"),
    "offsets of 10**30": Case(first_tensor(data_offsets=[0, 10**30]), HEADER, "BC"),
    "integers": Case(first_tensor(dtype="I32"), "must be stored as one of", "BC"),
    "unknown dtype": Case(first_tensor(dtype="os.system"), HEADER, "BC"),
    "dtype that is an object": Case(
        first_tensor(dtype={"module": "os", "class_name": "system"}), HEADER, "BC"
    ),
    "metadata of objects": Case(
        header(lambda h: h.update(__metadata__={"module": {"x": "os"}})), HEADER, "BC"
    ),
    "overlapping": Case(
        header(lambda h: h.update(x=h[max(h)], y=h[max(h)])),
        HEADER,
        "BC",
    ),
    "a gap at the end": Case(appended(WEIGHTS, bytes(64)), HEADER, "BC"),
    "every name twice": Case(
        header(lambda h: b"{%b,%b}" % ((json.dumps(h).encode()[1:-1],) * 2)),
        "more than once",
        "BC",
    ),
    "header that is a list": Case(header_bytes(b"[]"), "a JSON object", "BC"),
    "header of numbers": Case(header_bytes(b'{"a": 1}'), HEADER, "BC"),
    "header not UTF-8": Case(header_bytes(b'{"\xff": 1}'), "must hold JSON", "BC"),
    "header of 100,000 levels": Case(
        header_bytes(lambda: b'{"a":' * 100_000), "nesting of 100000", "BC"
    ),
    "a million letters as name": Case(
        header_bytes(
            b'{"%b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' % (b"x" * 10**6)
        ),
        "no place for",
        "BC",
    ),
}

PICKLES = {
    "pytorch_model.bin alone": Case(
        each(without(WEIGHTS), content("pytorch_model.bin", PICKLE)),
        "must have the file 'model.safetensors'.*allow_pickle=True",
        "BC",
    ),
    "weights in other formats alone": Case(
        each(
            without(WEIGHTS),
            content("tf_model.h5", H5),
            content("flax_model.msgpack", b"\xc1"),
            content("model.weights.h5", H5),
        ),
        "tf_model.h5 must be a whole HDF5 file",
        "BC",
    ),
    "pickle as weights": Case(content(WEIGHTS, PICKLE), HEADER, "BC"),
    "zip as weights": Case(content(WEIGHTS, b"PK\x03\x04" + PICKLE), HEADER, "BC"),
    "h5 as weights": Case(content(WEIGHTS, H5 + PICKLE), HEADER, "BC"),
    "pickle as config": Case(content("config.json", PICKLE), "must hold JSON"),
    "pickle as vocabulary": Case(content("vocab.txt", PICKLE), "must be UTF-8", "CT"),
    "pickle as kbert.json": Case(content("kbert.json", PICKLE), "must hold JSON"),
    "code and pickles beside": Case(
        each(
            *(
                content(name, b"raise SystemExit('run')")
                for name in ("__init__.py", "modeling_x.py", "conftest.py", "keras.py")
            ),
            content("training_args.bin", PICKLE),
            content("pytorch_model.bin", PICKLE),
            content("tokenizer.pkl", PICKLE),
            content("keras_metadata.pb", PICKLE),
            content("config.yaml", b"!!python/object/apply:os.system ['true']"),
        ),
        refused_by="",
    ),
}
