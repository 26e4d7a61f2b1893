"""F_tau and F^H_tau at many points at once, by convolution with the Gaussian on a grid."""

from functools import cached_property

import numpy as np

from reproduce.landscapes.functions import Array, Function

_CELLS = 8
"""Grid cells per sqrt(tau)."""

_REACH = 9.0
"""How far beyond the points the grid goes, in sqrt(tau): the Gaussian is 40 nats down there."""

_LARGEST_CELL = 0.02
_BLOCK = 2048


class Convolution:
    """Local entropy and heat regularization of one function, at points of a box.

    The trapezoidal rule on a grid: for smooth integrands it converges faster than any power of the
    spacing, so that what is left is rounding. The oracles choose their grid for each point and
    estimate their error; this one is for pictures and for statistics of thousands of points, and
    `Landscape` says at some of them how good it is.

    Args:
        function: f.
        tau: Variance of the Gaussian, the paper's tau.
        lower: The box's lower corner, `dimension` numbers.
        upper: Its upper corner.
    """

    def __init__(self, function: Function, tau: float, lower: Array, upper: Array):
        self._tau = tau
        width = np.sqrt(tau)
        cell = min(width / _CELLS, _LARGEST_CELL)
        self._axes = [
            np.arange(low - _REACH * width, high + _REACH * width + cell, cell)
            for low, high in zip(lower, upper, strict=True)
        ]
        self._cell = cell
        self._f = function(np.stack(np.meshgrid(*self._axes, indexing="ij"), axis=-1))

    def local_entropy(self, points: Array) -> Array:
        """Returns F_tau at points of shape (..., dimension), shape (...)."""
        lowest, likelihood = self._likelihood
        return np.asarray(lowest - np.log(self._convolved(likelihood, points)))

    def heat(self, points: Array) -> Array:
        """Returns F^H_tau at points of shape (..., dimension), shape (...)."""
        return self._convolved(self._f, points)

    @cached_property
    def _likelihood(self) -> tuple[float, Array]:
        """The smallest f, and exp(-f) relative to it."""
        lowest = float(self._f.min())
        return lowest, np.exp(lowest - self._f)

    def _convolved(self, values: Array, points: Array) -> Array:
        flat = points.reshape(-1, len(self._axes))
        blocks = [
            self._sum(values, flat[first : first + _BLOCK]) for first in range(0, len(flat), _BLOCK)
        ]
        return np.concatenate(blocks).reshape(points.shape[:-1])

    def _sum(self, values: Array, points: Array) -> Array:
        # Axis by axis, since the Gaussian is a product.
        total = self._weights(points, 0) @ values.reshape(len(values), -1)
        if len(self._axes) == 1:
            return total[:, 0]
        return np.asarray(np.einsum("pj,pj->p", total, self._weights(points, 1)))

    def _weights(self, points: Array, axis: int) -> Array:
        """Returns phi_{x,tau} along one axis times the cell, shape (points, nodes)."""
        square = (self._axes[axis] - points[:, axis, None]) ** 2
        return np.asarray(
            np.exp(-square / (2 * self._tau)) * self._cell / np.sqrt(2 * np.pi * self._tau)
        )
