"""The variational characterizations, gradients and majorizers, each side from its definition."""

from collections.abc import Callable, Iterable

import numpy as np
from scipy.differentiate import jacobian

from lerh_tf.oracles import Density, Landscape, Value, kl_divergence, mixture
from lerh_tf.oracles.quadrature import log_integral
from reproduce.landscapes.functions import FUNCTIONS, Array
from reproduce.theory.protocol import Site

Measures = dict[str, list[float]]
Numbers = Iterable[tuple[str, float | Array]]

_SHIFTS = (-0.8, -0.3, 0.4)
"""Where other densities and points lie, in sqrt(tau)."""


def measure(site: Site) -> Measures:
    """Measures every identity at every start and tau of a site.

    Returns:
        By the measure's name, one number per place: distances between two sides of an equation, or
        how far the larger side of an inequality lies above the smaller.
    """
    function = FUNCTIONS[site.function]
    return gathered(
        number
        for landscape in (Landscape(function, tau) for tau in site.taus)
        for start in site.starts
        for number in _at(landscape, np.array(start))
    )


def gathered(numbers: Numbers) -> Measures:
    """Returns numbers by their names, in order."""
    found: Measures = {}
    for name, value in numbers:
        found.setdefault(name, []).append(float(value))
    return found


def derivative(function: Callable[[Array], Value], x: Array, scale: float) -> Array:
    """Returns the gradient of a function by finite differences of its values, of order 8.

    Args:
        function: Takes a point (d,).
        x: Where, shape (d,).
        scale: The length over which the function varies, sqrt(tau).
    """

    def values(points: Array) -> Array:
        found = [float(function(p).value) for p in points.reshape(len(points), -1).T]
        return np.reshape(found, points.shape[1:])

    result = jacobian(values, x, initial_step=0.5 * scale, tolerances={"atol": 1e-11, "rtol": 0.0})
    return np.asarray(result.df, dtype=np.float64)


def _at(landscape: Landscape, x: Array) -> Numbers:
    yield from _local_entropy(landscape, x)
    yield from _heat(landscape, x)
    yield from _gradients(landscape, x)
    yield from _majorizers(landscape, x)


def _local_entropy(landscape: Landscape, x: Array) -> Numbers:
    value, q = landscape.local_entropy(x).value, landscape.density(x)
    yield "local_entropy_at_q", abs(landscape.local_entropy_functional(q, x).value - value)
    for other in _others(landscape, x):
        gap = landscape.local_entropy_functional(other, x).value - value
        yield "local_entropy_elsewhere", gap
        yield "local_entropy_gap", abs(gap - kl_divergence(other, q, 1e-10).value)


def _heat(landscape: Landscape, x: Array) -> Numbers:
    value, phi = landscape.heat(x).value, landscape.gaussian(x)
    at_q = landscape.heat_functional(landscape.density(x), x).value
    yield "heat_at_q", abs(at_q - value)
    for other in _others(landscape, x):
        gap = landscape.heat_functional(other, x).value - value
        yield "heat_elsewhere", gap
        tilted = _tilted(landscape, other)
        yield "heat_gap", abs(gap - kl_divergence(phi, tilted, 1e-10).value)


def _gradients(landscape: Landscape, x: Array) -> Numbers:
    scale = float(np.sqrt(landscape.tau))
    slope = derivative(landscape.local_entropy, x, scale)
    mean = landscape.mean(x).value
    yield "gradient", _largest(slope - (x - mean) / landscape.tau)
    y, q = _around(landscape, x)[0], landscape.density(x)
    divergence = derivative(lambda p: kl_divergence(landscape.gaussian(p), q, 1e-10), y, scale)
    h = y - x + landscape.tau * landscape.heat_gradient(y).value
    yield "euler_lagrange", _largest(landscape.tau * divergence - h)


def _majorizers(landscape: Landscape, x: Array) -> Numbers:
    tau, mean = landscape.tau, landscape.mean(x).value
    entropy, heat = landscape.local_entropy(x).value, landscape.heat(x).value
    yield "majorizer_touches", abs(landscape.local_entropy_majorizer(x, x).value - entropy)
    yield "heat_majorizer_touches", abs(landscape.heat_majorizer(x, x).value - heat)
    lowest = landscape.local_entropy_majorizer(mean, x).value
    for y in _around(landscape, x):
        above = landscape.local_entropy_majorizer(y, x).value
        yield "majorizer_above", above - landscape.local_entropy(y).value
        yield "majorizer_minimiser", abs(above - lowest - np.square(y - mean).sum() / (2 * tau))
        heat_above = landscape.heat_majorizer(y, x).value
        yield "heat_majorizer_above", heat_above - landscape.heat(y).value
        divergence = landscape.kl_mode_seeking(y, x).value
        yield "heat_majorizer_constant", abs(heat_above - divergence - entropy)


def _around(landscape: Landscape, x: Array) -> list[Array]:
    return [x + shift * np.sqrt(landscape.tau) for shift in _SHIFTS]


def _others(landscape: Landscape, x: Array) -> list[Density]:
    """Densities other than q_{x,tau}; exp(f) times each is integrable, as theirs decay as q's."""
    shifted = [landscape.density(y) for y in _around(landscape, x)]
    sharper = Landscape(landscape.f, landscape.tau / 2).density(x)
    return [*shifted, sharper, mixture([0.3, 0.7], shifted[1:])]


def _tilted(landscape: Landscape, q: Density) -> Density:
    """The density proportional to exp(f) q."""

    def log_density(v: Array) -> Array:
        return landscape.loss(v) + q.log_density(v)

    log_mass = log_integral(log_density, q.centre, q.width, 1e-10).value
    return Density(lambda v: log_density(v) - log_mass, q.centre, q.width)


def _largest(difference: Array) -> float:
    return float(np.abs(difference).max())
