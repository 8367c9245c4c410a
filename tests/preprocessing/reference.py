"""The packing rule, slowly and literally, as Google's `run_classifier.py` has it."""

import numpy as np

CLS, SEP, PAD = 1, 2, 0


def pack_one(first, second, max_length, long_text="truncate"):
    """Return ids, segment ids and whether tokens were lost, of one text or pair."""
    first, second = list(first), list(second or [])
    kept_first, kept_second = len(first), len(second)
    specials = 3 if second else 2
    while kept_first + kept_second > max_length - specials:
        if kept_first > kept_second:
            kept_first -= 1
        else:
            kept_second -= 1
    lost = kept_first < len(first) or kept_second < len(second)
    first = shorten(first, kept_first, long_text)
    second = shorten(second, kept_second, long_text)
    ids, segments = [CLS, *first, SEP], [0] * (len(first) + 2)
    if second:
        ids += [*second, SEP]
        segments += [1] * (len(second) + 1)
    return ids, segments, lost


def shorten(tokens, kept, long_text):
    if kept == len(tokens) or long_text == "truncate":
        return tokens[:kept]
    head = round(kept / 4 + 1e-9)
    return tokens[:head] + tokens[len(tokens) - (kept - head) :]


def pack_dense(firsts, seconds, max_length, width, long_text="truncate"):
    """Return the three arrays of the model for N texts or pairs."""
    shape = (len(firsts), width)
    arrays = {
        name: np.zeros(shape, "int32")
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    for row, first in enumerate(firsts):
        second = seconds[row] if seconds is not None else None
        ids, segments, _ = pack_one(first, second, max_length, long_text)
        arrays["token_ids"][row, : len(ids)] = ids
        arrays["segment_ids"][row, : len(ids)] = segments
        arrays["padding_mask"][row, : len(ids)] = 1
    return arrays


def random_lists(count, longest, seed):
    """Return N lists of 0 to `longest` ids from 3 to 99."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(3, 100, rng.integers(0, longest + 1)).tolist()
        for _ in range(count)
    ]


def padded(lists):
    """Return lists of ids as one array, filled with PAD on the right."""
    width = max([1, *map(len, lists)])
    return np.array([ids + [PAD] * (width - len(ids)) for ids in lists], "int32")
