import codecs
import csv

import pytest

from kbert.data.tables import read_table

ROWS = "review,stars\nGood film.,5\nBad film.,1\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path, **options):
    return read_table(path, "review", "stars", **options)


def test_named_columns_in_any_order_and_others_left_alone(write):
    path = write("stars,id,second,review\n5,a,x,Good\n1,b,y,Bad\n")
    table = read_table(path, text="review", label="stars", second="second")
    assert table.texts == ["Good", "Bad"]
    assert table.seconds == ["x", "y"]
    assert table.labels == ["5", "1"]
    assert table.rows == [2, 3]
    assert table.report.lines() == [f"{path}: 2 of 2 rows read."]


def test_columns_not_asked_for_are_none(write):
    table = read_table(write(ROWS), text="review")
    assert table.labels is None
    assert table.seconds is None


def test_csv_quoting_holds_commas_line_breaks_and_quotation_marks(write):
    table = read(write('review,stars\n"Good, ""very"",\nindeed.",5\nPlain 5" disk,1\n'))
    assert table.texts == ['Good, "very",\nindeed.', 'Plain 5" disk']
    assert table.rows == [2, 3]


def test_line_ends_of_windows(write):
    assert read(write(ROWS.replace("\n", "\r\n"))).texts == ["Good film.", "Bad film."]


def test_a_line_separator_of_unicode_does_not_end_a_row(write):
    assert read(write("review,stars\na\u2028b\x85c,5\n")).texts == ["a\u2028b\x85c"]


def test_tsv_quotation_marks_are_text_and_told(write):
    content = 'review\tstars\n"quoted"\t5\nan " alone\t1\n'
    table = read(write(content, "data.tsv"))
    assert table.texts == ['"quoted"', 'an " alone']
    assert any(
        "1 rows have a cell between quotation" in x for x in table.report.lines()
    )


def test_json_lines(write):
    content = (
        '{"review": "a, \\"b\\"", "stars": 5}\n\n'
        '{"stars": true, "review": "c\u2028d", "other": {}}\n'
        '{"review": "e", "stars": ["x", "y"]}\n'
        '{"review": "f", "stars": null}\n'
    )
    table = read(write(content, "data.jsonl"))
    assert table.texts == ['a, "b"', "c\u2028d", "e"]
    assert table.labels == ["5", "true", "x|y"]
    assert table.rows == [1, 3, 4]
    assert table.report.skipped == {'the cell "stars" is empty': [5]}


@pytest.mark.parametrize(
    ("name", "separator"), [("data.txt", "\t"), ("data.csv", ";"), ("data.jsonl", "|")]
)
def test_a_named_delimiter_wins_over_the_ending(write, name, separator):
    path = write(ROWS.replace(",", separator), name)
    assert read(path, delimiter=separator).labels == ["5", "1"]


def test_byte_order_mark_of_excel_is_no_part_of_the_first_column(write):
    table = read(write(codecs.BOM_UTF8 + ROWS.encode()))
    assert table.texts == ["Good film.", "Bad film."]
    assert table.report.encoding == "utf-8-sig"
    assert read(write(codecs.BOM_UTF8 + ROWS.encode()), encoding="utf-8").labels


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_utf_16_and_32_are_read_by_their_mark(write, encoding):
    table = read(write(("\ufeff" + ROWS.replace("Bad", "影片")).encode(encoding)))
    assert table.texts == ["Good film.", "影片 film."]


def test_gb18030_is_refused_with_the_flag_and_read_with_it(write):
    path = write(ROWS.replace("Bad", "坏电影").encode("gb18030"))
    message = (
        r"data\.csv, which is not utf-8 at byte 26 \(line 3\).*--encoding.*gb18030"
    )
    with pytest.raises(ValueError, match=message):
        read(path)
    assert read(path, encoding="gb18030").texts == ["Good film.", "坏电影 film."]


def test_utf_16_without_a_mark_is_refused_with_the_flag_and_read_with_it(write):
    path = write(ROWS.encode("utf-16-le"))
    with pytest.raises(ValueError, match="with 38, the first in line 1.*utf-16-le"):
        read(path)
    assert read(path, encoding="utf-16-le").labels == ["5", "1"]


def test_a_nul_is_refused_with_its_line(write):
    with pytest.raises(ValueError, match="with 1, the first in line 3"):
        read(write(ROWS.replace("Bad", "B\0d")))


def test_an_encoding_that_does_not_exist(write):
    with pytest.raises(ValueError, match='encoding="utf-9"'):
        read(write(ROWS), encoding="utf-9")


def test_ragged_rows_are_refused_by_number(write):
    lines = ["review,stars", "good,5", "a,b,5", "bad,1", "short"] + ["x,y,z"] * 5
    message = "header, 2.*with 7 other .rows 3, 5, 6, 7, 8 and 2 more.; row 3 has 3"
    with pytest.raises(ValueError, match=message):
        read(write("\n".join(lines)))


def test_a_missing_column_names_those_there_are(write):
    with pytest.raises(
        ValueError, match=r'"text".*0 of that.*\[\'review\', \'stars\'\]'
    ):
        read_table(write(ROWS), text="text")


def test_a_column_that_stands_twice(write):
    with pytest.raises(ValueError, match='"review".*2 of that name'):
        read(write("review,review,stars\na,b,5\n"))


def test_a_missing_column_that_another_delimiter_explains(write):
    with pytest.raises(ValueError, match="If ';' stands between the cells"):
        read(write(ROWS.replace(",", ";")))


def test_spaces_around_a_column_name_and_a_label_do_not_count(write):
    assert read(write("review , stars\nGood, 5 \n")).labels == ["5"]


@pytest.mark.parametrize("content", [b"", b" \n\n", codecs.BOM_UTF16_LE])
def test_an_empty_file(write, content):
    with pytest.raises(ValueError, match=r"data\.csv, empty"):
        read(write(content))


def test_a_header_only(write):
    with pytest.raises(ValueError, match=r"data\.csv with a header and no rows"):
        read(write("review,stars\n"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere.csv")


def test_an_ending_without_a_known_delimiter(write):
    with pytest.raises(ValueError, match=r"Received: .*data\.xlsx.*--delimiter"):
        read(write(ROWS, "data.xlsx"))


def test_a_delimiter_of_two_characters(write):
    with pytest.raises(ValueError, match="delimiter='::'"):
        read(write(ROWS), delimiter="::")


def test_empty_texts_and_labels_are_skipped_and_told(write):
    path = write("review,stars\n,5\ngood,5\n  ,\nbad,\n\nfine,4\n")
    table = read(path)
    assert table.texts == ["good", "fine"]
    assert table.rows == [3, 7]
    assert table.report.lines() == [
        f"{path}: 2 of 5 rows read.",
        'Skipped 2: the cell "review" is empty (rows 2, 4).',
        'Skipped 1: the cell "stars" is empty (row 5).',
    ]


def test_empty_texts_are_kept_and_told_where_every_row_needs_an_answer(write):
    path = write("review,stars\n,5\ngood,5\n")
    table = read_table(path, text="review", keep_empty_texts=True)
    assert table.texts == ["", "good"]
    assert table.report.lines()[1] == "Kept 1 rows with an empty text (row 2)."


def test_empty_labels_are_kept_where_none_of_them_is_an_answer(write):
    table = read(write("review,stars\ngood,\nbad,1\n"), keep_empty_labels=True)
    assert table.labels == ["", "1"]


def test_nothing_left(write):
    with pytest.raises(ValueError, match='with 2 rows where the cell "stars" is empty'):
        read(write("review,stars\ngood,\nbad,\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('review,stars\n"good,5\nbad,1\n', "line 2: unexpected end of data"),
        ('review,stars\na,1\n"go"od,5\n', "line 3: ',' expected after '\"'"),
    ],
)
def test_a_broken_quotation_is_refused_with_its_line(write, content, message):
    with pytest.raises(ValueError, match=message):
        read(write(content))


def test_a_cell_longer_than_the_limit_of_the_csv_module(write):
    limit = csv.field_size_limit()
    long = "word " * limit
    assert read(write(f"review,stars\n{long},5\n")).texts == [long]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"review": "a", "stars": 1}\n{"review": \n', "line 2: Expecting value at"),
        ('[{"review": "a"}]', r"line 1: \[\{"),
        ('{"review": "a"}', r'"stars".*line 1, whose keys are \[.review.\]'),
        ('{"review": {"a": 1}, "stars": 1}', 'value of "review".*line 1: {"a": 1}'),
        ('{"review": "a", "stars": ["x|y"]}', r'value of "stars".*\["x\|y"\]'),
    ],
)
def test_broken_json_lines_are_refused_with_their_line(write, content, message):
    with pytest.raises(ValueError, match=message):
        read(write(content, "data.jsonl"))
