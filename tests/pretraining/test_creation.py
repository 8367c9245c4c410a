"""From a corpus to a folder: the same bytes by any way, and on after a kill."""

import gzip
import os
import signal
import sys
from itertools import pairwise

import numpy as np
import pytest

from kbert.data.corpus import CorpusFormat
from kbert.pretraining import creation, steps, storage
from kbert.pretraining.settings import InstanceSettings
from tests.pretraining import toy
from tests.pretraining.toy import SETTINGS, content, create, create_and_die

TOKENIZER = toy.tokenizer()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(toy.text(80))
    return path


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "instances"
    return folder, create(corpus, folder)


def test_what_is_told(made):
    folder, report = made
    documents = toy.documents(80)
    assert report.corpus.documents == 80
    assert report.corpus.sentences == sum(map(len, documents))
    assert report.tokens == sum(len(i) for d in documents for i in TOKENIZER(d))
    assert report.shards == -(-report.tokens // 1500) > 3
    files = sorted(path.name for path in folder.iterdir())
    count = report.shards
    shards = [f"shard-{n:05d}-of-{count:05d}.arrow" for n in range(count)]
    markers = [f"{name}.json" for name in shards]
    assert files == sorted([*shards, *markers, "plan.json", "instances.json"])
    assert 0.5 < report.random / report.instances < 0.75
    assert 0.1 < report.masked / report.instance_tokens < 0.2
    told = report.lines()
    assert told[0].startswith("The corpus has 80 documents of ")
    assert f"Made {report.instances:,} instances" in told[1]
    assert f"{report.random / report.instances:.2%} of the instances" in told[2]


def test_two_processes_write_the_same_bytes(corpus, made, tmp_path):
    create(corpus, tmp_path / "two", workers=2)
    assert content(tmp_path / "two") == content(made[0])


def test_a_killed_run_goes_on(corpus, made, tmp_path):
    folder = tmp_path / "killed"
    context = creation._context()
    # The plan and the first part; then in the middle of the shards.
    for left in (4, 9):
        child = context.Process(target=create_and_die, args=(corpus, folder, left))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        everything = [path for path in folder.rglob("*") if path.is_file()]
        assert any(path.name.startswith(".") for path in everything)
        assert not (folder / creation.MANIFEST).exists()
    untouched = {
        path: path.stat().st_mtime_ns
        for path in folder.glob("shard-*.arrow")
        if storage.counts_of(path)
    }
    assert untouched
    create(corpus, folder)
    assert content(folder) == content(made[0])
    for path, changed in untouched.items():
        assert path.stat().st_mtime_ns == changed


def test_what_is_complete_is_not_made_again(corpus, made):
    told = []
    folder, report = made
    again = create(corpus, folder, progress=lambda *args: told.append(args))
    assert again == report and told == []


def test_a_torn_shard_is_made_again(corpus, made, tmp_path):
    folder = tmp_path / "torn"
    create(corpus, folder, progress=None)
    (folder / creation.MANIFEST).unlink()
    victim = sorted(folder.glob("shard-*.arrow"))[1]
    victim.write_bytes(victim.read_bytes()[:100])
    told = []
    create(corpus, folder, progress=lambda *args: told.append(args))
    assert content(folder) == content(made[0])
    shards = made[1].shards
    assert told[-2:] == [
        ("shards made", shards - 1, shards),
        ("shards made", shards, shards),
    ]


def test_other_ways_to_the_same_instances(corpus, made, tmp_path, monkeypatch):
    """A packed file, and parts of another size, hold the same documents."""
    monkeypatch.setattr(steps, "_CHARACTERS", 500)  # many record batches a part
    packed = tmp_path / "corpus.txt.gz"
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    for number, (source, size) in enumerate([(packed, 1 << 13), (corpus, 1 << 20)]):
        folder = tmp_path / f"way{number}"
        create(source, folder, part_bytes=size)
        for path in made[0].glob("shard-*.arrow"):
            assert (folder / path.name).read_bytes() == path.read_bytes()


def test_shards_are_samples_of_the_corpus(corpus, tmp_path):
    folder = tmp_path / "folder"
    plan = creation.plan_for([corpus], TOKENIZER, SETTINGS, None, 1 << 13)
    creation.begin(folder, plan)
    assert len(plan.parts) > 2
    for number in range(len(plan.parts)):
        steps.tokenize_part(folder, number)
    count = creation.count_shards(folder, plan)
    dealt = [steps._dealt(folder, plan, number, count) for number in range(count)]
    sizes = [documents.size for documents in dealt]
    assert sum(sizes) == 80 and max(sizes) - min(sizes) <= 1
    whole = [[i for s in TOKENIZER(d) for i in s] for d in toy.documents(80)]
    found = []
    for documents in dealt:
        places = documents.sentence_splits[documents.document_splits]
        ids = [documents.tokens[a:b].tolist() for a, b in pairwise(places)]
        numbers = [whole.index(each) for each in ids]
        assert numbers == sorted(numbers) and np.ptp(numbers) > 30
        found += numbers
    assert sorted(found) == list(range(80))


def test_other_settings_in_the_same_folder(corpus, made, tmp_path):
    changed = InstanceSettings(sequence_length=64, shard_tokens=1500)
    with pytest.raises(
        ValueError, match=r"instances, whose plan.json has other settings"
    ):
        create(corpus, made[0], settings=changed)
    other = tmp_path / "other.txt"
    other.write_text(toy.text(3))
    with pytest.raises(ValueError, match="has other parts and sizes"):
        create(other, made[0])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="no plan.json but thesis.tex"):
        create(corpus, tmp_path / "full")


@pytest.mark.parametrize("text", ["", "\n\n", "\x01\n\n\u200b\n"])
def test_a_corpus_without_text(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(ValueError, match="a document with text. Received: none"):
        create(tmp_path / "a.txt", tmp_path / "folder")


def test_a_single_document(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("ba be bi.\nbo bu.\nbar ba.\n" * 20)
    with pytest.raises(ValueError, match=r"Received: a corpus of one document.*order"):
        create(path, tmp_path / "order")
    for name in ("order", "none"):  # the first where the refused one began
        settings = InstanceSettings(32, name, dupe_factor=1)
        report = create(path, tmp_path / name, settings=settings)
        assert report.shards == 1 and report.instances > 3


def test_bad_arguments(corpus, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="`workers` must be at least 1. Received: 0"):
        create(corpus, tmp_path / "a", workers=0)
    with pytest.raises(ValueError, match="Received: 'tables'"):
        create(corpus, tmp_path / "b", format=CorpusFormat("tables"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow.*keras-kbert\[pretrain\]"):
        create(corpus, tmp_path / "c")


def test_a_worker_that_is_ended():
    with pytest.raises(RuntimeError, match="the system ended.*fewer workers than 2"):
        creation.run_steps(os._exit, [3, 4], 2, lambda done: None)


def test_a_shard_waits_for_all_parts(corpus, tmp_path):
    plan = creation.plan_for([corpus], TOKENIZER, SETTINGS, None, 1 << 13)
    creation.begin(tmp_path / "a", plan)
    with pytest.raises(FileNotFoundError, match="part-00000.arrow, which is not compl"):
        steps.make_shard(tmp_path / "a", 0, 1)
