"""The one landscape on which everything is known in closed form."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lerh_tf._checks import positive_float
from lerh_tf.oracles.quadrature import Array


@dataclass(frozen=True, eq=False)
class Quadratic:
    """f(v) = (v - c)^T H (v - c) / 2 on R^d, any d; methods named as `Landscape`'s, exact values.

    With S = I + tau H, q_{x,tau} is the Gaussian with mean c + S^{-1}(x - c) and covariance
    tau S^{-1}; that mean is also the minimiser Algorithm 2 looks for, so both algorithms move alike
    here. f(v) = |v - c|^2 / (2 s^2) is H = I / s^2.

    Args:
        hessian: H, symmetric, shape (d, d); may be indefinite as long as S is positive definite.
        centre: c, shape (d,).
        tau: variance of the Gaussian, the paper's tau; positive.

    Raises:
        ValueError: if H is not symmetric, S not positive definite (F_tau does not exist then), or
            the shapes do not fit.
    """

    hessian: Array
    centre: Array
    tau: float

    def __post_init__(self) -> None:
        positive_float("tau", self.tau)
        if self.hessian.shape != (self.centre.size,) * 2 or self.centre.ndim != 1:
            raise ValueError(
                "`hessian` must have shape (d, d) for a `centre` of shape (d,). Received: shapes "
                f"{self.hessian.shape} and {self.centre.shape}"
            )
        if not np.array_equal(self.hessian, self.hessian.T):
            raise ValueError(f"`hessian` must be symmetric. Received: hessian={self.hessian}")
        lowest = np.linalg.eigvalsh(self.hessian).min()
        if not lowest > -1 / self.tau:
            raise ValueError(
                "`hessian` must have eigenvalues above -1 / tau. Received: "
                f"eigenvalue {lowest:g} for tau={self.tau}"
            )

    def f(self, v: Array) -> Array:
        """Values of f at points of shape (..., d), shape (...)."""
        u = v - self.centre
        return np.asarray(0.5 * np.einsum("...i,ij,...j->...", u, self.hessian, u))

    def local_entropy(self, x: Array) -> float:
        """F_tau(x) = log det(S) / 2 + (x - c)^T H S^{-1} (x - c) / 2."""
        u = x - self.centre
        return float(0.5 * self._log_det + 0.5 * u @ self.hessian @ self._shrink(u))

    def heat(self, x: Array) -> float:
        """F^H_tau(x) = f(x) + tau tr(H) / 2."""
        return float(self.f(x) + 0.5 * self.tau * np.trace(self.hessian))

    def local_entropy_gradient(self, x: Array) -> Array:
        """The gradient of F_tau at x, H S^{-1} (x - c), shape (d,)."""
        return self.hessian @ self._shrink(x - self.centre)

    def heat_gradient(self, x: Array) -> Array:
        """The gradient of F^H_tau at x, H (x - c), shape (d,)."""
        return self.hessian @ (x - self.centre)

    def heat_hessian(self, x: Array) -> Array:
        """The Hessian of F^H_tau, H wherever x is, shape (d, d)."""
        del x
        return self.hessian

    def mean(self, x: Array) -> Array:
        """The mean of q_{x,tau}, which is x_{k+1} of both algorithms from x_k = x, shape (d,)."""
        return self.centre + self._shrink(x - self.centre)

    def covariance(self, x: Array) -> Array:
        """The covariance of q_{x,tau}, tau S^{-1} wherever x is, shape (d, d)."""
        del x
        return np.asarray(self.tau * np.linalg.inv(self._s), dtype=np.float64)

    def kl_mean_seeking(self, x: Array, anchor: Array) -> float:
        """D_KL(q_{anchor,tau} || phi_{x,tau})."""
        u, d = self.mean(anchor) - x, self.centre.size
        trace = np.trace(self.covariance(anchor)) / self.tau
        return float(0.5 * (trace - d + u @ u / self.tau + self._log_det))

    def kl_mode_seeking(self, x: Array, anchor: Array) -> float:
        """D_KL(phi_{x,tau} || q_{anchor,tau})."""
        u, d = self.mean(anchor) - x, self.centre.size
        return float(0.5 * (np.trace(self._s) - d + u @ self._s @ u / self.tau - self._log_det))

    def local_entropy_majorizer(self, x: Array, anchor: Array) -> float:
        """A(x, anchor) = E_q f + D_KL(q || phi_{x,tau}) with q = q_{anchor,tau}."""
        mean_loss = self.f(self.mean(anchor)) + 0.5 * np.trace(
            self.hessian @ self.covariance(anchor)
        )
        return float(mean_loss) + self.kl_mean_seeking(x, anchor)

    def heat_majorizer(self, x: Array, anchor: Array) -> float:
        """A^H(x, anchor) = F_tau(anchor) + D_KL(phi_{x,tau} || q_{anchor,tau})."""
        return self.local_entropy(anchor) + self.kl_mode_seeking(x, anchor)

    @cached_property
    def _s(self) -> Array:
        return np.eye(self.centre.size) + self.tau * self.hessian

    @cached_property
    def _log_det(self) -> float:
        return float(np.linalg.slogdet(self._s)[1])

    def _shrink(self, u: Array) -> Array:
        return np.asarray(np.linalg.solve(self._s, u), dtype=np.float64)
