"""`kbert export`, where TensorFlow writes in this process."""

from typer.testing import CliRunner

from kbert_cli import app
from tests import tiny


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
