"""The model of a run of pre-training, new or from a preset, and its optimizer."""

import dataclasses

from kbert.backbone import BertBackbone
from kbert.config import BertConfig
from kbert.preprocessing.preprocessor import BertPreprocessor
from kbert.pretraining.run_data import PhaseData
from kbert.pretraining.run_settings import RunSettings
from kbert.tasks.masked_lm import BertMaskedLM
from kbert.tasks.pretrainer import BertPretrainer
from kbert.tokenization.wordpiece import BertTokenizer
from kbert.training import AdamW, Lamb, WarmupLinearDecay

_OPTIMIZERS = {"adamw": AdamW, "lamb": Lamb}


def build_task(settings: RunSettings, phases: list[PhaseData]):
    """Builds the model that a run trains, compiled.

    Args:
        settings: of the run.
        phases: its instances.

    Returns:
        A `BertPretrainer`, or a `BertMaskedLM` where instances have no second segment.

    Raises:
        ValueError: if instances are longer than the model has positions, or their
            vocabulary is not that of `init_from`.
        FileNotFoundError: if there is no preset `init_from`.
    """
    instances = phases[0].instances
    without_second = instances.settings.next_sentence == "none"
    kind = BertMaskedLM if without_second else BertPretrainer
    if settings.init_from is None:
        task = _new(kind, settings, instances.tokenizer)
    else:
        task = _continued(kind, settings, instances.tokenizer)
    positions = task.backbone.config.max_sequence_length
    for phase in phases:
        if phase.sequence_length > positions:
            raise ValueError(
                "The model must have a position for every token of an instance. "
                f"Received: instances of {phase.sequence_length} in "
                f"{phase.instances.folder}, max_sequence_length={positions}."
            )
    task.compile(optimizer_of(settings))
    return task


def schedule_of(settings: RunSettings) -> WarmupLinearDecay:
    """Returns the learning rate of a run, one warm-up and decay over all phases."""
    # Half a step more, lest a rounded product be a step too few.
    warmup = (settings.warmup_share * settings.steps + 0.5) / settings.steps
    return WarmupLinearDecay(settings.peak, settings.steps, min(warmup, 1.0))


def optimizer_of(settings: RunSettings):
    """Returns the optimizer of a run, new."""
    parts = settings.accumulation
    return _OPTIMIZERS[settings.optimizer](
        schedule_of(settings),
        weight_decay=settings.weight_decay,
        bias_correction=settings.bias_correction,
        gradient_accumulation_steps=parts if parts > 1 else None,
    )


def _new(kind, settings: RunSettings, tokenizer: BertTokenizer):
    config = dataclasses.replace(
        settings.architecture or BertConfig(),
        vocabulary_size=tokenizer.vocabulary_size,
        pad_token_id=tokenizer.pad_id,
    )
    backbone = BertBackbone.from_architecture(
        config, remat=settings.remat, dtype=settings.precision
    )
    preprocessor = BertPreprocessor(
        tokenizer, max_sequence_length=config.max_sequence_length
    )
    return kind(backbone, preprocessor)


def _continued(kind, settings: RunSettings, tokenizer: BertTokenizer):
    """Returns a preset's model, with the pieces that its vocabulary lacks."""
    task = kind.from_preset(
        settings.init_from, remat=settings.remat, dtype=settings.precision
    )
    known = task.preprocessor.tokenizer
    added = _added_pieces(settings, known, tokenizer)
    return task.with_added_tokens(added) if added else task


def _added_pieces(settings, known, tokenizer) -> list[str]:
    """Returns the pieces of the instances' vocabulary behind those of the preset's."""
    old, new = list(known.vocabulary), list(tokenizer.vocabulary)
    added = new[len(old) :]
    options, wanted = known.get_config(), tokenizer.get_config()
    same = {key: options[key] == wanted[key] for key in options if key != "vocabulary"}
    if new[: len(old)] != old or not all(same.values()):
        differing = [key for key, equal in same.items() if not equal]
        raise ValueError(
            f"The instances must be made with the vocabulary of {settings.init_from}, "
            "or with one that has more pieces behind its own. Received: other "
            f"{differing or 'pieces'}. Make them anew: kbert instances … --vocabulary "
            f"{settings.init_from}."
        )
    if added and not settings.grow_vocabulary:
        raise ValueError(
            f"The instances' vocabulary has {len(added)} pieces more than "
            f"{settings.init_from}. Set grow_vocabulary = true to add them to the "
            f"model. Received: {added[:5]}."
        )
    return added
