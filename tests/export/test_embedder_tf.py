"""The SavedModel of an embedder: text in, one vector out."""

import numpy as np

import kbert
from tests import tiny
from tests.export.served import ask

TEXTS = ["a good film", "it was awful and very dull and we saw it", "film"]


def test_the_exported_embedder_equals_the_model(tmp_path):
    model = kbert.BertEmbedder(tiny.backbone(), tiny.preprocessor())
    model.export(tmp_path / "model", verbose=False)
    outputs = ask(tmp_path / "model", text=TEXTS)
    assert set(outputs) == {"embedding"}
    np.testing.assert_allclose(outputs["embedding"], model.embed(TEXTS), atol=1e-5)
    ids = model.preprocessor(TEXTS[1:])
    alone = ask(tmp_path / "model", "ids", **ids)["embedding"]
    np.testing.assert_allclose(alone, model.embed(TEXTS[1:]), atol=1e-5)
