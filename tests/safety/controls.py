"""What the judge must convict: each act does one thing that loading must not do."""

import os
import pickle
import socket
import subprocess
import sys
import time


def warm_up():
    """Imports what the acts need, so that each is convicted of one thing alone."""
    subprocess.run(["true"], check=True)
    socket.socket().close()
    sys.modules.pop("colorsys", None)


def opens_a_file_outside(folder):
    (folder.parent / "outside" / "vocab.txt").read_bytes()


def opens_by_a_link(folder):
    (folder / "link").read_bytes()


def writes_inside(folder):
    (folder / "note").write_text("x")


def lists_a_folder_outside(folder):
    os.listdir(folder.parent / "outside")


def imports(folder):
    import colorsys  # noqa: F401


def opens_a_socket(folder):
    socket.socket().close()


def looks_up_a_host(folder):
    socket.getaddrinfo("127.0.0.1", 80)


def starts_a_process(folder):
    subprocess.run(["true"], check=True)


def calls_the_shell(folder):
    os.system("true")


def unpickles(folder):
    pickle.loads(pickle.dumps(os.getpid))


def takes_memory(folder):
    bytearray(b"x") * 250_000_000


def takes_time(folder):
    begin = time.process_time()
    while time.process_time() - begin < 2.1:
        pass


def fails_in_the_depths(folder):
    {}[str(folder)]


def fails_with_a_subclass(folder):
    str(folder).encode() and b"\xff".decode()


def fails_without_the_folder(folder):
    raise ValueError("something is wrong")


def fails_at_length(folder):
    raise ValueError(f"{folder} {'x' * 5000}")


ACTS = {
    act.__name__: act
    for act in (
        opens_a_file_outside,
        opens_by_a_link,
        writes_inside,
        lists_a_folder_outside,
        imports,
        opens_a_socket,
        looks_up_a_host,
        starts_a_process,
        calls_the_shell,
        unpickles,
        takes_memory,
        takes_time,
        fails_in_the_depths,
        fails_with_a_subclass,
        fails_without_the_folder,
        fails_at_length,
    )
}

# What each is convicted of.
CONVICTIONS = {
    "opens_a_file_outside": "open.*outside",
    "opens_by_a_link": "open.*link",
    "writes_inside": "open.*note",
    "lists_a_folder_outside": "os.listdir.*outside",
    "imports": "import.*colorsys",
    "opens_a_socket": "socket.__new__",
    "looks_up_a_host": "socket.getaddrinfo",
    "starts_a_process": "subprocess.Popen",
    "calls_the_shell": "os.system",
    "unpickles": "pickle.find_class",
    "takes_memory": "^2[0-9]{2}.* MB",
    "takes_time": "^2.* seconds",
    "fails_in_the_depths": "KeyError is no error",
    "fails_with_a_subclass": "UnicodeDecodeError is no error",
    "fails_without_the_folder": "not named: something",
    "fails_at_length": "a message of 5",
}
