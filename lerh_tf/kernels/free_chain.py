"""Algorithm 3 where f is flat, in closed form."""

from typing import NamedTuple

import tensorflow as tf

from lerh_tf.kernels.base import Complement


def free_chain(eps: tf.Tensor, deviations: tf.Tensor, tau: tf.Tensor) -> Complement:
    """Returns the law of the chain y^{j+1} = (1 - eps_j / (2 tau)) y^j + s_j n_j.

    Args:
        eps: eps_1, ..., eps_J, float64.
        deviations: s_1, ..., s_J, float64.
        tau: variance of the Gaussian (paper's tau), scalar tensor.
    """
    moments = _moments(eps, deviations, tf.cast(tau, tf.float64))
    deviation = tf.sqrt(moments.mean_variance)
    shared = tf.math.divide_no_nan(moments.covariance, deviation)
    own = tf.sqrt(tf.maximum(moments.variance - shared**2, 0.0))
    return Complement(moments.mean_start, deviation, moments.start, (shared, own))


class _Moments(NamedTuple):
    """Coefficients of y^1 and moments given it, in one dimension.

    Attributes:
        start: coefficient of y^1 in y^j.
        mean_start: of y^1 in sum_{i<j} eps_i y^i, or in the weighted mean once divided.
        variance: of y^j.
        mean_variance: of the sum, or of the mean.
        covariance: of y^j and the sum, or the mean.
    """

    start: tf.Tensor
    mean_start: tf.Tensor
    variance: tf.Tensor
    mean_variance: tf.Tensor
    covariance: tf.Tensor

    def averaged(self, eps: tf.Tensor) -> "_Moments":
        """Returns the moments with eps_j y^j added to the sum."""
        return self._replace(
            mean_start=self.mean_start + eps * self.start,
            mean_variance=self.mean_variance + 2.0 * eps * self.covariance + eps**2 * self.variance,
            covariance=self.covariance + eps * self.variance,
        )

    def moved(self, factor: tf.Tensor, deviation: tf.Tensor) -> "_Moments":
        """Returns the moments after y^{j+1} = factor y^j + deviation n_j."""
        return self._replace(
            start=factor * self.start,
            variance=factor**2 * self.variance + deviation**2,
            covariance=factor * self.covariance,
        )

    def divided(self, weight: tf.Tensor) -> "_Moments":
        """Returns the moments of the mean, given those of the sum."""
        return self._replace(
            mean_start=self.mean_start / weight,
            mean_variance=self.mean_variance / weight**2,
            covariance=self.covariance / weight,
        )


# Thousands of scalar steps: compiled they cost a millisecond, as a graph loop more than the chain.
@tf.function(jit_compile=True, autograph=False)
def _moments(eps: tf.Tensor, deviations: tf.Tensor, tau: tf.Tensor) -> _Moments:
    """Returns the moments of J states given the first, eps and deviations of shape [J]."""
    factors = 1.0 - eps / (2.0 * tau)

    def step(j: tf.Tensor, chain: _Moments) -> tuple[tf.Tensor, _Moments]:
        return j + 1, chain.averaged(eps[j]).moved(factors[j], deviations[j])

    zero, one = tf.zeros([], eps.dtype), tf.ones([], eps.dtype)
    last = tf.size(eps) - 1
    _, chain = tf.while_loop(
        lambda j, _: j < last, step, (tf.constant(0), _Moments(one, zero, zero, zero, zero))
    )
    return chain.averaged(eps[last]).divided(tf.reduce_sum(eps))
