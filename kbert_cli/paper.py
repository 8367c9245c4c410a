"""What the paper reports, to stand beside a run (Devlin et al. 2018)."""

from typing import NamedTuple


class Row(NamedTuple):
    """Scores of the paper's two models, in percent.

    Args:
        where: table and data set.
        metric: what was measured.
        base: BERT-base's; None where it has none.
        large: BERT-large's.
    """

    where: str
    metric: str
    base: float | None
    large: float


_TEST = "Table 1, GLUE's test set"

GLUE = {
    "MNLI": [
        Row(f"{_TEST}, matched", "accuracy", 84.6, 86.7),
        Row(f"{_TEST}, mismatched", "accuracy", 83.4, 85.9),
    ],
    "QQP": [Row(_TEST, "F1", 71.2, 72.1)],
    "QNLI": [Row(_TEST, "accuracy", 90.5, 92.7)],
    "SST-2": [Row(_TEST, "accuracy", 93.5, 94.9)],
    "CoLA": [Row(_TEST, "Matthews' correlation", 52.1, 60.5)],
    "STS-B": [Row(_TEST, "Spearman's correlation", 85.8, 86.5)],
    "MRPC": [Row(_TEST, "F1", 88.9, 89.3)],
    "RTE": [Row(_TEST, "accuracy", 66.4, 70.1)],
}
"""By GLUE's name of the task; WNLI and AX are not in the paper."""

SQUAD = {
    "1.1": [
        Row("Table 2, development set", "exact match", 80.8, 84.1),
        Row("Table 2, development set", "F1", 88.5, 90.9),
    ],
    "2.0": [
        Row("Table 3, development set", "exact match", None, 78.7),
        Row("Table 3, development set", "F1", None, 81.9),
    ],
}
"""By version."""

SWAG = [Row("Table 4, development set", "accuracy", 81.6, 86.6)]

NER = [
    Row("Table 7, CoNLL-2003, development set", "F1", 96.4, 96.6),
    Row("Table 7, CoNLL-2003, test set", "F1", 92.4, 92.8),
]
