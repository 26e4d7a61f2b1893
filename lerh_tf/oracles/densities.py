"""Probability densities on R and R^2, and the Kullback-Leibler divergence between any two."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from lerh_tf._checks import positive_float
from lerh_tf.oracles.quadrature import Array, Function, Value, expectation, log_integral

_NORMALISATION = 1e-8


def as_point(name: str, x: npt.ArrayLike) -> Array:
    """A point of R or R^2 as a float64 array of shape (d,); a bare number is a point of R.

    Args:
        name: the argument's name, for the error.
        x: the point.

    Returns:
        The array.

    Raises:
        ValueError: if `x` is no finite point of R or R^2.
    """
    point = np.atleast_1d(np.asarray(x, dtype=np.float64))
    if point.shape not in {(1,), (2,)} or not np.isfinite(point).all():
        raise ValueError(f"`{name}` must be a finite point of R or R^2. Received: {name}={x!r}")
    return point


def log_gaussian(v: Array, mean: Array, variance: float) -> Array:
    """Logarithm of phi_{mean,variance}(v), normalised; v has shape (..., d)."""
    u = v - mean
    square = np.einsum("...i,...i->...", u, u)
    return -square / (2 * variance) - mean.size / 2 * np.log(2 * np.pi * variance)


@dataclass(frozen=True, eq=False)
class Density:
    """A probability density given by its logarithm, integrated once to see that its mass is 1.

    Args:
        log_density: maps (..., d) to (...), normalised.
        centre: where to look for the mass first, shape (d,) with d = 1 or 2.
        width: its expected scale there, positive.

    Raises:
        ValueError: if the mass differs from 1 by more than 1e-8, or `centre` or `width` is not as
            stated.
        QuadratureError: if the density is not integrable.
    """

    log_density: Function
    centre: Array
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", as_point("centre", self.centre))
        positive_float("width", self.width)
        log_mass, _ = log_integral(self.log_density, self.centre, self.width, _NORMALISATION)
        if abs(log_mass) > _NORMALISATION:
            raise ValueError(
                f"`log_density` must integrate to 1. Received: mass {np.exp(log_mass):.6g}"
            )

    def expectation(self, g: Function, tolerance: float) -> Value:
        """The mean of g, which maps (..., d) to (..., *event).

        Args:
            g: the integrand.
            tolerance: largest error accepted, relative to max(1, |value|).

        Returns:
            The mean, shape `event`.

        Raises:
            QuadratureError: if the mean does not exist or is not resolved to `tolerance`.
        """
        return expectation(g, self.log_density, self.centre, self.width, tolerance)


def gaussian(mean: npt.ArrayLike, variance: float) -> Density:
    """phi_{mean,variance}: the Gaussian density with covariance `variance` times the identity.

    Args:
        mean: a point of R or R^2.
        variance: positive.

    Returns:
        The density.

    Raises:
        ValueError: if an argument is not as stated.
    """
    centre = as_point("mean", mean)
    positive_float("variance", variance)
    return Density(lambda v: log_gaussian(v, centre, variance), centre, float(np.sqrt(variance)))


def mixture(weights: Sequence[float], components: Sequence[Density]) -> Density:
    """sum_i weights_i components_i.

    Args:
        weights: positive, summing to 1.
        components: as many densities on one space.

    Returns:
        The density.

    Raises:
        ValueError: if the weights do not sum to 1 or differ in number from the components.
    """
    centres = np.stack([component.centre for component in components])
    width = np.ptp(centres) + max(component.width for component in components)

    def log_density(v: Array) -> Array:
        logs = [component.log_density(v) for component in components]
        return np.asarray(logsumexp(np.stack(logs, axis=-1), b=np.asarray(weights), axis=-1))

    if len(weights) != len(components):
        raise ValueError(
            f"`weights` must be one for each component. Received: {len(weights)} weights for "
            f"{len(components)} components"
        )
    return Density(log_density, centres.mean(axis=0), float(width))


def kl_divergence(p: Density, q: Density, tolerance: float) -> Value:
    """D_KL(p || q) = int log(p / q) p.

    Args:
        p: the density that is integrated against.
        q: the other.
        tolerance: largest error accepted, relative to max(1, |value|).

    Returns:
        The divergence, shape ().

    Raises:
        QuadratureError: if it is infinite or not resolved to `tolerance`.

    References:
        Section 2.3.
    """

    def log_ratio(v: Array) -> Array:
        return p.log_density(v) - q.log_density(v)

    return p.expectation(log_ratio, tolerance)
