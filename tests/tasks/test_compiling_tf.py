"""XLA is left alone on TensorFlow's CPU, which is told, and used where asked for."""

from tests import tiny

TEXTS, LABELS = tiny.sentiment()


def test_a_run_is_not_compiled(capfd):
    model = tiny.classifier()
    model.fit(TEXTS, LABELS)
    assert not model.jit_compile
    assert "No XLA" in capfd.readouterr().err


def test_a_compiled_step_trains():
    model = tiny.classifier(dropout=0.0)
    before = model.evaluate(TEXTS, LABELS, verbose=0)[0]
    model.compile(learning_rate=1e-2, jit_compile=True)
    model.fit(TEXTS, LABELS, batch_size=24, epochs=8, verbose=0)
    assert model.jit_compile
    assert model.evaluate(TEXTS, LABELS, verbose=0)[0] < before


def test_what_the_user_chose_stays(capfd):
    model = tiny.classifier()
    model.compile(jit_compile=False)
    model.fit(TEXTS, LABELS)
    assert "XLA" not in capfd.readouterr().err
