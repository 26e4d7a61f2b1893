"""What tests of Keras's features share."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import tensorflow as tf


def silence(seed: int, update: tf.Tensor, like: Sequence[tf.Tensor]) -> Callable[..., Any]:
    del seed, update
    return lambda block, samples: [
        tf.zeros(tf.concat([[samples], tf.shape(x)], 0), x.dtype) for x in like
    ]


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `descent` gradient descent: all samples stand at the weights."""
    monkeypatch.setattr("lerh_tf.optimizers._update.PhiloxNoise", silence)
