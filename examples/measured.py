"""Trains a model on seeded minibatches and measures its accuracy on the way."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np

from reproduce import networks
from reproduce.sampling import held_out_subset, minibatches

if TYPE_CHECKING:
    from reproduce.data import Mnist


class Measured(NamedTuple):
    """What a training gave at each measured update.

    Attributes:
        accuracy: on the test images.
        diagnostics: the optimizer's own, with tau; empty for others.
    """

    accuracy: list[float]
    diagnostics: list[dict[str, float]]


def train(
    model: keras.Model,
    data: "Mnist",
    seed: int,
    batch_size: int,
    at: Sequence[int],
    test_images: int,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> Measured:
    """Trains a compiled model; each minibatch is one weight update.

    Args:
        model: From (batch, 784) pixels to (batch, 10) logits.
        data: MNIST.
        seed: Draws minibatches and test images.
        batch_size: Images per update.
        at: The updates to measure after, ascending; the last one ends the training.
        test_images: How many test images to measure on.
        callbacks: Run before each measurement.
    """
    order = minibatches(seed, len(data.train_labels), batch_size, at[-1]).ravel()
    x, y = _pixels(data.train_images, order), np.asarray(data.train_labels)[order]
    chosen = held_out_subset(seed, len(data.test_labels), test_images)
    probe = _Probe(at, _pixels(data.test_images, chosen), np.asarray(data.test_labels)[chosen])
    model.fit(
        *(x, y.astype("int64")),
        batch_size=batch_size,
        shuffle=False,
        verbose=0,
        callbacks=[*callbacks, probe],
    )
    return probe.found


class _Probe(keras.callbacks.Callback):
    def __init__(self, at: Sequence[int], images: Any, labels: Any) -> None:
        super().__init__()
        self._at, self._images, self._labels = frozenset(at), images, labels
        self.found = Measured([], [])

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch + 1 not in self._at:
            return
        logits = np.asarray(self.model(self._images, training=False))
        self.found.accuracy.append(float((logits.argmax(1) == self._labels).mean()))
        diagnostics = getattr(self.model.optimizer, "diagnostics", {})
        self.found.diagnostics.append(
            {**diagnostics, "tau": float(self.model.optimizer.learning_rate)}
        )


def _pixels(images: Any, chosen: Any) -> Any:
    flat = np.asarray(images).reshape(len(images), networks.PIXELS)[chosen]
    return flat.astype("float32") / 255.0
