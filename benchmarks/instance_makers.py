"""Makers of instances, each in a process of its own: kbert, and Google's code.

A part of instances.py, and the program of its processes: `NAME CORPUS FOLDER …` prints
a JSON object with what it cost.
"""

import json
import os
import pathlib
import random
import sys
import time

from loading import memory, reset_peak

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

VOCABULARY = ROOT / "presets" / "vocabularies" / "uncased_en.txt"
LENGTH, MOST = 128, 20


def cost(work):
    """Runs a function; seconds of the processor and of the clock, and peak memory.

    The memory is told twice: in all, and above what the imports had taken.
    """
    before = memory("VmRSS")
    reset_peak()
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return {
        "processor_seconds": time.process_time() - processor,
        "seconds": time.perf_counter() - clock,
        "peak_bytes": memory("VmHWM"),
        "bytes_for_work": memory("VmHWM") - before,
        "instances": found,
    }


def kbert(corpus, folder, dupe_factor, workers=1, shard_tokens=1 << 21):
    """Makes a folder of instances, as `kbert instances` does."""
    from kbert import BertTokenizer
    from kbert.pretraining.creation import create_instances
    from kbert.pretraining.settings import InstanceSettings

    tokenizer = BertTokenizer(VOCABULARY)
    settings = InstanceSettings(
        dupe_factor=int(dupe_factor), shard_tokens=int(shard_tokens)
    )
    # Small parts, so that even a small corpus keeps several workers busy.
    return cost(
        lambda: (
            create_instances(
                corpus,
                folder,
                tokenizer,
                settings,
                workers=int(workers),
                part_bytes=1 << 20,
            ).instances
        )
    )


def google(corpus, folder, dupe_factor):
    """Does what `main` of create_pretraining_data.py does, into one file."""
    data, tokenization = modules_of_google()
    tokenizer = tokenization.FullTokenizer(str(VOCABULARY), do_lower_case=True)
    os.makedirs(folder)

    def work():
        made = data.create_training_instances(
            [corpus], tokenizer, LENGTH, int(dupe_factor), 0.1, 0.15, MOST,
            random.Random(12345),
        )  # fmt: skip
        target = os.path.join(folder, "google.tfrecord")
        data.write_instance_to_example_files(made, tokenizer, LENGTH, MOST, [target])
        return len(made)

    return cost(work)


def modules_of_google():
    """Returns `create_pretraining_data` and `tokenization`, with their flags parsed."""
    import tensorflow.compat.v1 as tf
    from absl import flags
    from bert import create_pretraining_data, tokenization

    tf.logging.set_verbosity(tf.logging.ERROR)
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["instances"], known_only=True)
    return create_pretraining_data, tokenization


def google_statistics(corpus, passes):
    """Counts what Google's procedure chooses, at the first instance of a document.

    Later ones of a document share its length, so that they are no independent sample.
    """
    data, tokenization = modules_of_google()
    tokenizer = tokenization.FullTokenizer(str(VOCABULARY), do_lower_case=True)
    documents = [
        [pieces for line in part.split("\n") if (pieces := tokenizer.tokenize(line))]
        for part in pathlib.Path(corpus).read_text(encoding="utf-8").split("\n\n")
    ]
    documents = [document for document in documents if document]
    rng, pieces = random.Random(1), list(tokenizer.vocab)
    cuts, statistics, truncate = [], Statistics(), data.truncate_seq_pair

    def counted(first, second, most, _):
        before = len(first), len(second)
        ends = Ends(rng)
        truncate(first, second, most, ends)
        cut = before[0] > len(first), before[1] > len(second)
        cuts.append((2 * cut[0] + cut[1], ends.counts))

    data.truncate_seq_pair = counted
    for _ in range(int(passes)):
        for number in range(len(documents)):
            cuts.clear()
            first, *_ = data.create_instances_from_document(
                documents, number, LENGTH, 0.1, 0.15, MOST, pieces, rng
            )
            places, labels = first.masked_lm_positions, first.masked_lm_labels
            shown = [first.tokens[place] for place in places]
            masks = list(zip(shown, labels, strict=True))
            statistics.add(len(first.tokens), first.is_random_next, masks, "[MASK]")
            side, ends = cuts[0]
            statistics.cut[side] += 1
            for end, lost in enumerate(ends):
                statistics.ends[end] += lost
    return statistics.told()


class Ends:
    """The random numbers of a truncation, and how many tokens each end loses."""

    def __init__(self, rng):
        self._rng = rng
        self.counts = [0, 0]

    def random(self):
        found = self._rng.random()
        self.counts[found >= 0.5] += 1
        return found


def kbert_statistics(corpus, passes):
    """Counts the same of kbert's procedure."""
    import numpy as np

    from kbert import BertTokenizer
    from kbert.data.corpus import read_corpus
    from kbert.preprocessing.masking import TokenMasker
    from kbert.preprocessing.packing import keep
    from kbert.pretraining import assembling, steps
    from kbert.pretraining.segments import plan_segments
    from kbert.pretraining.settings import InstanceSettings

    tokenizer, settings = BertTokenizer(VOCABULARY), InstanceSettings()
    documents = steps._tokenized(list(read_corpus(corpus)), tokenizer, np.uint16)
    starts = documents.sentence_splits[documents.document_splits]
    masker = TokenMasker(tokenizer, settings.masking)
    statistics = Statistics()
    options = {"sequence_length": LENGTH, "cls_id": tokenizer.cls_id}
    options |= {"sep_id": tokenizer.sep_id}
    for number in range(int(passes)):
        rng = np.random.default_rng([1, number])
        segments = plan_segments(documents, settings, rng)
        owner = np.searchsorted(starts, segments.first_starts, side="right")
        segments = segments.select(np.unique(owner, return_index=True)[1])
        kept = keep(np, segments.first_lengths, segments.second_lengths, LENGTH)
        lost = segments.first_lengths - kept.first
        lost_second = segments.second_lengths - kept.second
        for key, count in enumerate(
            np.bincount(2 * (lost > 0) + (lost_second > 0), minlength=4)
        ):
            statistics.cut[key] += int(count)
        # The numbers of the tokens in the place of their ids: which ones were kept.
        state = rng.bit_generator.state
        places = assembling.assemble(
            np.arange(len(documents.tokens)), segments, rng=rng, **options
        )
        rng.bit_generator.state = state
        made = assembling.assemble(documents.tokens, segments, rng=rng, **options)
        front = places.token_ids[places.row_splits[:-1] + 1] - segments.first_starts
        seconds = places.row_splits[:-1] + places.second_starts
        front = front + places.token_ids[seconds] - segments.second_starts
        statistics.ends[0] += int(front.sum())
        statistics.ends[1] += int((lost + lost_second - front).sum())
        made = assembling.mask(made, masker, rng)
        owner = np.repeat(np.arange(made.size), np.diff(made.mask_splits))
        shown = made.token_ids[made.row_splits[owner] + made.mask_positions]
        masks = list(zip(shown.tolist(), made.mask_labels.tolist(), strict=True))
        for row in range(made.size):
            some = masks[made.mask_splits[row] : made.mask_splits[row + 1]]
            length = int(made.row_splits[row + 1] - made.row_splits[row])
            statistics.add(length, made.labels[row], some, tokenizer.mask_id)
    return statistics.told()


class Statistics:
    """Counts of instances."""

    def __init__(self):
        self.lengths = [0] * (LENGTH // 8 + 1)
        self.next = [0, 0]
        self.masked = [0, 0]  # tokens to be predicted, and others
        self.shown = [0, 0, 0]  # [MASK], the same, another piece
        self.cut = [0, 0, 0, 0]  # no segment, the second, the first, both
        self.ends = [0, 0]  # tokens lost at the beginning and at the end

    def add(self, length, label, masks, mask):
        """Counts an instance."""
        self.lengths[length // 8] += 1
        self.next[int(label)] += 1
        self.masked[0] += len(masks)
        self.masked[1] += length - len(masks)
        for shown, hidden in masks:
            self.shown[0 if shown == mask else 1 if shown == hidden else 2] += 1

    def told(self):
        return vars(self)


if __name__ == "__main__":
    maker, *arguments = sys.argv[1:]
    print(json.dumps(globals()[maker](*arguments)))
