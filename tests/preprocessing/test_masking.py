"""The rule of masked tokens, counted over many texts."""

import numpy as np
import pytest

import kbert
from kbert.preprocessing.masking import MaskingRule, TokenMasker, ids_with_blanks
from tests import tiny

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(200))]
PIECES += [f"##c{i}" for i in range(100)]
TOKENIZER = kbert.BertTokenizer(PIECES)
CLS, SEP, MASK, UNK = (
    TOKENIZER.cls_id,
    TOKENIZER.sep_id,
    TOKENIZER.mask_id,
    TOKENIZER.unk_id,
)


def texts(lengths, seed=0):
    """Random pieces between [CLS] and [SEP]; a text of 2 has none."""
    rng = np.random.default_rng(seed)
    parts = [
        np.concatenate([[CLS], rng.integers(5, len(PIECES), length - 2), [SEP]])
        for length in lengths
    ]
    return np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)])


def masked(lengths, seed=0, **rule):
    ids, splits = texts(lengths)
    masker = TokenMasker(TOKENIZER, MaskingRule(**rule))
    return ids, splits, masker(ids, splits, np.random.default_rng(seed))


def counts(found, splits):
    return np.histogram(found.positions, splits)[0].tolist()


@pytest.mark.parametrize("whole_words", [False, True])
def test_what_is_hidden_is_kept_as_a_label(whole_words):
    ids, _, found = masked([40, 9, 128], whole_words=whole_words)
    np.testing.assert_array_equal(found.labels, ids[found.positions])
    others = np.setdiff1d(np.arange(len(ids)), found.positions)
    np.testing.assert_array_equal(found.token_ids[others], ids[others])
    assert (np.diff(found.positions) > 0).all()
    assert not np.isin(found.labels, [CLS, SEP]).any()


def test_fifteen_per_cent_and_at_least_one():
    lengths = [2, 3, 5, 20, 40, 128]
    _, splits, found = masked(lengths)
    # Of Google's create_pretraining_data.py: max(1, int(round(length * 0.15))).
    assert counts(found, splits) == [0, 1, 1, 3, 6, 19]
    _, splits, found = masked(lengths, most=5)
    assert counts(found, splits) == [0, 1, 1, 3, 5, 5]
    _, splits, found = masked(lengths, share=1.0)
    assert counts(found, splits) == [length - 2 for length in lengths]


@pytest.mark.parametrize("whole_words", [False, True])
def test_eighty_ten_ten(whole_words):
    ids, _, found = masked([128] * 2000, whole_words=whole_words)
    shown, labels = found.token_ids[found.positions], found.labels
    hidden = (shown == MASK).mean()
    same = (shown == labels).mean()
    total = len(labels)
    assert total > 30_000
    # Four standard deviations of a share among so many.
    assert abs(hidden - 0.8 - 0.1 / len(PIECES)) < 4 * np.sqrt(0.16 / total)
    assert abs(same - 0.1 - 0.1 / len(PIECES)) < 4 * np.sqrt(0.09 / total)
    random = shown[(shown != MASK) & (shown != labels)]
    assert set(random) > set(range(4))  # special tokens too, as in Google's code
    assert random.max() == len(PIECES) - 1


def test_every_place_is_as_likely():
    _, splits, found = masked([22] * 6000)
    places = np.bincount(found.positions % 22, minlength=22)
    assert places[[0, 21]].tolist() == [0, 0]
    expected = places.sum() / 20
    chi_square = ((places[1:-1] - expected) ** 2 / expected).sum()
    assert chi_square < 43.8  # one in a thousand for 19 degrees of freedom


@pytest.mark.parametrize(
    ("hidden", "random"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.8, 0.2)]
)
def test_other_shares(hidden, random):
    # Of the paper's table 8.
    _, _, found = masked([128] * 300, hidden=hidden, random=random)
    shown = found.token_ids[found.positions]
    assert abs((shown == MASK).mean() - hidden) < 0.02
    assert abs((shown == found.labels).mean() - (1 - hidden - random)) < 0.02


def test_words_are_masked_wholly_or_not_at_all():
    ids, splits, found = masked([30] * 200, whole_words=True)
    chosen = np.zeros(len(ids), bool)
    chosen[found.positions] = True
    continues = np.array([piece.startswith("##") for piece in PIECES])[ids]
    continues &= np.roll(ids, 1) != CLS  # behind it a word begins
    # A continuation is chosen where what stands before it is, and nowhere else.
    np.testing.assert_array_equal(chosen[continues], np.roll(chosen, 1)[continues])
    assert max(counts(found, splits)) > 1
    assert 3 < np.mean(counts(found, splits)) <= 4.5  # 4 or 5 of 30 at most


def test_a_word_longer_than_the_share_is_taken_where_there_is_no_other():
    ids = np.array([CLS, 5, 205, 206, 207, SEP])
    masker = TokenMasker(TOKENIZER, MaskingRule(whole_words=True))
    found = masker(ids, np.array([0, 6]), np.random.default_rng(0))
    assert found.positions.tolist() == [1, 2, 3, 4]


def test_the_seed_decides():
    ids, _, one = masked([50] * 20, seed=3)
    _, _, two = masked([50] * 20, seed=3)
    _, _, other = masked([50] * 20, seed=4)
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(one.positions, other.positions)


def test_unknown_words_may_be_chosen_and_a_mask_may_not():
    ids = np.array([CLS, UNK, MASK, SEP])
    found = TokenMasker(TOKENIZER)(ids, np.array([0, 4]), np.random.default_rng(0))
    assert found.positions.tolist() == [1]


def test_no_text_and_nothing_to_choose():
    for ids, splits in (([], [0]), ([CLS, SEP], [0, 2]), ([CLS, SEP] * 2, [0, 2, 4])):
        for whole_words in (False, True):
            masker = TokenMasker(TOKENIZER, MaskingRule(whole_words=whole_words))
            found = masker(ids, np.array(splits), np.random.default_rng(0))
            assert len(found.positions) == 0 and len(found.token_ids) == len(ids)


@pytest.mark.parametrize(
    ("rule", "received"),
    [
        ({"share": 0.0}, "0.0"),
        ({"share": 1.5}, "1.5"),
        ({"hidden": 0.9, "random": 0.2}, "hidden=0.9, random=0.2"),
        ({"hidden": -0.1}, "hidden=-0.1"),
        ({"most": 0}, "0"),
        ({"ngrams": 0}, "0"),
    ],
)
def test_rules_that_are_none(rule, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        MaskingRule(**rule)


def test_only_the_mask_is_special_in_a_text_with_blanks():
    tokenizer = kbert.BertTokenizer([*tiny.VOCABULARY, "[", "]", "sep"])
    ids = ids_with_blanks(tokenizer, ["a [MASK] film[MASK]", "[SEP]", "[mask]", ""])
    pieces = [[tokenizer.vocabulary[i] for i in row] for row in ids]
    assert pieces == [
        ["a", "[MASK]", "film", "[MASK]"],
        ["[", "sep", "]"],
        ["[", "[UNK]", "]"],
        [],
    ]


def test_neighbours_are_masked_together():
    ids, splits, found = masked([42] * 3000, ngrams=3, share=0.1)
    assert set(counts(found, splits)) == {4}
    _, _, alone = masked([42] * 3000, share=0.1)

    def neighbours(found):
        return (np.diff(found.positions) == 1).mean()

    # Runs of 1, 2 and 3 with chances 6, 3 and 2 in 11, cut at four tokens in all.
    assert 0.3 < neighbours(found) < 0.4 and neighbours(alone) < 0.1


def test_neighbours_end_at_a_special_token():
    # Two segments of one token each: nothing has a neighbour.
    ids = np.array([CLS, 5, SEP, 6, SEP] * 400)
    splits = np.arange(401) * 5
    masker = TokenMasker(TOKENIZER, MaskingRule(ngrams=4, share=0.4, most=2))
    found = masker(ids, splits, np.random.default_rng(0))
    assert set(counts(found, splits)) == {2}  # each was chosen on its own
    first = TokenMasker(TOKENIZER, MaskingRule(ngrams=4, share=0.2, most=1))
    assert set(counts(first(ids, splits, np.random.default_rng(0)), splits)) == {1}


def test_whole_words_are_masked_together():
    ids, splits, found = masked([60] * 500, whole_words=True, ngrams=2, share=0.3)
    chosen = np.zeros(len(ids), bool)
    chosen[found.positions] = True
    continues = np.array([piece.startswith("##") for piece in PIECES])[ids]
    continues &= np.roll(ids, 1) != CLS
    np.testing.assert_array_equal(chosen[continues], np.roll(chosen, 1)[continues])
