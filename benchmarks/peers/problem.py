"""The weights and the minibatch that every system starts from."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reproduce.randomness import Stream, generator
from reproduce.sampling import minibatches

Array = NDArray[Any]

PIXELS, CLASSES = 28 * 28, 10
_LIT = 0.5


@dataclass(frozen=True, eq=False)
class Problem:
    """A minibatch and the weights of a network with one hidden layer of ReLUs.

    Attributes:
        images: float32 of shape (batch, pixels), in [0, 1].
        labels: int64 of shape (batch,).
        weights: float32 kernel and bias of the hidden layer, then of the output layer.
    """

    images: Array
    labels: Array
    weights: tuple[Array, ...]

    @classmethod
    def of_minibatch(
        cls, images: Array, labels: Array, hidden: int, classes: int = CLASSES
    ) -> Self:
        """Returns the problem of a minibatch, with Glorot uniform weights and zero biases."""
        widths = (images.shape[1], hidden, classes)
        weights = [
            array
            for layer, (fan_in, fan_out) in enumerate(pairwise(widths))
            for array in (_glorot(fan_in, fan_out, layer), np.zeros(fan_out, np.float32))
        ]
        return cls(images, labels, tuple(weights))

    def save(self, path: Path) -> None:
        """Writes the problem to an `.npz` file."""
        arrays: dict[str, Any] = {f"weight{i}": array for i, array in enumerate(self.weights)}
        np.savez(path, images=self.images, labels=self.labels, **arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Returns the problem in an `.npz` file."""
        with np.load(path) as file:
            weights = [file[f"weight{index}"] for index in range(len(file.files) - 2)]
            return cls(file["images"], file["labels"], tuple(weights))


def flat(arrays: Sequence[Array]) -> Array:
    """Returns all entries in one float64 vector."""
    return np.concatenate([np.ravel(np.asarray(array, np.float64)) for array in arrays])


def random_minibatch(
    batch: int, pixels: int = PIXELS, classes: int = CLASSES
) -> tuple[Array, Array]:
    """Returns random images, some of whose pixels are dark in all as in MNIST, and labels."""
    draw = generator(0, Stream.ORDER)
    lit = draw.random(pixels) < _LIT
    images = draw.random((batch, pixels)) * lit
    return images.astype(np.float32), draw.integers(classes, size=batch)


def mnist_minibatch(batch: int, images: Array, labels: Array) -> tuple[Array, Array]:
    """Returns the first minibatch of seed 0 from MNIST's training set."""
    chosen = minibatches(0, len(labels), batch, 1)[0]
    pixels = images[chosen].reshape(batch, -1).astype(np.float32) / 255.0
    return pixels, labels[chosen].astype(np.int64)


def _glorot(fan_in: int, fan_out: int, layer: int) -> Array:
    limit = np.sqrt(6.0 / (fan_in + fan_out))
    draw = generator(0, Stream.WEIGHTS, layer)
    return draw.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32)
