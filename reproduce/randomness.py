"""Random streams of a run: every draw is a pure function of (seed, stream, position)."""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a draw is for; a value, once used, keeps its meaning."""

    WEIGHTS = 0
    ORDER = 1
    TEST_IMAGES = 2
    MINIBATCH = 3


def generator(seed: int, stream: Stream, position: int = 0) -> np.random.Generator:
    """Returns the generator of one position of one stream.

    Args:
        seed: The run's seed, at least 0.
        stream: What is drawn.
        position: Where in the stream: a layer, an epoch, an update; below 2**32.
    """
    # The seed comes last: NumPy pads with zeros, so only the last entry may vary in length.
    return np.random.default_rng([int(stream), position, seed])


def integer_seed(seed: int, stream: Stream, position: int = 0) -> int:
    """Returns a 31-bit seed for an API that takes an integer."""
    return int(generator(seed, stream, position).integers(2**31))
