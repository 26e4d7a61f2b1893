"""Figure 3: the mode-seeking and the mean-seeking best Gaussian of a bimodal density."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reproduce import checks
from reproduce.experiments.illustration import rounded
from reproduce.figures import gaussians as figure
from reproduce.landscapes.functions import Array

_DIGITS = 9


@dataclass(frozen=True)
class Approximation:
    """What the figure shows; the paper's is a cartoon without a formula.

    f(v) = -log cosh(steepness v), so that q_{x,tau} is a mixture of two Gaussians of variance tau
    about -steepness tau and steepness tau, moved by x and weighted by exp(-+ steepness x). Only
    the mean of the approximating Gaussian is free, its variance is tau, as in Algorithms 1 and 2.

    Args:
        steepness: Of f; the modes are about 2 steepness sqrt(tau) standard deviations apart.
        tau: Variance of the Gaussians, the paper's tau.
        x: The weights x_k that q is formed at.
        half_width: The densities are drawn from minus this to this.
        points: Points of each curve.
    """

    draw = staticmethod(figure.draw)
    EXPERIMENT: ClassVar[str] = "gaussians"

    steepness: float = 2.2
    tau: float = 1.0
    x: float = 0.12
    half_width: float = 6.0
    points: int = 241

    def __post_init__(self) -> None:
        checks.numbers(self, but=("x",))

    def compute(self) -> dict[str, Any]:
        """Returns q, its best Gaussians by exact steps of Algorithms 1 and 2, and divergences."""
        from lerh_tf.oracles import Landscape, heat_minimizers, local_entropy_step

        def f(v: Array) -> Array:
            u = self.steepness * v[..., 0]
            return np.asarray(np.log(2.0) - np.logaddexp(u, -u))

        landscape, x = Landscape(f, self.tau), self.x
        v = np.linspace(-self.half_width, self.half_width, self.points)
        mean = local_entropy_step(landscape, x).value
        modes = [minimiser.value for minimiser in heat_minimizers(landscape, x)]

        def minimum(m: Array, divergence: Any) -> dict[str, Any]:
            return {
                "mean": rounded(m, _DIGITS)[0],
                "divergence": rounded(divergence(m, x).value, _DIGITS),
                "density": rounded(np.exp(landscape.gaussian(m).log_density(v[:, None])), _DIGITS),
            }

        def seeking(divergence: Any, minimisers: Sequence[Array]) -> dict[str, Any]:
            along = np.array([divergence(m, x).value for m in v])
            return {
                "divergence": rounded(along, _DIGITS),
                "minimisers": [minimum(m, divergence) for m in minimisers],
            }

        return {
            "v": rounded(v, _DIGITS),
            "f": rounded(f(v[:, None]), _DIGITS),
            "q": rounded(np.exp(landscape.density(x).log_density(v[:, None])), _DIGITS),
            "mean_seeking": seeking(landscape.kl_mean_seeking, [mean]),
            "mode_seeking": seeking(landscape.kl_mode_seeking, modes),
        }
