"""Instances of pre-training from a corpus: on all cores, and on after a kill."""

import concurrent.futures
import concurrent.futures.process
import dataclasses
import functools
import json
import multiprocessing
import multiprocessing.connection
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from kbert.data.corpus import CorpusFormat, CorpusReport
from kbert.data.corpus_files import find_parts
from kbert.pretraining import steps, storage
from kbert.pretraining.settings import InstanceSettings
from kbert.tokenization.wordpiece import BertTokenizer

MANIFEST = "instances.json"
"""The file that says that a folder is complete; it is written last."""

PART_BYTES = 1 << 25


@dataclasses.dataclass(frozen=True)
class CreationReport:
    """What became of a corpus.

    Args:
        corpus: what was found in it.
        tokens: its tokens.
        shards: files of instances.
        instances: in all.
        instance_tokens: tokens of all instances, [CLS] and [SEP] included.
        masked: tokens to be predicted.
        random: instances of the second class: with a random or a swapped segment.
    """

    corpus: CorpusReport
    tokens: int
    shards: int
    instances: int
    instance_tokens: int
    masked: int
    random: int

    def lines(self) -> list[str]:
        """The report as sentences, one a line."""
        told = [
            *self.corpus.lines(),
            f"Made {self.instances:,} instances of {self.tokens:,} tokens in "
            f"{self.shards:,} shards.",
        ]
        if self.instances:
            told.append(
                f"An instance has {self.instance_tokens / self.instances:.1f} tokens; "
                f"{self.masked / self.instance_tokens:.2%} of them are masked, and "
                f"{self.random / self.instances:.2%} of the instances are of class 1."
            )
        return told


def create_instances(
    sources: str | os.PathLike | Sequence[str | os.PathLike],
    folder: str | os.PathLike,
    tokenizer: BertTokenizer,
    settings: InstanceSettings | None = None,
    *,
    format: CorpusFormat | None = None,
    workers: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
    part_bytes: int = PART_BYTES,
) -> CreationReport:
    """Makes instances of pre-training from a corpus, and writes them into a folder.

    The same arguments give the same bytes, whatever the number of workers and however
    often the work was interrupted: called again, it goes on with what is not complete.

    Args:
        sources: files, folders of `datasets`, or patterns; see `read_corpus`.
        folder: where to; new, or one where the same work was begun.
        tokenizer: a `BertTokenizer`.
        settings: what instances are to be like; None for Google's.
        format: how files are documents; None for Google's format or JSON lines.
        workers: processes. With more than one, a script that calls this must do so
            under `if __name__ == "__main__":`, as Python's multiprocessing asks.
        progress: called with what is being done, how many are done and how many there
            are.
        part_bytes: of the corpus that are tokenised by one worker in one go.

    Returns:
        A `CreationReport`.

    Raises:
        FileNotFoundError: if a source names no file.
        ValueError: if the corpus cannot be read as `format` says, has no document, or
            but one and `next_sentence` is "random"; or the folder holds other work.
        ImportError: if a package that this needs is missing.
    """
    plan = plan_for(sources, tokenizer, settings, format, part_bytes)
    target = Path(folder).expanduser().resolve()
    if not begin(target, plan):
        _complete(
            "parts tokenised",
            functools.partial(steps.tokenize_part, target),
            [steps.part_path(target, number) for number in range(len(plan.parts))],
            workers,
            progress,
        )
        try:
            count = count_shards(target, plan)
        except ValueError:  # the corpus is to be another, or the settings
            shutil.rmtree(target / steps.WORK)
            (target / steps.PLAN).unlink()
            raise
        _complete(
            "shards made",
            functools.partial(steps.make_shard, target, count=count),
            [steps.shard_path(target, number, count) for number in range(count)],
            workers,
            progress,
        )
        finish(target, plan, count)
    return report_of(target)


def plan_for(sources, tokenizer, settings, format, part_bytes) -> steps.Plan:
    """Returns the plan for the arguments of `create_instances`."""
    storage.pyarrow()  # or it is missing
    format = CorpusFormat() if format is None else format
    parts = find_parts(sources, format.kind, part_bytes)
    sizes = {
        piece.path: os.path.getsize(piece.path) for part in parts for piece in part
    }
    settings = InstanceSettings() if settings is None else settings
    return steps.Plan(settings, format, tokenizer.get_config(), parts, sizes)


def begin(folder: Path, plan: steps.Plan) -> bool:
    """Writes the plan into a new folder; returns whether all of it is done already.

    Raises:
        ValueError: if the folder holds something else.
    """
    path, content = folder / steps.PLAN, json.loads(json.dumps(plan.to_json()))
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        differing = [key for key in content if found.get(key) != content[key]]
        if differing:
            raise ValueError(
                "A folder must be new, or hold the same work begun before. Received: "
                f"{folder}, whose {steps.PLAN} has other {' and '.join(differing)}. "
                "Delete it, or name another folder."
            )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        others = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
        if others:
            raise ValueError(
                "A folder must be new, or hold the same work begun before. Received: "
                f"{folder}, which has no {steps.PLAN} but {others[0]}."
            )
        storage.write_json(path, content)
    if (folder / MANIFEST).exists():
        shutil.rmtree(folder / steps.WORK, ignore_errors=True)
        return True
    (folder / steps.WORK).mkdir(exist_ok=True)
    for left_over in (*folder.glob(".*"), *(folder / steps.WORK).glob(".*")):
        left_over.unlink()  # of a process that was killed while it wrote
    return False


def _complete(what, step, paths, workers, progress) -> None:
    """Takes the steps whose files are not complete.

    Args:
        what: is being done, for `progress`.
        step: function of a number.
        paths: the file of every number.
        workers: processes.
        progress: as for `create_instances`.
    """
    missing = [n for n, path in enumerate(paths) if storage.counts_of(path) is None]

    def tell(done):
        if progress is not None:
            progress(what, len(paths) - len(missing) + done, len(paths))

    tell(0)
    run_steps(step, missing, workers, tell)


def count_shards(folder: Path, plan: steps.Plan) -> int:
    """Returns into how many shards the documents go, at least two into each.

    Raises:
        ValueError: if there is no document, or only one and no other to choose from.
    """
    counts = steps.part_counts(folder, plan)
    documents = sum(part["documents"] for part in counts)
    if not documents:
        raise ValueError("A corpus must have a document with text. Received: none.")
    if documents == 1 and plan.settings.next_sentence == "random":
        raise ValueError(
            "A second segment must come from another document in half of the cases. "
            "Received: a corpus of one document. Put blank lines between documents, or "
            'ask for next_sentence="order" or "none" (--next-sentence).'
        )
    tokens = sum(part["tokens"] for part in counts)
    return max(1, min(-(-tokens // plan.settings.shard_tokens), documents // 2))


def finish(folder: Path, plan: steps.Plan, count: int) -> None:
    """Writes the manifest of complete shards, and deletes what was made on the way."""
    corpus, tokens = CorpusReport(), 0
    for part in steps.part_counts(folder, plan):
        corpus.add(CorpusReport(**part["report"]))
        tokens += part["tokens"]
    shards = []
    for number in range(count):
        path = steps.shard_path(folder, number, count)
        shards.append({"file": path.name, **(storage.counts_of(path) or {})})
    told = {"corpus": dataclasses.asdict(corpus), "tokens": tokens, "shards": shards}
    storage.write_json(folder / MANIFEST, told)
    shutil.rmtree(folder / steps.WORK)


def report_of(folder: Path) -> CreationReport:
    """Returns what the manifest of a folder says."""
    told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    shards = told["shards"]
    return CreationReport(
        CorpusReport(**told["corpus"]),
        tokens=told["tokens"],
        shards=len(shards),
        instances=sum(sum(shard["instances"]) for shard in shards),
        instance_tokens=sum(shard["tokens"] for shard in shards),
        masked=sum(shard["masked"] for shard in shards),
        random=sum(shard["random"] for shard in shards),
    )


def run_steps(
    step: Callable[[int], None],
    numbers: Sequence[int],
    workers: int,
    progress: Callable[[int], None],
) -> None:
    """Takes a step for each of some numbers, in this process or in several.

    Args:
        step: a function that can be pickled.
        numbers: what it is called with.
        workers: processes; 1 for this one.
        progress: called with the number of steps that are done.

    Raises:
        ValueError: if `workers` is not positive.
        RuntimeError: if a process was ended from outside.
    """
    if workers < 1:
        raise ValueError(f"`workers` must be at least 1. Received: {workers}.")
    if workers == 1 or len(numbers) < 2:
        for done, number in enumerate(numbers, start=1):
            step(number)
            progress(done)
        return
    count = min(workers, len(numbers))
    with concurrent.futures.ProcessPoolExecutor(
        count, _context(), initializer=_end_with_parent
    ) as pool:
        futures = [pool.submit(step, number) for number in numbers]
        try:
            for done, future in enumerate(
                concurrent.futures.as_completed(futures), start=1
            ):
                future.result()
                progress(done)
        except concurrent.futures.process.BrokenProcessPool as error:
            raise RuntimeError(
                "Every worker must live until its work is done. Received: one that the "
                "system ended, perhaps for want of memory. Call again, with fewer "
                f"workers than {workers}: what is complete stays."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _context():
    """Returns how processes are started: from one that has imported what they need.

    They share its memory, and nothing of what runs in this process, such as threads.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([steps.__name__])
    return context


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone, killed perhaps."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
