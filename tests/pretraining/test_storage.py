"""Files of instances: read by Arrow alone, complete or not there."""

import json
from itertools import pairwise

import numpy as np
import pyarrow
import pyarrow.ipc
import pytest

from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining import storage
from kbert.pretraining.assembling import make_instances
from kbert.pretraining.settings import InstanceSettings
from tests.pretraining import toy
from tests.pretraining.test_assembling import blocks, corpus


@pytest.mark.parametrize(("size", "kind"), [(200, "uint16"), (70_000, "int32")])
def test_any_reader_of_arrow_has_the_instances(tmp_path, size, kind):
    made = blocks()
    path = tmp_path / "shard.arrow"
    storage.write_instances(path, iter(made), size, {"who": "kbert"})
    with pyarrow.memory_map(str(path)) as file:
        table = pyarrow.ipc.open_file(file).read_all()
        assert table.schema.metadata == {b"who": b"kbert"}
        assert table.schema.field("token_ids").type.value_type == kind
        rows = table.to_pylist()
    assert len(rows) == sum(b.size for b in made)
    first = made[0]
    for number in (0, first.size - 1):
        tokens = slice(*first.row_splits[number : number + 2])
        masked = slice(*first.mask_splits[number : number + 2])
        assert rows[number] == {
            "token_ids": first.token_ids[tokens].tolist(),
            "second_start": first.second_starts[number],
            "next_sentence": first.labels[number],
            "mask_positions": first.mask_positions[masked].tolist(),
            "mask_labels": first.mask_labels[masked].tolist(),
        }


def test_blocks_come_back(tmp_path):
    made = blocks()
    path = tmp_path / "shard.arrow"
    storage.write_instances(path, iter(made), 200, {})
    file = storage.opened(path)
    for number, block in enumerate(made):
        found = storage.read_block(file, number)
        rows = [5, 0, block.size - 1]
        for whole in (block, found):
            some = storage.select(whole, rows)
            assert some.size == 3 and some.token_ids.dtype == np.int32
            begin, end = block.row_splits[5:7]
            np.testing.assert_array_equal(
                some.token_ids[: end - begin], block.token_ids[begin:end]
            )
            begin, end = block.mask_splits[-2:]
            np.testing.assert_array_equal(
                some.mask_labels[some.mask_splits[2] :], block.mask_labels[begin:end]
            )
            np.testing.assert_array_equal(some.labels, block.labels[rows])


def test_documents_come_back(tmp_path):
    parts = [corpus(20), corpus(1), corpus(7)]
    path = tmp_path / "part.arrow"
    storage.write_documents(path, iter(parts), {"documents": 28})
    whole = storage.joined(parts)

    def sentences(documents, number):
        begin, end = documents.document_splits[number : number + 2]
        splits = documents.sentence_splits[begin : end + 1]
        return [documents.tokens[a:b].tolist() for a, b in pairwise(splits)]

    wanted = np.array([0, 3, 19, 20, 22, 27])
    found = storage.joined(storage.read_documents(path, wanted))
    assert found.size == 6
    for number, original in enumerate(wanted.tolist()):
        assert sentences(found, number) == sentences(whole, original)
    assert storage.counts_of(path)["documents"] == 28
    assert storage.read_documents(path, np.array([], np.int64)) == []


def test_a_file_counts_where_its_marker_does(tmp_path):
    path = tmp_path / "shard.arrow"
    assert storage.counts_of(path) is None
    storage.write_instances(path, blocks(), 200, {})
    counts = storage.counts_of(path)
    assert counts["size"] == path.stat().st_size
    assert counts["masked"] > 0 and len(counts["instances"]) == 2
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    assert storage.counts_of(path) is None
    path.write_bytes(content)
    assert storage.counts_of(path) == counts
    storage.marker_of(path).unlink()
    assert storage.counts_of(path) is None


def test_what_fails_leaves_nothing(tmp_path):
    path = tmp_path / "shard.arrow"

    def broken():
        yield blocks()[0]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        storage.write_instances(path, broken(), 200, {})
    assert list(tmp_path.iterdir()) == []


def test_no_instance_is_a_file_too(tmp_path):
    nothing = corpus(1)._replace(
        sentence_splits=np.array([0, 1]), document_splits=np.array([0, 1])
    )
    settings = InstanceSettings(next_sentence="order", masking=MaskingRule())
    path = tmp_path / "shard.arrow"
    made = make_instances(nothing, toy.tokenizer(), settings, 0)
    storage.write_instances(path, made, 200, {})
    assert sum(json.loads(storage.marker_of(path).read_text())["instances"]) == 0
    with pyarrow.memory_map(str(path)) as file:
        assert pyarrow.ipc.open_file(file).read_all().num_rows == 0
