"""What a run trains and validates on, by its seed, and the test set, which is one for all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from examples.map.randomness import generator

if TYPE_CHECKING:
    from reproduce.data import Mnist

Array = npt.NDArray[Any]
Examples = tuple[Array, Array]
"""Inputs, float32 (examples, features), and labels, int64 (examples,)."""

CLASSES = 10
FEATURES = {"mnist": 28 * 28, "mnist1d": 40}

_MNIST1D_POOL = 6000
_MNIST1D_TEST = 4000


@dataclass(frozen=True)
class Split:
    """What a run may see before its test.

    Args:
        training: Labels wrong as the task says.
        validation: Labels wrong at the same rate; what methods are chosen by.
        clean_labels: The right labels of `validation`.
    """

    training: Examples
    validation: Examples
    clean_labels: Array


Mnists = Callable[[], "Mnist"]
"""Loads MNIST."""


def split(
    name: str, mnist: Mnists, seed: int, training: int, validation: int, wrong_labels: float
) -> Split:
    """Returns a run's training and validation set, drawn without replacement.

    Args:
        name: Of the data set, "mnist" or "mnist1d".
        mnist: Loads MNIST.
        seed: The run's seed.
        training: Examples to train on.
        validation: Examples to validate on.
        wrong_labels: Probability that a label of either is another class, each as likely.
    """
    inputs, labels = _pool(name, mnist)
    chosen = generator("split", seed).permutation(len(labels))[: training + validation]
    given = with_wrong_labels(labels[chosen], wrong_labels, seed)
    x, right = inputs[chosen], labels[chosen]
    return Split(
        (x[:training], given[:training]), (x[training:], given[training:]), right[training:]
    )


def test_set(name: str, mnist: Mnists) -> Examples:
    """Returns the test set, with the right labels."""
    if name == "mnist":
        data = mnist()
        return _flat(data.test_images), np.asarray(data.test_labels, np.int64)
    inputs, labels = mnist1d()
    return inputs[_MNIST1D_POOL:], labels[_MNIST1D_POOL:]


def with_wrong_labels(labels: Array, share: float, seed: int) -> Array:
    """Returns labels each of which is, with probability `share`, another class."""
    draws = generator("wrong labels", seed)
    shift = draws.integers(1, CLASSES, len(labels))
    return np.where(draws.random(len(labels)) < share, (labels + shift) % CLASSES, labels)


def _pool(name: str, mnist: Mnists) -> Examples:
    if name == "mnist":
        data = mnist()
        return _flat(data.train_images), np.asarray(data.train_labels, np.int64)
    inputs, labels = mnist1d()
    return inputs[:_MNIST1D_POOL], labels[:_MNIST1D_POOL]


def _flat(images: Array) -> Array:
    return np.asarray(images, np.float32).reshape(len(images), -1) / np.float32(255.0)


@cache
def mnist1d() -> Examples:
    """Returns MNIST-1D, 10,000 signals of 40 points, as its package generates it, offline.

    References:
        Greydanus and Kobak (2024), Scaling down deep learning with MNIST-1D.
    """
    from mnist1d.data import get_dataset_args, make_dataset

    # The package seeds the global generator, for others to find it as it was.
    before = np.random.get_state()  # noqa: NPY002
    arguments = get_dataset_args()
    arguments.num_samples = _MNIST1D_POOL + _MNIST1D_TEST
    arguments.train_split = 1.0
    made = make_dataset(arguments)
    np.random.set_state(before)  # noqa: NPY002
    return made["x"].astype(np.float32), made["y"].astype(np.int64)
