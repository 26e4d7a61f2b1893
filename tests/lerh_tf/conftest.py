"""What tests of the library share."""

from typing import Any

import keras
import pytest

from lerh_tf.loss import compilation


@pytest.fixture
def plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves inner loops to TensorFlow: same noise, same arithmetic, traced in a third of the time.

    A test that wants them compiled by XLA all the same calls `monkeypatch.undo()`.
    """
    monkeypatch.setattr(compilation, "is_compilable", lambda objective: False)


@pytest.fixture
def built_optimizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds an optimizer before `fit`, which else traces the train step twice to build it."""
    fit = keras.Model.fit

    def fit_built(self: keras.Model, *args: Any, **kwargs: Any) -> Any:
        if self.built and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(keras.Model, "fit", fit_built)
