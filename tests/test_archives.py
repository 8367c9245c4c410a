import stat
import zipfile

import pytest

from kbert import archives

PATTERNS = ("bert_config.json", "vocab.txt", "*.ckpt*.data-*")
CONTENT = {"m/bert_config.json": b"{}", "m/vocab.txt": b"a", "m/README.md": b"b"}


def zip_of(path, content):
    """Writes a zip of (name or ZipInfo, bytes)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content:
            archive.writestr(name, data)
    return path


def unpack(path):
    return archives.unpacked(path, "bert_config.json", PATTERNS)


def refused(path, received, monkeypatch, tmp_path):
    """Asserts that a zip is refused, and that nothing is left of it."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with pytest.raises(ValueError, match=received) as error:
        unpack(path)
    assert str(path) in str(error.value)
    assert list(temporary.iterdir()) == []
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, "temporary"}


@pytest.mark.parametrize("inner", ["m/", "a/b/m/", "./m/"])
def test_the_wanted_files_of_one_folder(tmp_path, inner):
    content = [(name.replace("m/", inner), data) for name, data in CONTENT.items()]
    content.append(("other/vocab.txt", b"of another"))
    folder = unpack(zip_of(tmp_path / "cased.zip", content))
    assert folder.name == "cased_m"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "bert_config.json": b"{}",
        "vocab.txt": b"a",
    }


def test_files_at_the_top(tmp_path):
    folder = unpack(zip_of(tmp_path / "x.zip", [("bert_config.json", b"{}")]))
    assert folder.name == "x"


def test_an_archive_is_unpacked_once_and_again_when_it_changed(tmp_path):
    path = zip_of(tmp_path / "x.zip", CONTENT.items())
    first = unpack(path)
    assert unpack(path) == first
    zip_of(path, [*CONTENT.items(), ("m/x.ckpt.data-00000-of-00001", b"c")])
    assert unpack(path) != first


@pytest.mark.parametrize(
    "name", ["../vocab.txt", "m/../../vocab.txt", "/etc/vocab.txt", "m/a\\b", "C:vocab"]
)
def test_a_name_that_leaves_the_folder(tmp_path, monkeypatch, name):
    path = zip_of(tmp_path / "x.zip", [*CONTENT.items(), (name, b"evil")])
    escaped = name.replace("\\", r"\\\\").replace(".", r"\.")
    refused(path, f"Received: '{escaped}', which", monkeypatch, tmp_path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_a_device(tmp_path, monkeypatch, kind):
    entry = zipfile.ZipInfo("m/model.ckpt.data-00000-of-00001")
    entry.external_attr = (kind | 0o777) << 16
    path = zip_of(tmp_path / "x.zip", [*CONTENT.items(), (entry, b"/etc/passwd")])
    refused(path, "00001', which is a link or a device", monkeypatch, tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_there_twice(tmp_path, monkeypatch):
    path = zip_of(tmp_path / "x.zip", [*CONTENT.items(), ("m//vocab.txt", b"b")])
    refused(path, "'m//vocab.txt', which is there twice", monkeypatch, tmp_path)


def test_an_encrypted_file(tmp_path, monkeypatch):
    path = zip_of(tmp_path / "x.zip", [("bert_config.json", b"{}")])
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    refused(path, "'bert_config.json', which is encrypted", monkeypatch, tmp_path)


def test_a_rare_compression(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("bert_config.json", b"{}")
    refused(tmp_path / "x.zip", "compressed as few", monkeypatch, tmp_path)


def test_a_bomb(tmp_path, monkeypatch):
    zeros = b"\0" * (80 * 2**20)
    content = [*CONTENT.items(), ("m/x.ckpt.data-00000-of-00001", zeros)]
    path = zip_of(tmp_path / "x.zip", content)
    refused(
        path, r"at most 20 times .* Received: 838860\d\d bytes", monkeypatch, tmp_path
    )


def test_too_many_files(tmp_path, monkeypatch):
    content = [(f"m/{index}", b"") for index in range(1001)]
    path = zip_of(tmp_path / "x.zip", content)
    refused(path, "at most 1000 files. Received: 1001", monkeypatch, tmp_path)


@pytest.mark.parametrize(
    "content", [[("m/vocab.txt", b"a")], [*CONTENT.items(), ("bert_config.json", b"")]]
)
def test_not_one_model(tmp_path, monkeypatch, content):
    path = zip_of(tmp_path / "x.zip", content)
    refused(
        path, r"must hold one bert_config.json. Received: [02]", monkeypatch, tmp_path
    )


@pytest.mark.parametrize("kept", [0, 40, -1])
def test_a_truncated_archive(tmp_path, monkeypatch, kept):
    path = zip_of(tmp_path / "x.zip", CONTENT.items())
    path.write_bytes(path.read_bytes()[:kept])
    refused(path, "must be a whole zip archive", monkeypatch, tmp_path)


@pytest.mark.parametrize("at", [0, 5, 10])
def test_a_flipped_bit(tmp_path, monkeypatch, at):
    content = [("bert_config.json", bytes(range(256)) * 4)]
    path = zip_of(tmp_path / "x.zip", content)
    data = bytearray(path.read_bytes())
    data[data.index(b"bert_config.json") + 16 + at] ^= 64
    path.write_bytes(data)
    refused(path, "must be a whole zip archive", monkeypatch, tmp_path)
