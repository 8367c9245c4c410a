"""Load presets under an audit hook and judge: a program, run in a process of its own.

`python judge.py FOLDER` loads every folder in FOLDER four ways and writes the verdicts
as JSON. Whatever loading needs is imported by loading FOLDER/good first; from then on a
file opened elsewhere, an import, a socket, a process, a write or an unpickled name is a
fault; so are more than 2 seconds of the processor, more than 200 MB, and an error that
does not say what is wrong with which folder.
"""

import contextlib
import dataclasses
import gc
import json
import os
import pathlib
import resource
import signal
import sys
import time
import warnings

SECONDS, MEGABYTES = 2.0, 200.0
NAMED = (ValueError, FileNotFoundError)
LONGEST_MESSAGE = 3000
# Beside the preset's own files only this may be looked at: names of the built-in ones.
LISTED = ("os.listdir", "os.scandir")
FORBIDDEN = tuple(
    """
    import socket. subprocess. ctypes. pty. os.system os.exec os.posix_spawn os.spawn
    os.fork os.startfile ftplib. http. imaplib. poplib. smtplib. telnetlib. urllib.
    pickle.find_class marshal. os.remove os.rename os.mkdir os.rmdir os.chmod os.chown
    os.link os.symlink os.truncate os.utime os.putenv os.kill shutil. tempfile.
    webbrowser. mmap.resize fcntl. sqlite3. syslog.
    """.split()
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Hook:
    """Notes what Python does, while a folder is watched, that loading must not do."""

    def __init__(self, listable: pathlib.Path):
        self.listable = listable
        self.folder = None
        self.seen = []
        self.judging = False
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if self.folder is None or self.judging:
            return
        self.judging = True  # what judging does is not judged
        try:
            if self.is_fault(event, arguments):
                self.seen.append(f"{event}{tuple(map(str, arguments))}"[:300])
        finally:
            self.judging = False

    def is_fault(self, event, arguments):
        if event == "open" and not isinstance(arguments[0], int):
            writes = bool((arguments[2] or 0) & WRITES)
            return writes or not self.inside(arguments[0], self.folder)
        if event in LISTED:
            places = (self.folder, self.listable)
            return not any(self.inside(arguments[0], place) for place in places)
        return event.startswith(FORBIDDEN)

    def inside(self, path, folder):
        path = pathlib.Path(os.path.realpath(os.fsdecode(path)))
        return path.is_relative_to(folder)


def start_of_peak() -> float:
    """Resets the peak of the memory in use, where Linux lets us; returns it in MB."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """The peak of the memory in use in MB."""
    with contextlib.suppress(OSError, StopIteration):
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def too_late(*_):
    raise TimeoutError("it blocked for 20 seconds")


@dataclasses.dataclass
class Verdict:
    """What came of loading a folder in one way."""

    outcome: str  # "loaded", or the error's type
    message: str = ""  # the error's, or a fingerprint of what was loaded
    faults: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    megabytes: float = 0.0


def judge(hook: Hook, folder: pathlib.Path, load) -> Verdict:
    """Runs `load(folder)` and says what was wrong about it."""
    gc.collect()
    memory, begin = start_of_peak(), time.process_time()
    hook.seen, hook.folder = [], folder
    signal.alarm(20)
    try:
        loaded, error = load(folder), None
    except BaseException as caught:  # of pyo3's panic as well
        loaded, error = None, caught
    finally:
        signal.alarm(0)
        hook.folder = None
    verdict = Verdict("loaded", str(loaded), list(hook.seen))
    verdict.seconds = round(time.process_time() - begin, 3)
    verdict.megabytes = round(peak() - memory, 1)
    if error is not None:
        verdict.outcome, verdict.message = type(error).__name__, str(error)
        if type(error) not in NAMED:
            verdict.faults.append(f"{type(error).__name__} is no error for users")
        if str(folder) not in verdict.message:
            verdict.faults.append(f"the folder is not named: {verdict.message[:300]}")
        if len(verdict.message) > LONGEST_MESSAGE:
            verdict.faults.append(f"a message of {len(verdict.message)} characters")
    if verdict.seconds > SECONDS:
        verdict.faults.append(f"{verdict.seconds} seconds")
    if verdict.megabytes > MEGABYTES:
        verdict.faults.append(f"{verdict.megabytes} MB")
    return verdict


def main(corpus: pathlib.Path) -> None:
    import controls
    import keras
    import msgpack  # noqa: F401  (reads Flax's files; imported here, none is later)

    import kbert
    from kbert import presets

    def fingerprint(model):
        arrays = [keras.ops.convert_to_numpy(weight.value) for weight in model.weights]
        return round(float(sum(abs(array).sum() for array in arrays)), 3)

    def backbone(folder):
        return fingerprint(kbert.BertBackbone.from_preset(folder))

    def classifier(folder):
        model = kbert.BertClassifier.from_preset(folder, labels=["a", "b"])
        return fingerprint(model.backbone)

    def tokenizer(folder):
        return kbert.BertTokenizer.from_preset(folder)("The film was badly [SEP] made")

    def inspection(folder):
        return json.dumps(dict(kbert.inspect_preset(folder).loads))

    loaders = {"B": backbone, "C": classifier, "T": tokenizer, "I": inspection}
    signal.signal(signal.SIGALRM, too_late)
    warnings.simplefilter("ignore")
    for load in loaders.values():
        load(corpus / "good")
    controls.warm_up()
    gc.collect()
    gc.freeze()  # what is there by now need not be looked through again and again
    hook = Hook(presets._presets_directory())
    told = {"cases": {}, "controls": {}}
    for folder in sorted(corpus.iterdir()):
        if folder.name == "outside":
            continue
        keras.utils.clear_session(free_memory=False)
        told["cases"][folder.name] = {
            letter: dataclasses.asdict(judge(hook, folder, load))
            for letter, load in loaders.items()
        }
    for name, act in controls.ACTS.items():
        verdict = judge(hook, corpus / "good", act)
        told["controls"][name] = dataclasses.asdict(verdict)
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
