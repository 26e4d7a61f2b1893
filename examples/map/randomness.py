"""Random streams of the map: every draw is a pure function of (purpose, seed, position)."""

import numpy as np


def generator(purpose: str, seed: int, position: int = 0) -> np.random.Generator:
    """Returns the generator of one position of one stream.

    Args:
        purpose: What is drawn.
        seed: The run's seed, at least 0.
        position: Where in the stream: an update, a trial; at least 0, below 2**32.
    """
    return np.random.default_rng([position, seed, *purpose.encode()])


def integer_seed(purpose: str, seed: int) -> int:
    """Returns a 31-bit seed for an API that takes an integer."""
    return int(generator(purpose, seed).integers(2**31))
