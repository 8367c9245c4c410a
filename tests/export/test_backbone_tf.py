"""The encoder's own export: ids in, vectors out, by name."""

import numpy as np

from tests import random_bert
from tests.export.served import ask, load


def test_the_exported_encoder_equals_the_model(tmp_path):
    backbone, values = random_bert.make(), random_bert.inputs()
    backbone.export(tmp_path / "model", verbose=False)
    signature = load(tmp_path / "model").signatures["serving_default"]
    assert set(signature.structured_input_signature[1]) == set(values)
    for part in (slice(None), (slice(2), slice(5))):  # any batch, any length
        some = {key: value[part] for key, value in values.items()}
        outputs = ask(tmp_path / "model", **some)
        assert set(outputs) == {"sequence_output", "pooled_output"}
        sequence, pooled = random_bert.run(backbone, some)
        np.testing.assert_allclose(outputs["sequence_output"], sequence, atol=1e-5)
        np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)
