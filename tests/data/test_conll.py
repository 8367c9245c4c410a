"""The reader of tagged words: documents, schemes, odd lines."""

import pytest

from kbert.data import conll


def read(tmp_path, content):
    path = tmp_path / "eng.testa"
    path.write_bytes(content.encode())
    return conll.read_conll(path)


def test_conll_2003(tmp_path):
    start = "-DOCSTART- -X- -X- O\n\n"
    content = (
        f"{start}EU NNP B-NP I-ORG\nrejects VBZ B-VP O\n\n"
        "Peter NNP B-NP I-PER\nBlackburn NNP I-NP I-PER\nParis NNP I-NP B-PER\n\n"
        f"{start}BRUSSELS NNP B-NP I-LOC"  # no line end
    )
    found = read(tmp_path, content)
    assert found.words == [
        ["EU", "rejects"],
        ["Peter", "Blackburn", "Paris"],
        ["BRUSSELS"],
    ]
    assert found.tags == [["B-ORG", "O"], ["B-PER", "I-PER", "B-PER"], ["B-LOC"]]
    assert found.documents == [0, 0, 1]
    assert found.report.scheme == "IOB1"
    told = found.report.lines()
    assert told[0].endswith("3 sentences of 6 words, 2 documents.")
    assert "were made BIO" in told[1]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["B-A", "I-A", "O", "B-B"], "BIO"),
        (["O", "I-A", "B-A"], "IOB1"),
        (["B-A", "I-B"], "IOB1"),
        (["B-A", "E-A", "S-B"], "IOBES"),
        (["U-A", "O"], "IOBES"),
        (["NN", "O-X", "I"], ""),
    ],
)
def test_schemes(tmp_path, tags, scheme):
    found = read(tmp_path, "\n".join(f"w\t{tag}" for tag in tags))
    assert found.report.scheme == scheme
    if scheme != "IOB1":
        assert found.tags == [tags]


def test_separators_and_line_ends(tmp_path):
    content = "New York\tB-LOC\r\n \r\na  NN   O\r\n\t\r\n\r\n\u2028\tO\r\n"
    found = read(tmp_path, content)
    assert found.words == [["New York"], ["a"], ["\u2028"]]
    assert found.tags == [["B-LOC"], ["O"], ["O"]]


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="lacks them in lines 2, 3, 4"):
        read(tmp_path, "a O\nb\nc\t\n\tO\n")
    with pytest.raises(ValueError, match="lacks them in all"):
        read(tmp_path, "-DOCSTART- O\n\n-DOCSTART- O\n")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("wnut17train.conll", 3394),
        ("emerging.dev.conll", 1009),
        ("emerging.test.annotated", 1287),
    ],
)
def test_wnut(shared, name, count):
    found = conll.read_conll(shared / "data/wnut17" / name)
    assert len(found.words) == count
    assert found.report.scheme == "BIO"
    types = {tag[2:] for tags in found.tags for tag in tags if tag != "O"}
    assert len(types) == 6
