"""Windows, targets and most context against Google's own run_squad.py."""

import json

import numpy as np
import pytest

from kbert.data.squad import read_squad
from kbert.preprocessing import spans
from tests import tiny
from tests.checkpoints import google_bert

MAX_LENGTH = 14


def written(path, count=40):
    """A file of SQuAD 1.1 with contexts of odd blanks and words in brackets."""
    questions, contexts, answers = tiny.questions(count)
    rng = np.random.default_rng(1)
    paragraphs = []
    for index in range(count):
        (answer,) = answers[index]
        before = contexts[index][: answer.start].replace(
            " ", str(rng.choice([" ", "  "]))
        )
        after = contexts[index][answer.start + len(answer.text) :]
        text = answer.text if index % 4 else answer.text.split()[-1]
        opening = "(" if index % 5 == 0 else ""  # no piece of its own: [UNK]
        context = f"{before}{opening}{text}{after}\r\n"
        gold = {"text": text, "answer_start": len(before) + len(opening)}
        question = {"id": str(index), "question": questions[index], "answers": [gold]}
        paragraphs.append({"context": context, "qas": [question]})
    path.write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))
    return path


@pytest.mark.parametrize("doc_stride", [3, 5, 100])
def test_features_are_googles(tmp_path, doc_stride):
    google = google_bert.run_squad()
    path = written(tmp_path / "train.json")
    (tmp_path / "vocab.txt").write_text("\n".join(tiny.VOCABULARY) + "\n")
    features = []
    google.convert_examples_to_features(
        google.read_squad_examples(str(path), is_training=True),
        google.tokenization.FullTokenizer(str(tmp_path / "vocab.txt")),
        max_seq_length=MAX_LENGTH,
        doc_stride=doc_stride,
        max_query_length=64,
        is_training=True,
        output_fn=features.append,
    )
    read = read_squad(path)
    windows = spans.make_windows(
        read.questions,
        read.contexts,
        tiny.preprocessor().tokenizer,
        max_length=MAX_LENGTH,
        doc_stride=doc_stride,
    )
    found = spans.find_targets(windows, read.answers)
    assert found.unplaced == [] and len(windows) == len(features)
    for window, theirs in enumerate(features):
        begin, end = windows.encoded.row_splits[window : window + 2]
        ids = windows.encoded.token_ids[begin:end].tolist()
        assert ids == theirs.input_ids[: sum(theirs.input_mask)]
        assert windows.encoded.second_starts[window] == theirs.segment_ids.index(1)
        assert windows.examples[window] == theirs.example_index
        positions = [theirs.start_position, theirs.end_position]
        assert found.positions[window].tolist() == positions
        number = window - windows.of_example(theirs.example_index).start
        tokens = windows.starts[window] + np.arange(windows.counts[window])
        owned = windows.owners[theirs.example_index][tokens] == number
        assert owned.tolist() == list(theirs.token_is_max_context.values())
    assert (found.positions > 0).any() and (found.positions == 0).any()
