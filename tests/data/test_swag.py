"""The reader of SWAG's files, in both layouts."""

import pytest

from kbert.data import swag

SHUFFLED = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3"
)
FULL = (
    "video-id,fold-ind,startphrase,gold-ending,distractor-0,distractor-1,distractor-2,"
    "distractor-3,gold-source,gold-type,sent1,sent2"
)


def read(tmp_path, *lines, **options):
    path = tmp_path / "file.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return swag.read_swag(path, **options)


def test_shuffled(tmp_path):
    row = '0,v,1,"A, b. He","A, b.",He,gold,"runs, fast.",sits.,"says ""no"".",falls.'
    found = read(tmp_path, f"{SHUFFLED},label", f"{row},2")
    assert found.prompts == ["A, b."]
    assert found.choices == [
        ["He runs, fast.", "He sits.", 'He says "no".', "He falls."]
    ]
    assert found.labels == [2]


def test_the_test_set_hides_its_labels(tmp_path):
    row = "0,v,1,s,A.,He,gold,a,b,c,d"
    assert read(tmp_path, SHUFFLED, row).labels is None
    with pytest.raises(ValueError, match="each is to be answered.*2 rows; the row has"):
        read(tmp_path, SHUFFLED, row, "0,v")


def test_full(tmp_path):
    """The right ending stands first in the file, and nowhere in particular here."""
    rows = [
        f"v,{n},s,gold,d0,d1,d2,{'d3' * (n % 2)},gold,,A {n}.,He" for n in range(40)
    ]
    found = read(tmp_path, FULL, *rows)
    assert found.prompts == [f"A {n}." for n in range(40)]
    labels = found.labels or []
    for choices, label in zip(found.choices, labels, strict=True):
        assert choices[label] == "He gold"
        assert sorted(choices) == ["He d0", "He d1", "He d2", "He gold"]
    assert set(labels) == {0, 1, 2, 3}
    assert read(tmp_path, FULL, *rows).labels == labels
    assert read(tmp_path, FULL, *rows, seed=1).labels != labels


def test_rows_that_cannot_be_read_are_told(tmp_path):
    good = "0,v,1,s,A.,He,gold,a,b,c,d"
    lines = [good, f"{good},4", f"{good},1", good.replace(",b,", ",,") + ",1"]
    report = read(tmp_path, f"{SHUFFLED},label", *lines).report
    assert report.lines()[1:] == [
        "Skipped 1: the row has not 12 cells (row 2).",
        "Skipped 1: the label is '4' (row 3).",
        "Skipped 1: the cell 'ending1' is empty (row 5).",
    ]


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"header is \['sent1', 'sent2'\]"):
        read(tmp_path, "sent1,sent2", "a,b")
    with pytest.raises(ValueError, match="with 0 rows; nothing more"):
        read(tmp_path, SHUFFLED)
