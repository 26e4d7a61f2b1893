"""Local entropy and heat regularization of a given f, and what belongs to them, by quadrature.

Everything is computed from its definition, the divergences and majorizers too, so that an identity
between two quantities is a fact about the mathematics and not about this file.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lerh_tf._checks import positive_float
from lerh_tf.oracles.densities import Density, as_point, gaussian, kl_divergence, log_gaussian
from lerh_tf.oracles.quadrature import Array, Function, Value, expectation, log_integral

# What float64 sums of a million terms can keep.
_FINEST = 1e-12


@dataclass(frozen=True)
class Landscape:
    """A function f on R or R^2 at scale sqrt(tau): F_tau, F^H_tau and what the paper says of them.

    Every quantity comes as a `Value`, a pair (value, error). Points are arrays of shape (d,)
    with d = 1 or 2; a bare number is a point of R. Of f only values are used, never a gradient.

    Args:
        f: maps float64 arrays of shape (..., d) to (...); may be infinite, never NaN.
        tau: variance of the Gaussian phi_{x,tau}, the paper's tau; positive.
        tolerance: largest error accepted of an integral, relative to max(1, |value|); at least
            1e-12, default 1e-10. Where f has kinks or jumps only a larger one may be reached.

    Raises:
        ValueError: if `tau` or `tolerance` is not as stated; from the methods, if a point is not of
            R or R^2, or if f returns another shape than (...).
        QuadratureError: from the methods, if an integral does not exist (f falls faster than
            |x - x'|^2 / 2 tau rises, or grows too fast for the heat regularization) or is not
            resolved to `tolerance`.
    """

    f: Callable[[Array], npt.ArrayLike]
    tau: float
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        positive_float("tau", self.tau)
        if not _FINEST <= self.tolerance < 1:
            raise ValueError(
                f"`tolerance` must be in [{_FINEST:g}, 1). Received: tolerance={self.tolerance}"
            )

    def log_joint(self, v: Array, x: Array) -> Array:
        """Logarithm of exp(-f(v)) phi_{x,tau}(v), which is q_{x,tau}(v) but for normalisation.

        Args:
            v: where, shape (..., d).
            x: the Gaussian's mean, shape (d,).

        Returns:
            The logarithm, shape (...).
        """
        return log_gaussian(v, x, self.tau) - self.loss(v)

    def loss(self, v: Array) -> Array:
        """Values of f at many points, their shape checked.

        Args:
            v: where, shape (..., d).

        Returns:
            The values, float64, shape (...).
        """
        values = np.asarray(self.f(v), dtype=np.float64)
        if values.shape != v.shape[:-1]:
            raise ValueError(
                f"`f` must map (..., d) to (...). Received: shape {values.shape} for {v.shape}"
            )
        return values

    def local_entropy(self, x: npt.ArrayLike) -> Value:
        """F_tau(x) = -log int exp(-f(v)) phi_{x,tau}(v) dv, with the Gaussian normalised.

        The proof of the first theorem takes this for -log Z_{x,tau}. But Z normalises q_{x,tau}
        without the Gaussian's own factor, so that F_tau = -log Z_{x,tau} + (d / 2) log(2 pi tau):
        a constant in x, without which the theorem's minimum has the right place and a wrong value.

        Args:
            x: the Gaussian's mean.

        Returns:
            F_tau(x), shape ().

        References:
            Section 2.1 and Theorem 3.1.
        """
        point = as_point("x", x)

        def log_joint(v: Array) -> Array:
            return self.log_joint(v, point)

        return log_integral(log_joint, point, self._width, self.tolerance).scaled(-1.0)

    def heat(self, x: npt.ArrayLike) -> Value:
        """F^H_tau(x) = int f(v) phi_{x,tau}(v) dv.

        Args:
            x: the Gaussian's mean.

        Returns:
            F^H_tau(x), shape ().

        References:
            Section 2.2.
        """
        return self._gaussian_mean(lambda u, f: f, x)

    def local_entropy_gradient(self, x: npt.ArrayLike) -> Value:
        """The gradient of F_tau at x, (x - E_q X) / tau with q = q_{x,tau}.

        Args:
            x: where.

        Returns:
            The gradient, shape (d,).

        References:
            Equation (3.5).
        """
        return self._mean_displacement(x).scaled(-1 / self.tau)

    def heat_gradient(self, x: npt.ArrayLike) -> Value:
        """The gradient of F^H_tau at x, E[f(V) (V - x)] / tau with V ~ phi_{x,tau}.

        That is E[grad f(V)] after Gaussian integration by parts, so f needs no gradient.

        Args:
            x: where.

        Returns:
            The gradient, shape (d,).
        """
        return self._gaussian_mean(lambda u, f: f[..., None] * u, x).scaled(1 / self.tau)

    def heat_hessian(self, x: npt.ArrayLike) -> Value:
        """The Hessian of F^H_tau at x, E[f(V) ((V - x)(V - x)^T - tau I)] / tau^2.

        Args:
            x: where.

        Returns:
            The Hessian, shape (d, d).
        """

        def integrand(u: Array, f: Array) -> Array:
            return f[..., None, None] * (_outer(u) - self.tau * np.eye(u.shape[-1]))

        return self._gaussian_mean(integrand, x).scaled(1 / self.tau**2)

    def gaussian(self, x: npt.ArrayLike) -> Density:
        """The density phi_{x,tau}, mean x and covariance tau I.

        Args:
            x: its mean.

        Returns:
            The density.
        """
        return gaussian(x, self.tau)

    def density(self, x: npt.ArrayLike) -> Density:
        """The density q_{x,tau}, proportional to exp(-f(v) - |x - v|^2 / 2 tau) and normalised.

        Args:
            x: the anchor.

        Returns:
            The density.

        References:
            Equation (2.6).
        """
        point, entropy = as_point("x", x), self.local_entropy(x).value
        return Density(lambda v: self.log_joint(v, point) + entropy, point, self._width)

    def mean(self, x: npt.ArrayLike) -> Value:
        """E_q X with q = q_{x,tau}.

        Args:
            x: the anchor.

        Returns:
            The mean, shape (d,).
        """
        displacement, error = self._mean_displacement(x)
        return Value(as_point("x", x) + displacement, error)

    def covariance(self, x: npt.ArrayLike) -> Value:
        """Cov_q X with q = q_{x,tau}.

        Args:
            x: the anchor.

        Returns:
            The covariance, shape (d, d).
        """
        centre = self.mean(x).value
        return self._posterior_mean(lambda v: _outer(v - centre), as_point("x", x))

    def kl_mean_seeking(self, x: npt.ArrayLike, anchor: npt.ArrayLike) -> Value:
        """D_KL(q_{anchor,tau} || phi_{x,tau}), which Algorithm 1 minimises over x.

        Args:
            x: the Gaussian's mean.
            anchor: the weights x_k that q is formed at.

        Returns:
            The divergence, shape ().
        """
        return kl_divergence(self.density(anchor), self.gaussian(x), self.tolerance)

    def kl_mode_seeking(self, x: npt.ArrayLike, anchor: npt.ArrayLike) -> Value:
        """D_KL(phi_{x,tau} || q_{anchor,tau}), which Algorithm 2 minimises over x.

        Args:
            x: the Gaussian's mean.
            anchor: the weights x_k that q is formed at.

        Returns:
            The divergence, shape ().
        """
        return kl_divergence(self.gaussian(x), self.density(anchor), self.tolerance)

    def local_entropy_functional(self, q: Density, x: npt.ArrayLike) -> Value:
        """The functional int f q + D_KL(q || phi_{x,tau}): F_tau(x) at q_{x,tau}, more elsewhere.

        Args:
            q: any density on the space of x.
            x: the Gaussian's mean.

        Returns:
            The functional, shape ().

        References:
            Equation (3.1).
        """
        divergence = kl_divergence(q, self.gaussian(x), self.tolerance)
        return q.expectation(self.loss, self.tolerance) + divergence

    def heat_functional(self, q: Density, x: npt.ArrayLike) -> Value:
        """The functional log int exp(f) q + D_KL(phi_{x,tau} || q).

        It is F^H_tau(x) at q_{x,tau} and more elsewhere.

        Args:
            q: a density on the space of x that decays fast enough for exp(f) q to be integrable.
            x: the Gaussian's mean.

        Returns:
            The functional, shape ().

        References:
            Equation (4.1).
        """

        def log_tilted(v: Array) -> Array:
            return self.loss(v) + q.log_density(v)

        divergence = kl_divergence(self.gaussian(x), q, self.tolerance)
        return log_integral(log_tilted, q.centre, q.width, self.tolerance) + divergence

    def local_entropy_majorizer(self, x: npt.ArrayLike, anchor: npt.ArrayLike) -> Value:
        """A(x, anchor), the local entropy's functional at q_{anchor,tau}.

        It is at least F_tau(x), and equal at x = anchor.

        Args:
            x: the Gaussian's mean.
            anchor: the weights that q is formed at, the paper's x tilde.

        Returns:
            The majorizer, shape ().

        References:
            Section 3.2.
        """
        return self.local_entropy_functional(self.density(anchor), x)

    def heat_majorizer(self, x: npt.ArrayLike, anchor: npt.ArrayLike) -> Value:
        """A^H(x, anchor), the heat regularization's functional at q_{anchor,tau}.

        It is at least F^H_tau(x), and equal at x = anchor.

        Args:
            x: the Gaussian's mean.
            anchor: the weights that q is formed at, the paper's x tilde.

        Returns:
            The majorizer, shape ().

        References:
            Section 4.2.
        """
        return self.heat_functional(self.density(anchor), x)

    @property
    def _width(self) -> float:
        return float(np.sqrt(self.tau))

    def _mean_displacement(self, x: npt.ArrayLike) -> Value:
        """E_q X - x: summed as such, since a small difference of positions would lose digits."""
        point = as_point("x", x)
        return self._posterior_mean(lambda v: v - point, point)

    def _posterior_mean(self, g: Function, x: Array) -> Value:
        """The mean of g(V), V ~ q_{x,tau}."""

        def log_joint(v: Array) -> Array:
            return self.log_joint(v, x)

        return expectation(g, log_joint, x, self._width, self.tolerance)

    def _gaussian_mean(self, g: Callable[[Array, Array], Array], x: npt.ArrayLike) -> Value:
        """The mean of g(V - x, f(V)), V ~ phi_{x,tau}."""
        point = as_point("x", x)

        def integrand(v: Array) -> Array:
            return g(v - point, self.loss(v))

        def log_phi(v: Array) -> Array:
            return log_gaussian(v, point, self.tau)

        return expectation(integrand, log_phi, point, self._width, self.tolerance)


def _outer(u: Array) -> Array:
    """Outer products u u^T, shape (..., d, d)."""
    return u[..., :, None] * u[..., None, :]
