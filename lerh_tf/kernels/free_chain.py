"""Algorithm 3 where f is flat, in closed form, and what each gradient of f adds to its mean."""

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
    moments = _moments(eps, deviations, tf.cast(tau, tf.float64), eps)
    deviation = tf.sqrt(moments.mean_variance)
    shared = tf.math.divide_no_nan(moments.covariance, deviation)
    own = tf.sqrt(tf.maximum(moments.variance - shared**2, 0.0))
    return Complement(moments.mean_start, deviation, moments.start, (shared, own))


def gradient_weights(eps: tf.Tensor, tau: tf.Tensor) -> tf.Tensor:
    """Returns c_1, ..., c_J with m = x + mean_start y^1 + flat noise - sum_j c_j grad f(x^j).

    A gradient moves the states after it:
    c_j = tau eps_j (1 - prod_{i>j} (1 - eps_i / (2 tau))) / sum_i eps_i. None is negative where the
    step sizes are at most 4 tau.

    Args:
        eps: eps_1, ..., eps_J, float64.
        tau: variance of the Gaussian (paper's tau), scalar tensor.
    """
    tau = tf.cast(tau, tf.float64)
    left = tf.math.cumprod(1.0 - eps / (2.0 * tau), exclusive=True, reverse=True)
    return tau * eps * (1.0 - left) / tf.reduce_sum(eps)


def share_of_spread(
    eps: tf.Tensor,
    deviations: tf.Tensor,
    c: tf.Tensor,
    tau: tf.Tensor,
    start: tf.Tensor,
) -> tf.Tensor:
    """Returns the variance of sum_j c_j u^j over what the u^j vary by in one chain.

    u is the chain where f is flat, and what it varies by is the expectation of the variance of
    u^1, ..., u^J under the weights c_j / sum_i c_i. Where the gradients along the chain are a
    linear function of it, sum_j c_j grad f(x^j) has this share of their variance as its own.

    Args:
        eps: eps_1, ..., eps_J, float64.
        deviations: s_1, ..., s_J, float64.
        c: c_1, ..., c_J, float64, with a positive sum.
        tau: variance of the Gaussian (paper's tau), scalar tensor.
        start: the mean square of the entries of y^1, scalar tensor.
    """
    moments = _moments(eps, deviations, tf.cast(tau, tf.float64), c)
    drift = moments.square_start - moments.mean_start**2
    spread = moments.square - moments.mean_variance + drift * tf.cast(start, tf.float64)
    return tf.math.divide_no_nan(moments.mean_variance * tf.reduce_sum(c) ** 2, spread)


class _Moments(NamedTuple):
    """Coefficients of y^1 and moments given it, in one dimension.

    Attributes:
        start: coefficient of y^1 in y^j.
        mean_start: of y^1 in sum_{i<j} w_i y^i, or in the weighted mean once divided.
        variance: of y^j.
        mean_variance: of the sum, or of the mean.
        covariance: of y^j and the sum, or the mean.
        square_start: coefficient of (y^1)^2 in sum_{i<j} w_i E (y^i)^2, or its mean.
        square: the rest of that sum.
    """

    start: tf.Tensor
    mean_start: tf.Tensor
    variance: tf.Tensor
    mean_variance: tf.Tensor
    covariance: tf.Tensor
    square_start: tf.Tensor
    square: tf.Tensor

    def averaged(self, w: tf.Tensor) -> "_Moments":
        """Returns the moments with w_j y^j added to the sum."""
        return self._replace(
            mean_start=self.mean_start + w * self.start,
            mean_variance=self.mean_variance + 2.0 * w * self.covariance + w**2 * self.variance,
            covariance=self.covariance + w * self.variance,
            square_start=self.square_start + w * self.start**2,
            square=self.square + w * self.variance,
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
            square_start=self.square_start / weight,
            square=self.square / weight,
        )


# Thousands of scalar steps: compiled they cost a millisecond, as a graph loop more than the chain.
@tf.function(jit_compile=True, autograph=False)
def _moments(eps: tf.Tensor, deviations: tf.Tensor, tau: tf.Tensor, w: tf.Tensor) -> _Moments:
    """Returns the moments of J states given the first, averaged by w; all of shape [J]."""
    factors = 1.0 - eps / (2.0 * tau)

    def step(j: tf.Tensor, chain: _Moments) -> tuple[tf.Tensor, _Moments]:
        return j + 1, chain.averaged(w[j]).moved(factors[j], deviations[j])

    zero, one = tf.zeros([], eps.dtype), tf.ones([], eps.dtype)
    last = tf.size(eps) - 1
    _, chain = tf.while_loop(
        lambda j, _: j < last, step, (tf.constant(0), _Moments(one, *[zero] * 6))
    )
    return chain.averaged(w[last]).divided(tf.reduce_sum(w))
