"""The demo's picture; only the demo's environment can draw."""

import curve
import numpy as np
import pictures

from tests import tiny


def test_the_picture_is_drawn(tmp_path):
    progress = curve.Curve([], [], 2)
    progress.losses, progress.accuracies = [0.7, 0.6, 0.5], [(0, 0.5), (3, 0.8)]
    path = tmp_path / "training.png"
    pictures.draw(path, progress, np.array([[5, 1], [2, 9]]), tiny.LABELS)
    assert path.read_bytes().startswith(b"\x89PNG")
