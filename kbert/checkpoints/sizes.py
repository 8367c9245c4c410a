"""The sizes in a configuration against those in a file, before a model is built."""

from collections.abc import Collection, Mapping

from kbert.checkpoints import assigning, folder, names
from kbert.config import BertConfig
from kbert.presets import Preset
from kbert.strict_json import errors_naming


def expected_shapes(
    config: BertConfig, heads: Collection[str] = ("pooler",), classes: int = 1
) -> dict[str, tuple[int, ...]]:
    """Returns {kbert's path: shape} of a model that is not built.

    Args:
        config: of its encoder.
        heads: what it has beside the encoder.
        classes: C of the head of a classifier, of texts or of tokens.

    Example:
    >>> shapes = expected_shapes(BertConfig(num_layers=1))
    >>> shapes["encoder_layer_0/intermediate/kernel"]
    (768, 3072)
    """
    hidden, inner = config.hidden_dim, config.intermediate_dim
    special = {
        "token_embedding/embeddings": (config.vocabulary_size, hidden),
        "position_embedding/embeddings": (config.max_sequence_length, hidden),
        "segment_embedding/embeddings": (config.num_segments, hidden),
        "intermediate/kernel": (hidden, inner),
        "intermediate/bias": (inner,),
        "{i}/output/kernel": (inner, hidden),
        "classifier/kernel": (hidden, classes),
        "classifier/bias": (classes,),
        "mlm/bias": (config.vocabulary_size,),
        "nsp/kernel": (hidden, 2),
        "nsp/bias": (2,),
        "spans/kernel": (hidden, 2),
        "spans/bias": (2,),
    }
    shapes = {}
    for row in names.TABLE:
        if names.head_of(row.kbert) not in (None, *heads):
            continue
        usual = (hidden, hidden) if row.kbert.endswith("/kernel") else (hidden,)
        shape = next((special[k] for k in special if row.kbert.endswith(k)), usual)
        for index in range(config.num_layers if "{i}" in row.kbert else 1):
            shapes[row.kbert.replace("{i}", str(index))] = shape
    return shapes


def read_architecture(preset: Preset, *, load_weights: bool) -> BertConfig:
    """Returns what a preset's `config.json` asks for.

    Args:
        preset: the preset.
        load_weights: whether its weights are needed, and so compared.

    Raises:
        FileNotFoundError, ValueError: as `BertConfig` and `check_preset`.
    """
    with errors_naming(preset.folder):
        config = BertConfig.from_hugging_face(preset.read_json("config.json"))
    if load_weights:
        check_preset(preset, config)
    return config


def check_preset(preset: Preset, config: BertConfig) -> None:
    """Compares a preset's weights with its configuration, reading no weight.

    A configuration is a few bytes that may ask for any amount of memory; a model is
    built only where the file has the numbers for it.

    Args:
        preset: the preset.
        config: its architecture.

    Raises:
        FileNotFoundError: if a folder has no weights.
        ImportError: if a library that reads its format is not installed.
        OSError: as `Preset.fetch_weights`.
        ValueError: as `Preset.verify`, `folder.open_weights` and `compare`.
    """
    if preset.is_builtin:
        return  # what kbert ships is no stranger's
    preset.verify()
    with errors_naming(preset.folder):
        compare(folder.open_weights(preset), expected_shapes(config), ("pooler",))


def compare(
    weights: assigning.Weights,
    shapes: Mapping[str, tuple[int, ...]],
    optional: Collection[str],
) -> assigning.LoadReport:
    """Compares names, shapes and dtypes in a file with those of variables.

    Args:
        weights: what the file holds.
        shapes: of the variables, by kbert's path.
        optional: the heads that may be absent.

    Returns:
        What loading would do.

    Raises:
        ValueError: as loading would.
    """
    return assigning.match(
        shapes,
        weights.arrays,
        weights.format,
        source=weights.source,
        optional=optional,
    )
