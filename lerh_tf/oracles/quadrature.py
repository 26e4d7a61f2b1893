"""Integrals over R and R^2 in the logarithmic domain, each with an estimate of its error.

The trapezoidal rule on a box that holds the whole mass converges faster than any power of the
spacing for smooth integrands and needs nothing known about them; log densities keep exp(-f) from
underflowing. The rule sees an integrand at its nodes only: what is narrower than the spacing of the
first grids (about 1/50 of the stated width in R, 1/6 in R^2) can be missed by all of them, and then
no estimate shows it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]

# Nats below its peak at which a density ends: exp(-50) is a millionth of float64's resolution.
DEPTH = 50.0
# Half the first box in units of the stated width: a Gaussian of that width is 60 nats down there.
_REACH = 11.0
_ROUNDS = 60
_LOCATING = {1: 4096, 2: 128}
_LEVELS = {1: [2**k for k in range(8, 21)], 2: [2**k for k in range(5, 12)]}
_ROUNDING = 256 * float(np.finfo(np.float64).eps)


class QuadratureError(ArithmeticError):
    """An integral that does not exist, or that the grids do not resolve to the tolerance."""


class Value(NamedTuple):
    """A number (or vector, or matrix) and how far to trust it.

    Attributes:
        value: the quantity, float64; shape () for a scalar.
        error: estimate of the largest absolute error over the entries of `value`.
    """

    value: Array
    error: float

    def __add__(self, other: "Value") -> "Value":  # type: ignore[override]
        """Sum of two quantities; their errors add."""
        return Value(np.asarray(self.value + other.value), self.error + other.error)

    def scaled(self, factor: float) -> "Value":
        """The quantity times `factor`."""
        return Value(np.asarray(factor * self.value), abs(factor) * self.error)


class Box(NamedTuple):
    """An axis-aligned box [lower, upper] in R^d, both of shape (d,)."""

    lower: Array
    upper: Array

    def nodes(self, intervals: int) -> Array:
        """The regular grid with `intervals` cells per axis, shape (intervals + 1,) * d + (d,)."""
        axes = np.linspace(self.lower, self.upper, intervals + 1, axis=-1)
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)

    def cell(self, intervals: int) -> Array:
        """The sides of one cell of that grid, shape (d,)."""
        return (self.upper - self.lower) / intervals


def locate(log_density: Function, centre: Array, width: float, depth: float = DEPTH) -> Box:
    """The box outside which a density is more than `depth` nats below its peak.

    Starts at `centre` with a multiple of `width`, grows where the density has not ended yet and
    closes in where it has.

    Args:
        log_density: log of the density, normalised or not; maps (..., d) to (...).
        centre: where to look first, shape (d,) with d = 1 or 2.
        width: the density's expected scale there, positive.
        depth: nats below the peak.

    Returns:
        The box.

    Raises:
        QuadratureError: if the density never ends, so that its integral does not exist.
    """
    box = Box(centre - _REACH * width, centre + _REACH * width)
    intervals = _LOCATING[centre.size]
    for _ in range(_ROUNDS):
        hull, cell = _hull(log_density, box, intervals, depth), box.cell(intervals)
        size, extent = box.upper - box.lower, hull.upper - hull.lower
        cut_below, cut_above = hull.lower < box.lower + cell, hull.upper > box.upper - cell
        if not (cut_below | cut_above).any() and np.all(extent > 0.8 * size):
            return box
        # The margin keeps what a finer grid finds at the rim from sending the search out again.
        margin = cell + extent / 20
        box = Box(
            np.where(cut_below, box.lower - size, hull.lower - margin),
            np.where(cut_above, box.upper + size, hull.upper + margin),
        )
    raise QuadratureError(
        f"The integrand must fall {depth:g} nats below its peak within a bounded box, or it is not "
        f"integrable. Received: mass still at the edge of the box from {box.lower} to {box.upper}"
    )


def log_integral(log_density: Function, centre: Array, width: float, tolerance: float) -> Value:
    """Logarithm of the integral of exp(log_density) over R^d.

    Args:
        log_density: maps (..., d) to (...).
        centre: where to look for the mass first, shape (d,) with d = 1 or 2.
        width: its expected scale there.
        tolerance: largest error accepted, relative to max(1, |value|).

    Returns:
        The logarithm, shape ().

    Raises:
        QuadratureError: if the integral does not exist or is not resolved to `tolerance`.
    """
    box = locate(log_density, centre, width)

    def level(intervals: int) -> Array:
        logs = _evaluate(log_density, box.nodes(intervals))
        return np.asarray(logsumexp(logs) + np.log(box.cell(intervals)).sum())

    return _refine(level, centre.size, tolerance)


def expectation(
    g: Function, log_density: Function, centre: Array, width: float, tolerance: float
) -> Value:
    """The mean of g under the density proportional to exp(log_density).

    Args:
        g: maps (..., d) to (..., *event).
        log_density: maps (..., d) to (...); need not be normalised.
        centre: where to look for the mass first, shape (d,) with d = 1 or 2.
        width: its expected scale there.
        tolerance: largest error accepted, relative to max(1, |value|).

    Returns:
        The mean, shape `event`.

    Raises:
        QuadratureError: if the mean does not exist or is not resolved to `tolerance`.
    """

    def magnitude(v: Array) -> Array:
        # Where |g| grows, the integrand ends later than the density does.
        logs = log_density(v)
        return logs + np.log1p(np.abs(_where_mass(logs, g(v))).max(axis=-1))

    box = locate(magnitude, centre, width)

    def level(intervals: int) -> Array:
        v = box.nodes(intervals)
        logs = _evaluate(log_density, v)
        values = g(v)
        weights = np.exp(logs - logsumexp(logs)).ravel()
        return (weights @ _where_mass(logs, values).reshape(weights.size, -1)).reshape(
            values.shape[v.ndim - 1 :]
        )

    return _refine(level, centre.size, tolerance)


def _hull(log_density: Function, box: Box, intervals: int, depth: float) -> Box:
    """The smallest box around the nodes that carry mass."""
    nodes = box.nodes(intervals)
    logs = _evaluate(log_density, nodes)
    kept = nodes[logs >= logs.max() - depth]
    return Box(kept.min(axis=0), kept.max(axis=0))


def _evaluate(log_density: Function, v: Array) -> Array:
    """Log densities at the nodes, refusing what no density can be."""
    with np.errstate(over="ignore", invalid="ignore"):
        logs = log_density(v)
    if np.isnan(logs).any() or np.isposinf(logs).any():
        wrong = np.isnan(logs) | np.isposinf(logs)
        raise QuadratureError(
            f"The integrand must be finite. Received: log {logs[wrong][0]} at {v[wrong][0]}"
        )
    if np.isneginf(logs).all():
        raise QuadratureError(
            f"The integrand must not vanish everywhere. Received: zero from {v.min()} to {v.max()}"
        )
    return logs


def _where_mass(logs: Array, values: Array) -> Array:
    """Values as (..., entries), zero where the density is: 0 times infinity is 0 in an integral."""
    flat = values.reshape(*logs.shape, -1)
    return np.where(np.isneginf(logs)[..., None], 0.0, flat)


def _refine(level: Callable[[int], Array], dimension: int, tolerance: float) -> Value:
    """Halves the spacing until three successive grids agree to the tolerance."""
    values: list[Array] = []
    error = np.inf
    for intervals in _LEVELS[dimension]:
        values = [*values[-2:], level(intervals)]
        scale = max(1.0, float(np.abs(values[-1]).max()))
        if len(values) == 3:
            # Two comparisons: across a kink two grids alone can agree by accident.
            error = max(float(np.abs(values[-1] - old).max()) for old in values[:2])
            error += _ROUNDING * scale
            if error <= tolerance * scale:
                return Value(values[-1], error)
    raise QuadratureError(
        f"The quadrature must agree with itself to `tolerance`={tolerance:g}. Received: "
        f"error {error:.1e} with {_LEVELS[dimension][-1]} intervals per axis"
    )
