"""The instances of every phase of a run, opened and checked before any work."""

import dataclasses
import hashlib
import json
from pathlib import Path

from kbert.pretraining.batches import InstanceBatches
from kbert.pretraining.creation import MANIFEST
from kbert.pretraining.run_settings import Phase, RunSettings


@dataclasses.dataclass(frozen=True)
class PhaseData:
    """One phase: which batches it has, and where they come from.

    Batches are counted over the whole run; under accumulation a step has several.

    Args:
        begin: first batch.
        end: first batch of the next phase.
        instances: to learn from.
        held_out: to judge by, or None.
        held_out_steps: batches of these, as many as are full.
        tokens: of a batch, on average.
        digest: sha256 of the manifest of the instances.
    """

    begin: int
    end: int
    instances: InstanceBatches
    held_out: InstanceBatches | None
    held_out_steps: int
    tokens: float
    digest: str

    @property
    def sequence_length(self) -> int:
        """Most positions of an instance."""
        return self.instances.settings.sequence_length

    def batches_from(self, batch: int) -> InstanceBatches:
        """Returns what begins with a batch of the run, not before `begin`."""
        self.instances.first_step = batch - self.begin
        return self.instances


def open_phases(settings: RunSettings) -> list[PhaseData]:
    """Opens the instances of all phases.

    Args:
        settings: of the run.

    Raises:
        FileNotFoundError: if a folder is not complete.
        ValueError: if the folders do not go together: another vocabulary, or second
            segments in some and none in others; or one has too few instances.
    """
    size = settings.batch_size // settings.accumulation
    found: list[PhaseData] = []
    begin = 0
    for phase, end in zip(settings.phases, settings.bounds(), strict=True):
        end *= settings.accumulation
        found.append(_opened(phase, settings, size, begin, end))
        begin = end
    first = found[0].instances
    for data in found:
        for folder in filter(None, (data.instances, data.held_out)):
            _check_alike(first, folder)
    return found


def _opened(phase: Phase, settings, size, begin, end) -> PhaseData:
    options = {"seed": settings.seed, "rows": settings.rows}
    instances = InstanceBatches(phase.instances, size, **options)
    held_out, steps = None, 0
    if phase.held_out is not None:
        count = InstanceBatches(phase.held_out, 1).num_instances
        held_out = InstanceBatches(phase.held_out, min(size, count), **options)
        steps = count // min(size, count)
    manifest = (Path(phase.instances) / MANIFEST).read_bytes()
    shards = json.loads(manifest)["shards"]
    tokens = sum(shard["tokens"] for shard in shards) / instances.num_instances
    digest = hashlib.sha256(manifest).hexdigest()
    return PhaseData(begin, end, instances, held_out, steps, size * tokens, digest)


def _check_alike(first: InstanceBatches, other: InstanceBatches) -> None:
    """Refuses instances that one model could not learn together."""
    if other.tokenizer.get_config() != first.tokenizer.get_config():
        raise ValueError(
            "All instances of a run must be of one vocabulary. Received: "
            f"{first.folder} and {other.folder}, whose tokenizers differ."
        )
    kinds = [each.settings.next_sentence for each in (first, other)]
    if ("none" in kinds) and kinds[0] != kinds[1]:
        raise ValueError(
            "All instances of a run must have second segments, or none of them. "
            f"Received: next_sentence={kinds[0]!r} in {first.folder}, {kinds[1]!r} in "
            f"{other.folder}."
        )
