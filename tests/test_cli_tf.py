"""`kbert export`, where TensorFlow writes in this process."""

import pytest
from typer.testing import CliRunner

import kbert
from kbert_cli import app
from tests import tiny


@pytest.mark.filterwarnings("ignore:The head of")
def test_finetune_exports_what_it_has_learnt(tmp_path):
    import tensorflow as tf

    tiny.classifier().save_to_preset(tmp_path / "base")
    rows = zip(*tiny.sentiment(24), strict=True)
    lines = ["review,feeling", *(",".join(row) for row in rows)]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    command = ["finetune", str(tmp_path / "data.csv"), "--text", "review"]
    for option in ("label=feeling", "epochs=1", "preset=base", "output=new"):
        name, value = option.split("=")
        value = str(tmp_path / value) if name in ("preset", "output") else value
        command += [f"--{name}", value]
    done = CliRunner().invoke(app, [*command, "--export", str(tmp_path / "served")])
    assert done.exit_code == 0, done.stderr
    signature = tf.saved_model.load(str(tmp_path / "served")).signatures
    answer = signature["serving_default"](text=tf.constant(["good film"]))
    expected = kbert.BertClassifier.from_preset(tmp_path / "new").classify(
        ["good film"]
    )
    assert answer["label"].numpy()[0].decode() == expected[0].label


def test_export_writes_a_saved_model_and_replaces_none_unasked(tmp_path):
    import tensorflow as tf

    preset, folder = str(tmp_path / "preset"), str(tmp_path / "served")
    classifier = tiny.classifier()
    classifier.save_to_preset(preset)
    done = CliRunner().invoke(app, ["export", preset, folder])
    assert done.exit_code == 0, done.stderr
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    label = signature(text=tf.constant(["good film"]))["label"].numpy()[0].decode()
    assert label == classifier.classify(["good film"])[0].label
    done = CliRunner().invoke(app, ["export", preset, folder])
    assert done.exit_code == 2
    assert "served, which exists" in done.stderr
    done = CliRunner().invoke(app, ["export", preset, folder, "--overwrite"])
    assert done.exit_code == 0, done.stderr
