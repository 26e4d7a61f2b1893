"""A protocol so small that a run is mostly TensorFlow's tracing."""

from dataclasses import replace

import numpy as np
import pytest

from examples.map.protocol import QUICK, Protocol, Task
from reproduce.data import Mnist


@pytest.fixture(scope="session")
def halves() -> Mnist:
    """Images of two classes, told apart by their bright half, test images of their own."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=900).astype("uint8")
    images = rng.integers(100, size=(900, 28, 28)).astype("uint8")
    images[labels == 1, :14] += 100
    images[labels == 0, 14:] += 100
    return Mnist(images[:600], labels[:600], images[600:], labels[600:])


@pytest.fixture(scope="session")
def tiny() -> Protocol:
    """The quick protocol on small tasks, one of each kind."""
    return replace(QUICK, tasks=tuple(map(_small, QUICK.tasks[:6])), updates=6, checkpoints=2)


def _small(task: Task) -> Task:
    network = "small_dense" if task.network == "dense" else task.network
    return replace(task, training=min(task.training, 100), network=network)
