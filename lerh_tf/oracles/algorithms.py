"""Algorithms 1 and 2 with their Kullback-Leibler minimisations carried out exactly."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter, minimum_filter
from scipy.optimize import minimize

from lerh_tf._checks import integer_at_least
from lerh_tf.oracles.densities import as_point
from lerh_tf.oracles.landscape import Landscape
from lerh_tf.oracles.quadrature import DEPTH, Array, Box, QuadratureError, Value, locate

# The scan for starting points: cells per sqrt(tau), reach of the Gaussian in sqrt(tau), most nodes.
_CELLS = 8
_REACH = 8
_NODES = 4_000_000
# Minimisers nearer than this, in sqrt(tau), are one.
_SAME = 1e-3


def local_entropy_step(landscape: Landscape, x: npt.ArrayLike) -> Value:
    """x_{k+1} = E_q X with q = q_{x_k,tau}, the minimiser of D_KL(q || phi_{y,tau}) over y.

    Args:
        landscape: f and tau.
        x: the weights x_k.

    Returns:
        x_{k+1}, shape (d,).

    Raises:
        QuadratureError: if the mean does not exist or is not resolved.

    References:
        Algorithm 1.
    """
    return landscape.mean(x)


def heat_step(landscape: Landscape, x: npt.ArrayLike) -> Value:
    """x_{k+1} = a global minimiser of D_KL(phi_{y,tau} || q_{x_k,tau}) over y.

    It need not be unique; between equals rounding decides (`heat_minimizers` returns them all).

    Args:
        landscape: f and tau.
        x: the weights x_k.

    Returns:
        x_{k+1}, shape (d,).

    Raises:
        QuadratureError: as `heat_minimizers` does.

    References:
        Algorithm 2.
    """
    return heat_minimizers(landscape, x)[0]


def heat_minimizers(landscape: Landscape, x: npt.ArrayLike) -> list[Value]:
    """The local minimisers of D_KL(phi_{y,tau} || q_{x,tau}) over y, the smallest divergence first.

    The divergence is F^H_tau(y) + |y - x|^2 / 2 tau - F_tau(x), so its minimisers solve
    y = x - tau grad F^H_tau(y): Algorithm 2 is a proximal point step on F^H_tau. It is scanned on a
    grid of spacing sqrt(tau) / 8, and each minimum found there is refined by Newton's method.

    Args:
        landscape: f and tau.
        x: the weights x_k.

    Returns:
        The minimisers, shape (d,) each, which are all whose divergence is no more than that of
        y = x, so the global ones among them, and others as far as q_{x,tau} has mass.

    Raises:
        QuadratureError: if F^H_tau does not exist, if it or a minimiser is not resolved, or if the
            region to scan is too large for a grid.
    """
    divergence = _Divergence(landscape, as_point("x", x))
    found: list[Value] = []
    for start in _scan(landscape, divergence.x):
        y = _refine(divergence, start)
        if y is not None and not any(_same(y, other, landscape.tau) for other in found):
            found.append(y)
    if not found:
        raise QuadratureError(
            f"A minimiser must be resolved, so have positive curvature. Received: none for x={x!r}"
        )
    return sorted(found, key=lambda y: divergence(y.value))


def iterate(
    step: Callable[[Landscape, Array], Value],
    landscape: Landscape,
    x: npt.ArrayLike,
    steps: int,
) -> Array:
    """x_0, ..., x_K of Algorithm 1 or 2.

    Args:
        step: `local_entropy_step` or `heat_step`.
        landscape: f and tau.
        x: x_0.
        steps: K, at least 1.

    Returns:
        The iterates, shape (K + 1, d).

    Raises:
        ValueError: if `steps` is no positive integer.
        QuadratureError: as `step` does.
    """
    iterates = [as_point("x", x)]
    for _ in range(integer_at_least("steps", steps, 1)):
        iterates.append(step(landscape, iterates[-1]).value)
    return np.stack(iterates)


@dataclass(frozen=True, eq=False)
class _Divergence:
    """D_KL(phi_{y,tau} || q_{x,tau}) + F_tau(x) as a function of y."""

    landscape: Landscape
    x: Array

    def __call__(self, y: Array) -> float:
        proximity = np.square(y - self.x).sum() / (2 * self.landscape.tau)
        return float(self.landscape.heat(y).value + proximity)

    def gradient(self, y: Array) -> Array:
        return self.gradient_estimate(y).value

    def gradient_estimate(self, y: Array) -> Value:
        slope, error = self.landscape.heat_gradient(y)
        return Value(slope + (y - self.x) / self.landscape.tau, error)

    def hessian(self, y: Array) -> Array:
        return self.landscape.heat_hessian(y).value + np.eye(y.size) / self.landscape.tau


def _search_box(landscape: Landscape, x: Array) -> Box:
    """A box outside which D_KL(phi_{y,tau} || q_{x,tau}) is larger than at y = x.

    For y outside, at least half of phi_{y,tau} lies where log q is `depth` below its peak, so that
    its mean under phi_{y,tau} is `depth / 2` below the peak: less than its mean under phi_{x,tau}.
    """

    def log_joint(v: Array) -> Array:
        return landscape.log_joint(v, x)

    width = float(np.sqrt(landscape.tau))
    mass = locate(log_joint, x, width)
    peak = log_joint(mass.nodes(4 * _CELLS * _REACH)).max()
    entropy = x.size / 2 * np.log(2 * np.pi * np.e * landscape.tau)
    gap = peak + landscape.heat(x).value + entropy
    return locate(log_joint, x, width, depth=DEPTH + 2 * float(gap))


def _scan(landscape: Landscape, x: Array) -> Array:
    """The local minima of the divergence on a grid over the search box, shape (starts, d)."""
    box = _search_box(landscape, x)
    spacing = np.sqrt(landscape.tau) / _CELLS
    margin = _CELLS * _REACH
    counts = np.ceil((box.upper - box.lower) / spacing) + 1 + 2 * margin
    if counts.prod() > _NODES:
        raise QuadratureError(
            f"The region where minimisers may lie must have at most {_NODES} nodes at spacing "
            f"sqrt(tau) / {_CELLS}. Received: {box.lower} to {box.upper} for tau={landscape.tau}"
        )
    axes = [
        low + spacing * (np.arange(n) - margin) for low, n in zip(box.lower, counts, strict=True)
    ]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    heat = gaussian_filter(landscape.loss(nodes), sigma=_CELLS, truncate=_REACH)
    values = heat + np.square(nodes - x).sum(axis=-1) / (2 * landscape.tau)
    inner = (slice(margin, -margin),) * x.size
    return nodes[inner][values[inner] == minimum_filter(values, size=3)[inner]]


def _refine(divergence: _Divergence, start: Array) -> Value | None:
    """The minimiser next to `start`; None if what lies there is none."""
    width = float(np.sqrt(divergence.landscape.tau))
    y: Array = minimize(
        divergence,
        start,
        jac=divergence.gradient,
        hess=divergence.hessian,
        method="trust-exact",
        options={
            "gtol": 1e-2 / width,
            "initial_trust_radius": width / _CELLS,
            "max_trust_radius": width,
        },
    ).x
    # The descent ends well inside Newton's region, where each step squares the error.
    for _ in range(3):
        y = y - np.linalg.lstsq(divergence.hessian(y), divergence.gradient(y))[0]
    slope, error = divergence.gradient_estimate(y)
    curvature = np.linalg.eigvalsh(divergence.hessian(y)).min()
    if curvature <= 0:
        return None
    distance = float((np.linalg.norm(slope) + error * np.sqrt(y.size)) / curvature)
    tolerance = divergence.landscape.tolerance
    if distance > tolerance * max(1.0, float(np.abs(y).max())):
        raise QuadratureError(
            f"A minimiser must be resolved to `tolerance`={tolerance:g}. Received: "
            f"error {distance:.1e} at {y}, where the least curvature is {curvature:.1e}"
        )
    return Value(y, distance)


def _same(a: Value, b: Value, tau: float) -> bool:
    return bool(np.linalg.norm(a.value - b.value) < _SAME * np.sqrt(tau))
