import numpy as np
import pytest

from kbert.preprocessing.layouts import choose_layout
from kbert.preprocessing.text_pairs import EncodedPairs, equal_texts, lay_pairs
from tests import tiny

TEXTS = ["a film", "it was good", "a film", "we saw it and it was", "Bad", "a film"]


@pytest.fixture(scope="module")
def texts():
    return tiny.preprocessor().encode(TEXTS)


def test_equal_texts_have_equal_numbers(texts):
    assert equal_texts(texts).tolist() == [[0, 1], [0, 2], [3, 0]]


@pytest.mark.parametrize("together", [True, False])
def test_every_text_can_be_read_from_its_row(texts, together):
    pairs = EncodedPairs(texts, together)
    assert len(pairs) == 3 and pairs.num_texts == 6 and pairs.num_truncated == 0
    assert pairs.lengths.tolist() == ([9, 12, 7] if together else [5, 8, 4])
    rows = "packed" if together else "single"
    layout = choose_layout(
        pairs.lengths, 2, "given", rows=rows, max_width=32, hidden_dim=16
    )
    found, positions = [], 0
    for chosen, placement in layout.plan(pairs.lengths, 2, "given", None):
        inputs = lay_pairs(pairs, chosen, placement, pad_id=0)
        mask = inputs["padding_mask"]
        positions += mask.size
        assert len(inputs["first_positions"]) == 2 * len(chosen)
        assert inputs["segment_ids"].sum() == 0
        for first in inputs["first_positions"]:
            row, column = divmod(int(first), mask.shape[1])
            own = mask[row] == mask[row, column]
            assert own[column:].cumprod().sum() == own.sum()
            found.append(inputs["token_ids"][row][own].tolist())
    expected = np.split(texts.token_ids, texts.row_splits[1:-1])
    assert found == [ids.tolist() for ids in expected]
    used = pairs.num_tokens * (1 if together else 2)
    assert used == texts.num_tokens <= positions


def test_some_of_the_pairs(texts):
    some = EncodedPairs(texts, together=True).select([2, 0])
    assert some.lengths.tolist() == [7, 9]
    assert equal_texts(some.texts).tolist() == [[0, 1], [1, 2]]
