"""Writes tests/goldens/tagging_seqeval.json: entities and scores by seqeval.

python -m pip install seqeval==1.2.2, then: python scripts/make_tagging_goldens.py
"""

import json
import pathlib
import random

from seqeval.metrics import classification_report
from seqeval.metrics.sequence_labeling import get_entities

PROJECT = pathlib.Path(__file__).resolve().parents[1]
PATH = PROJECT / "tests" / "goldens" / "tagging_seqeval.json"
# Prefixes of IOB1 and BIO, and of IOBES. Every sequence of them means something.
SCHEMES = {"BIO": "BI", "IOBES": "BIES"}
TYPES = ("LOC", "PER", "A-B")
NUM_CASES, MOST_TEXTS, MOST_WORDS = 60, 4, 9


def main():
    """Writes random tags, true and predicted, and what seqeval makes of them."""
    rng, cases = random.Random(0), []
    for index in range(NUM_CASES):
        prefixes = SCHEMES[["BIO", "IOBES"][index % 2]]
        tags = ["O", *(f"{prefix}-{type_}" for prefix in prefixes for type_ in TYPES)]
        truth = [
            [rng.choice(tags) for _ in range(rng.randint(1, MOST_WORDS))]
            for _ in range(rng.randint(1, MOST_TEXTS))
        ]
        keep = rng.choice([0.0, 0.5, 0.9, 1.0])
        predicted = [
            [tag if rng.random() < keep else rng.choice(tags) for tag in text]
            for text in truth
        ]
        report = classification_report(
            truth, predicted, output_dict=True, zero_division=0
        )
        cases.append(
            {
                "truth": truth,
                "predicted": predicted,
                "entities": [get_entities(text) for text in truth],
                "report": {
                    name: {key: float(value) for key, value in scores.items()}
                    for name, scores in report.items()
                },
            }
        )
    PATH.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
