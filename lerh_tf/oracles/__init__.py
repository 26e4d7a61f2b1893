"""Exact values to judge the estimators by: a witness that shares no code with the kernels.

NumPy and SciPy in float64: local entropy, heat regularization, q_{x,tau}, the Kullback-Leibler
divergences, the majorizers and Algorithms 1 and 2, by quadrature for any f on R or R^2 and in
closed form for quadratics.

    >>> from lerh_tf.oracles import Landscape, local_entropy_step
    >>> landscape = Landscape(lambda v: (v[..., 0] ** 2 - 1) ** 2 + v[..., 0] / 2, tau=0.1)
    >>> value, error = landscape.local_entropy(0.8)
    >>> x_next, error = local_entropy_step(landscape, 0.8)
"""

from lerh_tf.oracles.algorithms import heat_minimizers, heat_step, iterate, local_entropy_step
from lerh_tf.oracles.densities import Density, gaussian, kl_divergence, mixture
from lerh_tf.oracles.landscape import Landscape
from lerh_tf.oracles.quadratic import Quadratic
from lerh_tf.oracles.quadrature import QuadratureError, Value

__all__ = [
    "Density",
    "Landscape",
    "Quadratic",
    "QuadratureError",
    "Value",
    "gaussian",
    "heat_minimizers",
    "heat_step",
    "iterate",
    "kl_divergence",
    "local_entropy_step",
    "mixture",
]
