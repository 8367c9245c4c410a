import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from kbert import files


def keep_all(name):
    return True


def tree(folder):
    """Returns {name: content} of every file, hidden ones as well."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def old(tmp_path):
    """A folder that stands where one is to be written."""
    folder = tmp_path / "model"
    (folder / "notes").mkdir(parents=True)
    (folder / "config.json").write_text("old")
    (folder / "README.md").write_text("mine")
    (folder / "notes" / "a.txt").write_text("mine too")
    return folder


# --- path_inside -------------------------------------------------------------------


def test_names_inside(tmp_path):
    assert files.path_inside(tmp_path, "a.json") == tmp_path / "a.json"
    assert files.path_inside(tmp_path, "b/a..json") == tmp_path / "b" / "a..json"


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/etc/passwd", "", "a\\..\\x", "C:x", "a\0b", "..", None, 3],
)
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(ValueError) as error:
        files.path_inside(tmp_path, name)
    assert f"Received the name: {name!r}" in str(error.value)


def test_links_that_leave_the_folder_are_refused(tmp_path):
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "inner").write_text("x")
    (folder / "stays").symlink_to("inner")
    (folder / "leaves").symlink_to("../secret")
    (folder / "up").symlink_to("..")
    assert files.path_inside(folder, "stays").read_text() == "x"
    for name in ("leaves", "up/secret"):
        with pytest.raises(ValueError, match=f"Received: '{name}', a link to .*secret"):
            files.path_inside(folder, name)


def test_the_links_of_the_hugging_face_cache_are_followed(tmp_path):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "1f").write_text("x")
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "snapshots" / "main"
    folder.mkdir(parents=True)
    (folder / "config.json").symlink_to("../../blobs/1f")
    (folder / "leaves").symlink_to("../../secret")
    assert files.path_inside(folder, "config.json").read_text() == "x"
    with pytest.raises(ValueError, match="Received: 'leaves'"):
        files.path_inside(folder, "leaves")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (pathlib.Path.mkdir, "a folder"),
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to("absent"), "a link to nothing"),
        (lambda path: path.symlink_to(path.name), "a link to nothing"),
    ],
)
def test_what_is_no_file_is_refused_unopened(tmp_path, make, kind):
    make(tmp_path / "a.json")
    with pytest.raises(ValueError, match=f"regular file. Received: .*a.json, {kind}"):
        files.path_inside(tmp_path, "a.json")


def test_names_for_a_message(tmp_path):
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    assert files.listing(tmp_path) == "['a', 'b']"
    for number in range(30):
        (tmp_path / f"{number}{'x' * 100}").touch()
    told = files.listing(tmp_path)
    assert told.endswith("'] and more") and len(told) < 1500


# --- sha256 ------------------------------------------------------------------------


def test_sha256(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    # Of FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert files.sha256(path) == expected
    path.write_bytes(b"abcd")
    assert files.sha256(path) != expected


def test_an_unchanged_file_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    first = files.sha256(path)
    monkeypatch.setattr(files.hashlib, "file_digest", lambda *_: pytest.fail("read"))
    assert files.sha256(path) == first


def test_a_file_that_looks_unchanged_is_read_again(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    state = path.stat()
    first = files.sha256(path)
    time.sleep(0.02)  # the system's clock of changes ticks every few milliseconds
    path.write_bytes(b"xyz")  # the same inode and size, and now the same time
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert files.sha256(path) != first


# --- replace_folder ----------------------------------------------------------------


def write_new(folder):
    (folder / "config.json").write_text("new")


def not_config(name):
    return name != "config.json"


def test_a_new_folder_and_its_parents(tmp_path):
    files.replace_folder(tmp_path / "a" / "b", write_new, keep_all)
    assert tree(tmp_path) == {"a/b/config.json": b"new"}


def one_step(monkeypatch):
    """Leaves the system's own exchange in use."""


def two_steps(monkeypatch):
    """Behaves as a system without an exchange."""
    monkeypatch.setattr(files.sys, "platform", "other")


@pytest.mark.parametrize("way", [one_step, two_steps])
def test_what_is_kept_and_what_is_not(old, way, monkeypatch):
    way(monkeypatch)
    os.chmod(old, 0o750)
    files.replace_folder(old, write_new, lambda name: name.endswith((".md", ".txt")))
    assert tree(old.parent) == {
        "model/README.md": b"mine",
        "model/config.json": b"new",
        "model/notes/a.txt": b"mine too",
    }
    assert os.listdir(old.parent) == ["model"]
    assert old.stat().st_mode & 0o777 == 0o750


def test_links_are_kept_as_links(old):
    links = {"file": "README.md", "folder": "notes", "nothing": "../elsewhere"}
    for name, target in links.items():
        (old / name).symlink_to(target)
    files.replace_folder(old, write_new, not_config)
    assert {name: os.readlink(old / name) for name in links} == links


def test_without_hard_links(old, monkeypatch):
    def refuse(source, destination):
        raise OSError("not supported")

    monkeypatch.setattr(files.os, "link", refuse)
    files.replace_folder(old, write_new, not_config)
    assert tree(old)["README.md"] == b"mine"


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_and_no_debris(old, error):
    before = tree(old.parent)

    def fail(folder):
        write_new(folder)
        raise error

    with pytest.raises(type(error)):
        files.replace_folder(old, fail, not_config)
    assert tree(old.parent) == before
    with pytest.raises(type(error)):
        files.replace_folder(old.parent / "another", fail, not_config)
    assert tree(old.parent) == before
    assert os.listdir(old.parent) == ["model"]


def test_a_swap_that_fails_leaves_the_old_and_no_debris(old, monkeypatch):
    before = tree(old.parent)
    two_steps(monkeypatch)
    rename, calls = os.rename, []

    def fail_second(source, destination):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("busy")
        rename(source, destination)

    monkeypatch.setattr(files.os, "rename", fail_second)
    with pytest.raises(OSError, match="busy"):
        files.replace_folder(old, write_new, not_config)
    assert tree(old.parent) == before
    assert len(calls) == 3


def test_a_process_that_is_killed_leaves_the_old(old):
    program = (
        "import os, runpy, signal, sys\n"
        "def write(folder):\n"
        "    (folder / 'config.json').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "replace_folder = runpy.run_path(sys.argv[1])['replace_folder']\n"
        "replace_folder(sys.argv[2], write, lambda name: name != 'config.json')"
    )
    before = tree(old)
    command = [sys.executable, "-c", program, files.__file__, str(old)]
    done = subprocess.run(command, check=False)
    assert done.returncode == -signal.SIGKILL
    assert tree(old) == before


ONLY_LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="one step is Linux's renameat2"
)


@ONLY_LINUX
def test_the_swap_is_one_step(old, monkeypatch):
    def refuse(source, destination):
        raise OSError("a second step")

    monkeypatch.setattr(files.os, "rename", refuse)
    files.replace_folder(old, write_new, not_config)
    assert tree(old)["config.json"] == b"new"


@ONLY_LINUX
def test_readers_see_the_old_or_the_new(old):
    contents, faults, stop = {"old"}, [], threading.Event()
    contents |= {f"new {number}" for number in range(40)}

    def read():
        while not stop.is_set():
            try:
                seen = (old / "config.json").read_text()
            except OSError as error:
                faults.append(error)
            else:
                if seen not in contents:
                    faults.append(seen)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(40):
            text = f"new {number}"
            files.replace_folder(
                old,
                lambda folder, text=text: (folder / "config.json").write_text(text),
                not_config,
            )
    finally:
        stop.set()
        reader.join()
    assert faults == []


def test_the_current_directory_cannot_be_replaced(old, monkeypatch):
    monkeypatch.chdir(old / "notes")
    before = tree(old.parent)
    for path in (".", "..", old):
        with pytest.raises(ValueError, match="replaced whole.* Received: .*/model"):
            files.replace_folder(path, write_new, keep_all)
    assert tree(old.parent) == before


def test_a_mount_cannot_be_replaced(old, monkeypatch):
    monkeypatch.setattr(files.os.path, "ismount", lambda path: True)
    with pytest.raises(ValueError, match="a mount .* Received: .*/model"):
        files.replace_folder(old, write_new, keep_all)


def test_a_file_in_the_way(old):
    with pytest.raises(NotADirectoryError, match="Received a file: .*README.md"):
        files.replace_folder(old / "README.md", write_new, keep_all)


def test_a_folder_given_by_a_link(old):
    link = old.parent / "link"
    link.symlink_to("model")
    files.replace_folder(link, write_new, not_config)
    assert link.is_symlink()
    assert tree(old)["config.json"] == b"new"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    files.replace_file(path, lambda new: new.write_text("old"))

    def fails(new):
        new.write_text("half")
        raise RuntimeError("a full disk")

    with pytest.raises(RuntimeError, match="a full disk"):
        files.replace_file(path, fails)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    seen = []
    files.replace_file(
        path, lambda new: seen.append((new.parent, path.read_text())) or new.touch()
    )
    assert seen == [(tmp_path, "old")] and path.read_text() == ""
