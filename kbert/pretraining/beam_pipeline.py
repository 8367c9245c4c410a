"""The same instances from an Apache Beam pipeline: on Flink, Spark or Dataflow.

A pipeline takes the two steps of `steps.py`, so its files are those of
`create_instances`, byte for byte. All its workers must see the corpus and the folder at
the same paths.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbert.data.corpus import CorpusFormat
from kbert.pretraining import creation, steps, storage
from kbert.pretraining.settings import InstanceSettings


def create_instances_with_beam(
    sources: str | os.PathLike | Sequence[str | os.PathLike],
    folder: str | os.PathLike,
    tokenizer,
    settings: InstanceSettings | None = None,
    *,
    format: CorpusFormat | None = None,
    options: Any = None,
    part_bytes: int = creation.PART_BYTES,
) -> creation.CreationReport:
    """Makes instances as `create_instances` does, by a pipeline's workers.

    Args:
        sources: as for `create_instances`.
        folder: the same.
        tokenizer: the same.
        settings: the same.
        format: the same.
        options: Beam's `PipelineOptions`, which name the runner; None for the
            DirectRunner.
        part_bytes: as for `create_instances`.

    Returns:
        A `CreationReport`.

    Raises:
        FileNotFoundError, ValueError: as `create_instances`.
        ImportError: if apache-beam or pyarrow is missing.
    """
    beam = _apache_beam()
    plan = creation.plan_for(sources, tokenizer, settings, format, part_bytes)
    target = Path(folder).expanduser().resolve()
    if creation.begin(target, plan):
        return creation.report_of(target)
    with beam.Pipeline(options=options) as pipeline:
        _ = (
            pipeline
            | "parts" >> beam.Create(range(len(plan.parts)))
            | "spread parts" >> beam.Reshuffle()
            | "tokenise" >> beam.Map(_tokenize_part, str(target))
        )
    count = creation.count_shards(target, plan)
    with beam.Pipeline(options=options) as pipeline:
        _ = (
            pipeline
            | "shards" >> beam.Create(range(count))
            | "spread shards" >> beam.Reshuffle()
            | "make" >> beam.Map(_make_shard, str(target), count)
        )
    creation.finish(target, plan, count)
    return creation.report_of(target)


def _tokenize_part(number: int, folder: str) -> None:
    if storage.counts_of(steps.part_path(Path(folder), number)) is None:
        steps.tokenize_part(Path(folder), number)


def _make_shard(number: int, folder: str, count: int) -> None:
    if storage.counts_of(steps.shard_path(Path(folder), number, count)) is None:
        steps.make_shard(Path(folder), number, count)


def _apache_beam():
    try:
        import apache_beam  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "A pipeline needs the package apache-beam. To install it: "
            "pip install 'keras-kbert[beam]'. Without it, create_instances uses the "
            "cores of this machine."
        ) from error
    return apache_beam
