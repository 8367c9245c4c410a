"""Which files a corpus has, how they are cut into parts, and their lines."""

import gzip
import lzma

import pytest
import zstandard

from kbert.data import corpus_files
from kbert.data.corpus_files import find_files, find_parts, read_lines

TEXT = b"One.\nTwo.\n\nOther.\n"


def lines_of(parts):
    return [line for part in parts for piece in part for _, line in read_lines(piece)]


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_lines_of_every_packing(tmp_path, suffix, pack):
    path = tmp_path / f"corpus.txt{suffix}"
    path.write_bytes(pack(TEXT))
    assert lines_of(find_parts([path])) == TEXT.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_a_packed_file_that_ends_early(tmp_path, suffix, pack):
    path = tmp_path / f"corpus.txt{suffix}"
    path.write_bytes(pack(bytes(range(256)) * 4000)[:-9])
    with pytest.raises(
        ValueError, match=rf"must be whole. Received: .*corpus.txt{suffix}"
    ):
        lines_of(find_parts([path]))


def test_a_file_that_is_not_what_its_name_says(tmp_path):
    for suffix in (".gz", ".xz", ".zst"):
        path = tmp_path / f"corpus.txt{suffix}"
        path.write_bytes(TEXT)
        with pytest.raises(ValueError, match=f"must be whole. Received: .*{suffix}"):
            lines_of(find_parts([path]))


def test_several_streams_in_one_file(tmp_path):
    pack = zstandard.ZstdCompressor().compress
    for suffix, content in ((".gz", gzip.compress), (".zst", pack)):
        path = tmp_path / f"corpus.txt{suffix}"
        path.write_bytes(content(b"One.\n") + content(b"Two.\n"))
        assert lines_of(find_parts([path])) == [b"One.\n", b"Two.\n"]


def test_patterns_are_sorted_and_go_into_folders(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("b.txt", "a.txt", "deep/c.txt"):
        (tmp_path / name).write_text(name)
    found = find_files([tmp_path / "deep" / "c.txt", f"{tmp_path}/*.txt"])
    assert [path.name for path in found] == ["c.txt", "a.txt", "b.txt"]
    assert len(find_files(f"{tmp_path}/**/*.txt")) == 3


def test_sources_that_are_none(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(FileNotFoundError, match=r"Received: '.*b\*', which names no"):
        find_files([f"{tmp_path}/b*"])
    with pytest.raises(ValueError, match=r"come once. Received: .*a.txt twice"):
        find_files([tmp_path / "a.txt", f"{tmp_path}/*"])
    with pytest.raises(ValueError, match=r"at least one file. Received: none"):
        find_files([])
    with pytest.raises(ValueError, match=r"save_to_disk` wrote. Received: .* no data"):
        find_parts([tmp_path])
    (tmp_path / "dataset_dict.json").write_text("{}")
    with pytest.raises(ValueError, match="several splits; name the folder of one"):
        find_parts([tmp_path])
    with pytest.raises(ValueError, match="Received: 'csv'"):
        find_parts([tmp_path / "a.txt"], "csv")


def test_the_name_says_the_kind(tmp_path):
    for name in ("a.jsonl", "b.ndjson.gz", "c.txt"):
        (tmp_path / name).write_bytes(b"")
    (part,) = find_parts([f"{tmp_path}/*"])
    assert [piece.kind for piece in part] == ["jsonl", "jsonl", "lines"]
    (part,) = find_parts([f"{tmp_path}/*"], "paragraphs")
    assert {piece.kind for piece in part} == {"paragraphs"}


@pytest.mark.parametrize("part_bytes", [1, 7, 40, 1000])
def test_parts_begin_with_documents_and_lose_nothing(tmp_path, part_bytes):
    documents = [f"d{n} begins\n" + "more\n" * (n % 5) + "\n" for n in range(30)]
    path = tmp_path / "corpus.txt"
    path.write_text("".join(documents))
    parts = find_parts([path], part_bytes=part_bytes)
    assert b"".join(lines_of(parts)) == path.read_bytes()
    assert len(parts) == {1: 30, 7: 30, 1000: 1}.get(part_bytes, len(parts))
    for part in parts:
        assert lines_of([part])[0].endswith(b"begins\n")
    # A piece may be longer by the document that it ends in, and no more.
    longest = max(map(len, documents))
    sizes = [sum(p.stop - p.start for p in part) for part in parts]
    assert max(sizes) <= part_bytes + longest + len("more\n")


def test_lines_of_json_are_documents(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "a"}\n' * 10)
    parts = find_parts([path], part_bytes=20)
    assert [len(lines_of([part])) for part in parts] == [2] * 5


def test_small_files_share_a_part(tmp_path):
    for number in range(10):
        (tmp_path / f"{number}.txt").write_bytes(TEXT)
    parts = find_parts([f"{tmp_path}/*"], part_bytes=3 * len(TEXT))
    assert [len(part) for part in parts] == [3, 3, 3, 1]


def test_files_that_are_no_text(tmp_path, monkeypatch):
    path = tmp_path / "wide.txt"
    path.write_bytes("text".encode("utf-16"))
    with pytest.raises(
        ValueError, match=r"must be UTF-8. Received: .*wide.txt.*UTF-16"
    ):
        find_parts([path])
    monkeypatch.setattr(corpus_files, "LONGEST_LINE", 8)
    path.write_bytes(b"short\n123456789\n")
    with pytest.raises(ValueError, match=r"less than 8 bytes. Received: .* at byte 6"):
        lines_of(find_parts([path]))
