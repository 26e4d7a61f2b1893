"""What tests of the library share."""

import pytest

from lerh_tf.loss import compilation


@pytest.fixture
def plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves inner loops to TensorFlow: same noise, same arithmetic, traced in a third of the time.

    A test that wants them compiled by XLA all the same calls `monkeypatch.undo()`.
    """
    monkeypatch.setattr(compilation, "is_compilable", lambda objective: False)
