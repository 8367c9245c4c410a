"""Pre-train a small BERT on a corpus of one's own: python pretrain.py FOLDER FILE...

All of it, in order: documents held out, a vocabulary, instances of three lengths, the
training. Run again after a stop, it goes on with what is not complete.
"""

import pathlib
import subprocess
import sys

import documents

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 8192  # pieces of the vocabulary
# Positions, and as many predictions as 15 % of them: Google's are 20 of 128, 77 of 512.
LENGTHS = {32: 5, 128: 20, 512: 77}
COPIES = 5  # of the corpus, each cut into other segments


def kbert(*arguments) -> None:
    """Run a command of kbert's, and end where it does not succeed."""
    command = [sys.executable, "-m", "kbert_cli", *map(str, arguments)]
    status = subprocess.run(command).returncode
    if status:
        sys.exit(status)


def prepare(folder: pathlib.Path, sources: list[str]) -> None:
    """Make what a run reads: a vocabulary, and instances to learn from and judge by."""
    learn, held_out, vocabulary = (
        folder / name for name in ("learn.txt", "held_out.txt", "vocab.txt")
    )
    if not vocabulary.exists():
        folder.mkdir(parents=True, exist_ok=True)
        counts = documents.part(sources, learn, held_out)
        told = "{:,} documents of {:,} words to learn from, {:,} of {:,} held out."
        print(told.format(*counts))
        paragraphs = ("--format", "paragraphs")
        kbert("vocabulary", learn, *paragraphs, "--size", SIZE, "--out", vocabulary)
    for length, predictions in LENGTHS.items():
        common = ("--format", "paragraphs", "--vocab", vocabulary)
        common += ("--sequence-length", length, "--max-predictions", predictions)
        target = ("--out", folder / f"instances-{length}")
        kbert(
            *("instances", learn, *common, *target),
            *("--dupe-factor", COPIES, "--dynamic-masks"),
        )
        target = ("--out", folder / f"held-out-{length}")
        kbert("instances", held_out, *common, *target, "--dupe-factor", 1)


def main(output: str, *sources: str) -> None:
    if not sources:
        sys.exit(f"Received no files of text. {__doc__}")
    folder = pathlib.Path(output)
    prepare(folder, list(sources))
    config = folder / "kbert_tiny.toml"
    if not config.exists():  # its paths are relative to where it lies
        config.write_bytes((HERE / "kbert_tiny.toml").read_bytes())
    kbert("pretrain", config)


if __name__ == "__main__":
    main(*sys.argv[1:])
