"""Smooth asymmetric functions on which mean and mode, and both regularizations, differ.

Each is written with arithmetic and `exp` alone, so that NumPy and TensorFlow evaluate the same
formula: `scenario.loss(v, np.exp)` and `scenario.loss(v, tf.exp)`. On a quadratic both algorithms
move alike, and an estimator can be right there for the wrong reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scenario:
    """A function, a place to start from and a scale.

    Attributes:
        name: for test ids.
        loss: maps points (..., d) and the array library's `exp` to values (...).
        x: the anchor, d numbers.
        tau: variance of the Gaussian; either algorithm's first step is longer than sqrt(tau) / 2.
    """

    name: str
    loss: Callable[[Any, Callable[[Any], Any]], Any]
    x: tuple[float, ...]
    tau: float

    def f(self, v: Array) -> Array:
        """The function on NumPy arrays, (..., d) to (...)."""
        return np.asarray(self.loss(v, np.exp))

    def __str__(self) -> str:
        return self.name


def tilted_double_well(v: Any, exp: Callable[[Any], Any]) -> Any:
    """Two wells of unequal depth; a polynomial."""
    del exp
    u = v[..., 0]
    return (u**2 - 1.0) ** 2 + 0.5 * u


def steep_and_gentle(v: Any, exp: Callable[[Any], Any]) -> Any:
    """Convex: an exponential wall on the left, a straight slope on the right."""
    u = v[..., 0]
    return exp(-2.0 * u) + 1.5 * u


def sharp_and_wide(v: Any, exp: Callable[[Any], Any]) -> Any:
    """A sharp deep well beside a wide shallow one, as in the paper's Figure 1."""
    u = v[..., 0]
    return 0.1 * u**2 - 3.0 * exp(-8.0 * (u - 1.0) ** 2) - 2.0 * exp(-1.0 * (u + 1.0) ** 2)


def bent_valley(v: Any, exp: Callable[[Any], Any]) -> Any:
    """Two dimensions: a curved valley with a slope along it."""
    del exp
    u, w = v[..., 0], v[..., 1]
    return 0.5 * (1.0 - u) ** 2 + (w - u**2) ** 2


ONE_DIMENSIONAL = (
    Scenario("tilted-double-well", tilted_double_well, x=(1.5,), tau=0.3),
    Scenario("steep-and-gentle", steep_and_gentle, x=(-0.5,), tau=0.3),
    Scenario("sharp-and-wide", sharp_and_wide, x=(1.5,), tau=0.2),
)
TWO_DIMENSIONAL = (Scenario("bent-valley", bent_valley, x=(-1.0, 0.5), tau=0.3),)
SCENARIOS = ONE_DIMENSIONAL + TWO_DIMENSIONAL
