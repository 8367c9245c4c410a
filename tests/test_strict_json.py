import json
import math

import pytest

from kbert import strict_json
from kbert.strict_json import Required


def test_read_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa9"}')
    assert strict_json.read_json(path) == {"a": "é"}


@pytest.mark.parametrize(
    ("content", "received"),
    [
        (b'{"a": 1, "b"', "line 1 column 13"),
        (b"", "line 1 column 1"),
        (b'{"a": "\xff"}', "0xff in position 7"),
        (b"[1]", "Received: list"),
        (b"null", "Received: NoneType"),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path, content, received):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"a.json must hold .*{received}"):
        strict_json.read_json(path)


@pytest.mark.parametrize(
    ("content", "received"),
    [
        (b'{"a": 1, "a": 1}', "the key 'a' more than once"),
        (b'{"a": [{"b": 1, "c": 2, "b": 3}]}', "the key 'b' more than once"),
        (b'{"a": NaN}', "NaN, no finite number"),
        (b'{"a": [-Infinity]}', "-Infinity, no finite number"),
        (b'{"a": 1e400}', "1e400, no finite number"),
        (b'{"a": "\\uDC00"}', "surrogates not allowed"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "nesting of 33"),
        (b"[" * 200_000, "lists and objects"),
        (b'{"a":[' + b"1," * 1_100_000 + b"1]}", "1100000 items"),
        (b'{"a": "' + b"x" * (1 << 24) + b'"}', "bytes"),
        (b'{"' * 500_000, "lists and objects|line 1"),
        (b'{"a": "' + b'\\"' * 500_000 + b"\\", "Unterminated"),
    ],
)
def test_what_readers_take_differently_or_at_a_cost_is_refused(content, received):
    with pytest.raises(ValueError, match=f"^here must hold .*{received}"):
        strict_json.parse_json(content, "here")


def test_a_large_file_is_not_read(tmp_path):
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="a.json must hold .* 1099511627776 bytes"):
        strict_json.read_json(path)


def test_what_is_allowed():
    content = {"a": [1, 2.5, None, True, "\U0001f600 {[,]}"], "b": {"c": {"a": 1}}}
    for text in (json.dumps(content), json.dumps(content, ensure_ascii=False)):
        assert strict_json.parse_json(text.encode(), "here") == content
    deep = b'{"a":' * 32 + b"1" + b"}" * 32
    assert strict_json.parse_json(deep, "here")["a"]


SCHEMA = {
    Required("name"): str,
    "size": range(1, 10),
    "ratio": (float, None),
    "way": ("near", "far"),
    "parts": [{"on": bool}],
    "words": ({...: str}, [str]),
    "closed": {"a": int, ...: ()},
}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"size": 1},
        {"size": 9},
        {"ratio": 0.5},
        {"ratio": None},
        {"way": "far"},
        {"parts": []},
        {"parts": [{"on": True, "else": 3}]},
        {"words": {"a": "b"}},
        {"words": ["a"]},
        {"closed": {"a": 1}},
        {"unknown": object()},
    ],
)
def test_what_meets_a_schema(change):
    strict_json.check_schema({"name": "x", **change}, SCHEMA, "here")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": 5}, "as name a string of at most 1000 characters. Received: 5"),
        ({"name": "x" * 1001}, "as name a string .* Received: 'xxx"),
        ({"size": 10}, "as size an integer from 1 to 9. Received: 10"),
        ({"size": True}, "as size .* Received: True"),
        ({"size": 5.0}, "as size .* Received: 5.0"),
        ({"ratio": 1}, "as ratio .* or null. Received: 1"),
        ({"way": "on"}, 'as way "near" or "far". Received: .on'),
        ({"parts": {}}, "as parts a list. Received: {}"),
        ({"parts": [{}, 3]}, r"as parts\[1\] an object. Received: 3"),
        ({"parts": [{"on": 1}]}, r"as parts\[0\].on true or false. Received: 1"),
        ({"words": "a"}, "as words an object or a list. Received: 'a'"),
        ({"words": {"a": None}}, "as words.a .* Received: None"),
        ({"words": ["a"] * 70_000}, "at most 65536 entries in words. Received: 70000"),
        ({"closed": {"b": 1}}, "as closed.b nothing"),
    ],
)
def test_what_does_not_meet_a_schema(change, told):
    with pytest.raises(ValueError, match=f"^here must have {told}|^here {told}"):
        strict_json.check_schema({"name": "x", **change}, SCHEMA, "here")


def test_a_required_key():
    with pytest.raises(ValueError, match=r"in it the keys \['name'\]. Received: \['a'"):
        strict_json.check_schema({"a": 1}, SCHEMA, "here")


def test_signed_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(strict_json.signed_json({"a": 1.5, "é": [True]}))
    assert strict_json.read_signed_json(path, {"a": float})["a"] == 1.5
    with pytest.raises(ValueError, match="a.json must have as a an integer"):
        strict_json.read_signed_json(path, {"a": int})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"  ", b"   "))
    with pytest.raises(ValueError, match="a.json has been changed .* Received: "):
        strict_json.read_signed_json(path, {})
    path.write_bytes(whole.replace(b"1.5", b"2.5"))
    with pytest.raises(ValueError, match="a.json has been changed .* sha256 must be"):
        strict_json.read_signed_json(path, {})
    with pytest.raises(ValueError, match="JSON"):
        strict_json.signed_json({"a": math.nan})


def test_errors_name_the_folder(tmp_path):
    with pytest.raises(ValueError, match=f"in {tmp_path} cannot be used. wrong"):
        with strict_json.errors_naming(tmp_path):
            raise ValueError("wrong")
    with pytest.raises(ValueError, match=f"^{tmp_path}/a is wrong$"):
        with strict_json.errors_naming(tmp_path):
            raise ValueError(f"{tmp_path}/a is wrong")
    with pytest.raises(ValueError, match=r"^The preset .*xx … \(8000 char") as error:
        with strict_json.errors_naming(tmp_path):
            raise ValueError("x" * 10_000)
    assert len(str(error.value)) < 2500
