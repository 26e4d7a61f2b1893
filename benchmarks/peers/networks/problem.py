"""The networks: their weights, in Keras's order, and one minibatch of random inputs."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.peers.problem import CLASSES, PIXELS, Array

BATCH = 20
TOKENS, VOCABULARY = 16, 100
HEADS, KEY = 2, 16
_WIDTH, _HIDDEN = 32, 64

SHAPES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "wide": ((PIXELS, 1024), (1024,), (1024, 1024), (1024,), (1024, CLASSES), (CLASSES,)),
    "convolutional": ((3, 3, 1, 8), (8,), (3, 3, 8, 16), (16,), (400, CLASSES), (CLASSES,)),
    "attention": (
        (VOCABULARY, _WIDTH),
        *(((_WIDTH, HEADS, KEY), (HEADS, KEY)) * 3),
        (HEADS, KEY, _WIDTH),
        (_WIDTH,),
        # Of the layer normalization.
        (_WIDTH,),
        (_WIDTH,),
        (_WIDTH, _HIDDEN),
        (_HIDDEN,),
        (_HIDDEN, CLASSES),
        (CLASSES,),
    ),
}
"""Shapes of the weights, by network."""

TITLES: Mapping[str, str] = {
    "wide": "784-1024-1024-10",
    "convolutional": "28 x 28 images, 8 and 16 convolutions of 3 x 3, each before a pooling, 10",
    "attention": "16 tokens, embedded in 32, two heads of attention, 64, their mean, 10",
}
"""What the networks are, for reading."""

_SCALES = 9
"""Where the layer normalization's scale stands among the weights of `attention`."""


class Problem(NamedTuple):
    """Where every system begins.

    Attributes:
        weights: float32 arrays, in Keras's order.
        x: inputs, a minibatch.
        labels: int64 of shape (batch,).
    """

    weights: list[Array]
    x: Array
    labels: Array


def problem(network: str) -> Problem:
    """Returns a network's weights and minibatch.

    Args:
        network: a key of `SHAPES`.
    """
    draw = np.random.default_rng(0)
    weights = [_initial(draw, shape) for shape in SHAPES[network]]
    labels = draw.integers(CLASSES, size=BATCH)
    if network == "attention":
        weights[_SCALES] += 1.0
        return Problem(weights, draw.integers(VOCABULARY, size=(BATCH, TOKENS)), labels)
    shape = (BATCH, PIXELS) if network == "wide" else (BATCH, 28, 28, 1)
    return Problem(weights, draw.random(shape, dtype=np.float32), labels)


def _initial(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    if len(shape) == 1 or shape == (HEADS, KEY):
        return np.zeros(shape, np.float32)
    fan_in = np.prod(shape[:2]) if shape == (HEADS, KEY, _WIDTH) else np.prod(shape) / shape[-1]
    return (draw.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
