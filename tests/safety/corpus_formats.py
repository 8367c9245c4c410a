"""Hostile folders: weights in the files of other frameworks."""

import json
import os

import h5py
import msgpack
import numpy as np

from kbert.checkpoints import folder as checkpoint
from kbert.checkpoints import names
from kbert.config import BertConfig
from tests.bundles import writer
from tests.checkpoints import foreign
from tests.safety.hostile import Case, appended, content, each, link, without

WEIGHTS, H5, MSGPACK = "model.safetensors", "tf_model.h5", "flax_model.msgpack"
PREFIX = "bert_model.ckpt"
INDEX, DATA = f"{PREFIX}.index", f"{PREFIX}.data-00000-of-00001"
VARIABLES = "variables/variables"
HEADS = 2
WORDS = "bert/tf_bert_model/bert/embeddings/word_embeddings/weight:0"
BIAS = "bert/tf_bert_model/bert/pooler/dense/bias:0"


def arrays(folder, heads=True):
    """The good folder's arrays by kbert's path; its weights are gone then."""
    path = folder / WEIGHTS
    found = {}
    for name, array in checkpoint.read_weights(path).items():
        ours, transform = names.translate(name, "hugging_face", "kbert")
        if heads or names.head_of(ours) != "classifier":
            found[ours] = np.array(names.apply(transform, np.asarray(array)))
    path.unlink()
    return found


def as_h5(folder):
    foreign.tf_model_h5(folder / H5, arrays(folder))


def as_flax(folder):
    foreign.flax_msgpack(folder / MSGPACK, arrays(folder))


def as_tf2(folder):
    foreign.tf2_checkpoint(folder / PREFIX, arrays(folder, heads=False), HEADS)
    path = folder / "config.json"
    config = BertConfig.from_hugging_face(json.loads(path.read_bytes()))
    (folder / "bert_config.json").write_text(foreign.google_config(config))
    path.unlink()


def as_hub(folder):
    found = arrays(folder, heads=False)
    (folder / "config.json").unlink()
    foreign.hub_saved_model(folder, found, HEADS, ["[PAD]"])


def h5(change):
    """The good weights as `tf_model.h5`, changed by a function of the open file."""

    def damage(folder):
        as_h5(folder)
        with h5py.File(folder / H5, "a") as file:
            change(file)

    return damage


def bias(**how):
    """The pooler's bias is made so."""

    def change(file):
        del file[BIAS]
        file.create_dataset(BIAS, **how)

    return h5(change)


def bias_linked(target):
    def change(file):
        del file[BIAS]
        file[BIAS] = target

    return h5(change)


def virtual(file):
    layout = h5py.VirtualLayout((16,), "float32")
    layout[:] = h5py.VirtualSource("../outside/x.h5", "x", (16,), "float32")
    del file[BIAS]
    file.create_virtual_dataset(BIAS, layout)


def woven(file):
    """Groups that hold the next one a hundred times, six deep."""
    group = file.create_group("woven")
    for depth in range(6):
        inner = file.create_group(f"level{depth}")
        for number in range(100):
            group[str(number)] = inner
        group = inner


def ring(file):
    file["bert/ring"] = file["bert"]


def cut(name, kept):
    """The file ends early."""

    def change(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:kept])

    return change


def flipped(name, at):
    """A bit of the file is another."""

    def change(folder):
        data = bytearray((folder / name).read_bytes())
        data[at] ^= 1
        (folder / name).write_bytes(data)

    return change


def tensor(dtype=1, shape=(16,), data=bytes(64), **more):
    """The checkpoint holds one tensor alone."""

    def change(folder):
        pair = (b"bert/pooler/dense/bias", writer.entry(dtype, shape, 0, data, **more))
        (folder / INDEX).write_bytes(writer.table([writer.HEADER, pair]))
        (folder / DATA).write_bytes(data)

    return each(as_tf2, change)


def many_tensors(folder):
    empty = writer.entry(1, (0,), 0, b"")
    pairs = [(b"%06d" % n, empty) for n in range(70_000)]
    (folder / INDEX).write_bytes(writer.table([writer.HEADER, *pairs]))


def huge_embedding(folder):
    """The variables claim an embedding of 2**24 rows, of which no number is there."""
    found, named = foreign.objects(arrays(folder, heads=False), HEADS)
    (folder / "config.json").unlink()
    (folder / "saved_model.pb").touch()
    prefix = folder / VARIABLES
    writer.write(prefix, found, named)
    word = b"layer_with_weights-0/embeddings"
    shape = (1 << 24, 16)
    lie = (word, writer.entry(1, shape, 0, b"", size=4 * shape[0] * shape[1]))
    graph = (writer.GRAPH.encode(), b"")
    pairs = [writer.HEADER, graph, lie]
    prefix.with_name("variables.index").write_bytes(writer.table(pairs))


def packed(tree):
    return each(without(WEIGHTS), content(MSGPACK, lambda: msgpack.packb(tree())))


def flax_bias(value):
    """The good weights as Flax has them, with another value for one of them."""

    def change(folder):
        tree = foreign.flax_tree(arrays(folder, heads=False))
        tree["pooler"]["dense"]["bias"] = value
        (folder / MSGPACK).write_bytes(msgpack.packb(tree))

    return change


def extension(*parts, code=1):
    return msgpack.ExtType(code, msgpack.packb(parts))


HDF5 = {
    "good": Case(as_h5, refused_by=""),
    "empty": Case(each(without(WEIGHTS), content(H5, b"")), "whole HDF5", "BC"),
    "truncated": Case(each(as_h5, cut(H5, 4000)), "whole HDF5", "BC"),
    "truncated late": Case(each(as_h5, cut(H5, -9)), "whole HDF5", "BC"),
    "its head alone": Case(each(as_h5, cut(H5, 96)), "whole HDF5", "BC"),
    "link out": Case(
        each(without(WEIGHTS), link(H5, "../outside/vocab.txt")), "a link to", "BC"
    ),
    "soft link": Case(bias_linked(h5py.SoftLink("/bert")), "a SoftLink", "BC"),
    "soft link to nothing": Case(
        bias_linked(h5py.SoftLink("/x/../../etc/passwd")), "a SoftLink", "BC"
    ),
    "external link": Case(
        bias_linked(h5py.ExternalLink("../outside/x.h5", "/x")), "a ExternalLink", "BC"
    ),
    "external data": Case(
        bias(shape=(16,), dtype="float32", external=[("/etc/passwd", 0, 64)]),
        "whose data lie elsewhere",
        "BC",
    ),
    "virtual data": Case(h5(virtual), "whose data lie elsewhere", "BC"),
    "a ring": Case(h5(ring), "nest its groups deeper", "BC"),
    "woven": Case(h5(woven), "must have at most 16384", "BC"),
    "shape of 2**50": Case(
        bias(shape=(1 << 50,), dtype="float32", chunks=(1 << 16,)), "in 0 bytes", "BC"
    ),
    "compressed": Case(
        bias(data=np.zeros(1 << 22, "float32"), compression="gzip"), "uncompr", "BC"
    ),
    "no shape": Case(bias(data=h5py.Empty("float32")), "the shape None", "BC"),
    "integers": Case(bias(data=np.arange(16)), "Received: int64", "BC"),
    "words": Case(bias(data=["x"] * 16), "Received: object", "BC"),
    "pairs": Case(
        bias(data=np.zeros(16, [("module", "f4"), ("x", "f4")])), "Received: ", "BC"
    ),
    "complex": Case(bias(data=np.zeros(16, "c8")), "Received: complex64", "BC"),
    "a type": Case(bias_linked(np.dtype("float32")), "a Datatype", "BC"),
    "one dataset many times": Case(
        h5(lambda file: file.update({f"x{n}": file[WORDS] for n in range(1000)})),
        "datasets of .* bytes in a file of",
        "BC",
    ),
}
FLAX = "must be whole msgpack"
FLAXES = {
    "good": Case(as_flax, refused_by=""),
    "empty": Case(each(without(WEIGHTS), content(MSGPACK, b"")), FLAX, "BC"),
    "truncated": Case(each(as_flax, cut(MSGPACK, 4000)), FLAX, "BC"),
    "more behind": Case(each(as_flax, appended(MSGPACK, bytes(9))), FLAX, "BC"),
    "200 MB of zeros": Case(
        each(as_flax, lambda folder: os.truncate(folder / MSGPACK, 2 * 10**8)),
        FLAX,
        "BC",
    ),
    "a map of 2**32": Case(
        each(without(WEIGHTS), content(MSGPACK, b"\xdf" + b"\xff" * 4)), FLAX, "BC"
    ),
    "1,000,000 levels": Case(
        each(without(WEIGHTS), content(MSGPACK, b"\x81\xa1x" * 10**6)), FLAX, "BC"
    ),
    "1,000,000 maps": Case(
        packed(lambda: {str(n): dict.fromkeys("abcdefghij", {}) for n in range(9999)}),
        FLAX,
        "BC",
    ),
    "lists in lists": Case(flax_bias(extension([[[]]] * 30)), "of lists|many v", "BC"),
    "shape of 2**60": Case(flax_bias(extension([1 << 60], "float32", b"")), FLAX, "BC"),
    "shape of -1": Case(flax_bias(extension([-16], "float32", bytes(64))), FLAX, "BC"),
    "a module as dtype": Case(flax_bias(extension([16], "os.system", b"")), FLAX, "BC"),
    "a timestamp": Case(flax_bias(msgpack.Timestamp(1)), FLAX, "BC"),
    "a complex number": Case(flax_bias(extension(1.0, 2.0, code=2)), FLAX, "BC"),
    "integers": Case(flax_bias(extension([16], "int32", bytes(64))), "int32", "BC"),
    "a path as key": Case(packed(lambda: {"../../x": None}), "the key", "BC"),
}
CHECKPOINT = "must be a whole checkpoint"
CHECKPOINTS = {
    "good": Case(as_tf2, refused_by=""),
    "good SavedModel": Case(as_hub, refused_by=""),
    "index cut": Case(each(as_tf2, cut(INDEX, 500)), CHECKPOINT, "BC"),
    "index empty": Case(each(as_tf2, content(INDEX, b"")), CHECKPOINT, "BC"),
    "index of zeros": Case(each(as_tf2, content(INDEX, bytes(99))), CHECKPOINT, "BC"),
    "index flipped": Case(each(as_tf2, flipped(INDEX, 99)), "another checksum", "BC"),
    "data cut": Case(each(as_tf2, cut(DATA, 4000)), "too few for it", "BC"),
    "data flipped": Case(each(as_tf2, flipped(DATA, 4000)), "another checksum", "BC"),
    "data gone": Case(each(as_tf2, without(DATA)), "0 bytes of", "BC"),
    "data linked out": Case(
        each(as_tf2, link(DATA, "../outside/model.safetensors")), "a link to", "BC"
    ),
    "index linked out": Case(
        each(as_tf2, link(INDEX, "../outside/vocab.txt")), "a link to", "BC"
    ),
    "SavedModel linked out": Case(
        each(as_hub, link(f"{VARIABLES}.index", "/etc/passwd")), "a link to", "BC"
    ),
    "70,000 tensors": Case(each(as_tf2, many_tensors), "must have at most 655", "BC"),
    "shape of 2**62": Case(tensor(shape=(1 << 62, 4)), CHECKPOINT, "BC"),
    "shape of a zero": Case(
        tensor(shape=(0, 1 << 62), data=b""), "must have a t", "BC"
    ),
    "17 axes": Case(tensor(shape=(1,) * 17, data=bytes(4)), CHECKPOINT, "BC"),
    "beyond the end": Case(tensor(shape=(1 << 30,), size=1 << 32), "too few", "BC"),
    "in no file": Case(tensor(shard=9), CHECKPOINT, "BC"),
    "of strings": Case(tensor(dtype=7), "must have a tensor for every", "BC"),
    "huge embedding": Case(huge_embedding, "too few for it", "BC"),
}
