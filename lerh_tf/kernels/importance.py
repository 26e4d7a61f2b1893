"""Algorithm 4: the mean of q_{x,tau} by importance sampling, without a gradient."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import keras
import tensorflow as tf

from lerh_tf._checks import boolean, integer_at_least, positive_float
from lerh_tf.kernels.base import (
    Complement,
    Estimate,
    Kernel,
    Samples,
    displaced,
    fold_blocks,
    map_blocks,
    scaled,
    settings,
    widest_dtype,
)
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective
from lerh_tf.noise import Noise, block_size, working_dtype


@keras.saving.register_keras_serializable("lerh_tf")
@settings
class ImportanceSampling(Kernel):
    """Estimates the mean of q_{x,tau} by importance sampling from the Gaussian.

    x^j = x + sqrt(tau) z^j, z^j ~ N(0, I), w^j = exp(-loss_multiplier * f(x^j)),
    m = sum_j w^j x^j / sum_j w^j.

    No gradient of f is taken, so f need not have one. Samples with an infinite or NaN loss get
    weight zero. Where all have one, the estimate is not valid. Memory does not depend on the
    number of samples.

    Its diagnostics are `effective_sample_size`, ESS = (sum w)^2 / sum w^2; `local_entropy`, the
    estimate of F_tau for the loss `loss_multiplier * f`; `standard_error`, of m, as the root of
    its total variance; `non_finite`, the number of samples without a finite loss.

    With weights v^j that sum to 1 and z their mean of the z^j, the squared standard error is

    tau (sum_j (v^j)^2 |z^j - z|^2 + d (2 sum_j (v^j)^3 - (sum_j (v^j)^2)^2)).

    The first term is the delta method's. It vanishes as ESS falls to 1, since z follows the
    heavy samples. In each of the d dimensions where f is flat, z^j is independent of the weights,
    E (z^j - z)^2 = 1 - 2 v^j + sum_i (v^i)^2, so given the weights its expectation lacks just the
    second term of the variance tau / ESS of m. That term is positive, tau where one sample has
    all the weight, and of the order of 1 / ESS^2: with many effective samples the delta method
    alone is left, which knows f's curvature. So the standard error is right where f is flat in
    most of many dimensions, whatever ESS is. Where f is convex it is an upper bound, but in one
    or two dimensions up to a quarter too small where f falls so steeply that few samples carry
    the weight; where f is curved downwards it can be a third too small. It is the spread over
    repetitions: the bias of m, of the order of 1 / ESS, is not in it.

    Args:
        samples: number of samples (paper's J), a positive integer. Defaults to 1000.
        loss_multiplier: factor on f in the weights, an inverse temperature; the minibatch size
            turns a mean loss into a sum. Defaults to 1, f itself.
        rao_blackwell: True leaves the dimensions of the weights that the minibatch does not see,
            where the optimizer finds any, at their conditional mean, x: the same expectation with
            a smaller variance, beyond the paper. Defaults to False.

    Raises:
        ValueError: `samples` is no positive integer, `loss_multiplier` not positive and finite, or
            `rao_blackwell` no bool.

    References:
        Algorithm 4 and equation (IS) of Section 5.1.2; Owen (2013), Monte Carlo theory, methods
        and examples, equation (9.9), for the delta method.
    """

    samples: int = 1000
    _: dataclasses.KW_ONLY
    loss_multiplier: float = 1.0
    rao_blackwell: bool = False

    diagnostic_names: ClassVar[tuple[str, ...]] = (
        "effective_sample_size",
        "local_entropy",
        "standard_error",
        "non_finite",
    )
    reducible: ClassVar[bool] = True
    failure: ClassVar[str] = (
        "ImportanceSampling: the loss is infinite or NaN at every sample, so no weight is "
        "positive. The weights were left as they were. Try a smaller tau, and look for NaN in the "
        "inputs."
    )

    def __post_init__(self) -> None:
        integer_at_least("samples", self.samples, 1)
        positive_float("loss_multiplier", self.loss_multiplier)
        boolean("rao_blackwell", self.rao_blackwell)

    def __call__(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        chain: Sequence[tf.Tensor] = (),
        update: tf.Tensor | int = 0,
    ) -> Estimate:
        """See `Kernel`."""
        size = self._block_size(objective, anchor)

        def add_samples(z: list[tf.Tensor], counts: tf.Tensor, sums: _Sums) -> _Sums:
            losses = objective.vectorized(displaced(anchor, scaled(tau, z)))
            return sums.add(self._log_weights(losses, sums.weight.dtype), z, counts)

        add_samples = compiled(add_samples, objective)

        def add_block(block: tf.Tensor, count: tf.Tensor, sums: _Sums) -> _Sums:
            return add_samples(noise(block, size), tf.range(size) < count, sums)

        sums = fold_blocks(add_block, self.samples, size, _Sums.zero(anchor))
        means = sums.means()
        displacement = scaled(tau, map(tf.reshape, means, map(tf.shape, anchor)))
        diagnostics = self._diagnostics(sums, means, tau, objective.dimensions(anchor))
        complement = self._complement(diagnostics["effective_sample_size"], tau)
        return Estimate(displacement, [], diagnostics, sums.weight[0] > 0.0, complement)

    def sample(
        self, objective: Objective, anchor: Sequence[tf.Tensor], tau: tf.Tensor, noise: Noise
    ) -> Samples:
        """Returns the weighted sample of q_{x,tau} whose mean a call estimates.

        All J positions are in memory at once.

        Args:
            objective: f on the current minibatch.
            anchor: the current weights x, one tensor per variable.
            tau: variance of the Gaussian (paper's tau), scalar tensor.
            noise: source of standard normal noise.
        """
        size = self._block_size(objective, anchor)

        dtypes = [x.dtype for x in anchor]

        def draw(block: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
            positions = displaced(anchor, scaled(tau, noise(block, size)))
            losses = objective.vectorized(positions)
            return positions, self._log_weights(losses, widest_dtype(dtypes))

        drawn = map_blocks(draw, self.samples, size, (dtypes, widest_dtype(dtypes)))
        positions, log_weights = drawn
        finite = tf.math.is_finite(log_weights)
        return Samples(positions, tf.nn.softmax(tf.where(finite, log_weights, -float("inf"))))

    def _block_size(self, objective: Objective, anchor: Sequence[tf.Tensor]) -> tf.Tensor:
        return tf.minimum(block_size(anchor, objective.footprint), self.samples)

    def _log_weights(self, losses: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        return -self.loss_multiplier * tf.cast(losses, dtype)

    def _complement(self, effective_sample_size: tf.Tensor, tau: tf.Tensor) -> Complement | None:
        """Returns the law of a weighted mean of J draws: one draw of variance tau / ESS."""
        if self.rao_blackwell:
            return None
        tau = tf.cast(tau, effective_sample_size.dtype)
        deviation = tf.sqrt(tf.math.divide_no_nan(tau, effective_sample_size))
        zero = tf.zeros_like(deviation)
        return Complement(zero, deviation, zero, (zero, zero))

    def _diagnostics(
        self, sums: "_Sums", means: Sequence[tf.Tensor], tau: tf.Tensor, dimensions: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        log_samples = tf.math.log(tf.cast(self.samples, sums.weight.dtype))
        variance = sums.variance_of(means) + self._missed_variance(sums, dimensions)
        return {
            "effective_sample_size": tf.math.divide_no_nan(sums.weight[0] ** 2, sums.weight[1]),
            "local_entropy": log_samples - sums.largest - tf.math.log(sums.weight[0]),
            "standard_error": tf.sqrt(tf.cast(tau, variance.dtype) * variance),
            "non_finite": sums.non_finite,
        }

    def _missed_variance(self, sums: "_Sums", dimensions: tf.Tensor) -> tf.Tensor:
        """Returns what of the variance over tau the delta method misses where f is flat."""
        total = sums.weight[0]
        squares = tf.math.divide_no_nan(sums.weight[1], total**2)
        cubes = tf.math.divide_no_nan(sums.cube, total**3)
        return tf.cast(dimensions, total.dtype) * (2.0 * cubes - squares**2)


class _Sums(NamedTuple):
    """Streamed sums over the samples; all weights are divided by exp(largest).

    Attributes:
        largest: the largest log weight so far.
        weight: sum w and sum w^2.
        cube: sum w^3.
        moment: per variable, sum w z and sum w^2 z, flattened, shape [2, size].
        spread: sum w^2 |z|^2.
        non_finite: number of samples without a finite loss.
    """

    largest: tf.Tensor
    weight: tf.Tensor
    cube: tf.Tensor
    moment: list[tf.Tensor]
    spread: tf.Tensor
    non_finite: tf.Tensor

    @classmethod
    def zero(cls, anchor: Sequence[tf.Tensor]) -> "_Sums":
        dtype = widest_dtype([x.dtype for x in anchor])
        moment = [tf.zeros([2, tf.size(x)], working_dtype(x.dtype)) for x in anchor]
        zero = tf.zeros([], dtype)
        return cls(
            tf.constant(-float("inf"), dtype), tf.zeros([2], dtype), zero, moment, zero, zero
        )

    def add(self, log_weights: tf.Tensor, z: Sequence[tf.Tensor], counts: tf.Tensor) -> "_Sums":
        """Returns the sums with one block of samples added.

        Args:
            log_weights: shape [size]; those that are not finite count as minus infinity.
            z: the samples' noise, shape [size, *shape] per variable.
            counts: bool tensor of shape [size], which of the samples to add.
        """
        finite = tf.math.is_finite(log_weights) & counts
        log_weights = tf.where(finite, log_weights, -float("inf"))
        largest = tf.maximum(self.largest, tf.reduce_max(log_weights))
        # No finite loss yet: any finite shift will do, and infinity minus infinity will not.
        shift = tf.where(tf.math.is_finite(largest), largest, tf.zeros_like(largest))
        rescale = _with_square(tf.exp(self.largest - shift))
        w = _with_square(tf.exp(log_weights - shift))
        flat = [tf.reshape(z_v, [tf.shape(z_v)[0], -1]) for z_v in z]
        square_norms = tf.add_n([tf.cast(_square_norms(f), w.dtype) for f in flat])
        return _Sums(
            largest,
            self.weight * rescale + tf.reduce_sum(w, 1),
            self.cube * tf.reduce_prod(rescale) + tf.reduce_sum(w[0] * w[1]),
            [
                m * tf.cast(rescale, m.dtype)[:, None] + tf.cast(w, m.dtype) @ f
                for m, f in zip(self.moment, flat, strict=True)
            ],
            self.spread * rescale[1] + tf.reduce_sum(w[1] * square_norms),
            self.non_finite + tf.reduce_sum(tf.cast(counts & ~finite, self.non_finite.dtype)),
        )

    def means(self) -> list[tf.Tensor]:
        """Returns the weighted mean of z, flattened; zero if no sample has a positive weight."""
        return [tf.math.divide_no_nan(m[0], tf.cast(self.weight[0], m.dtype)) for m in self.moment]

    def variance_of(self, means: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the mean of z's total variance: sum w^2 |z - mean|^2 / (sum w)^2."""
        dtype = self.spread.dtype
        cross = tf.add_n(
            [
                tf.cast(tf.reduce_sum(mean * moment[1]), dtype)
                for mean, moment in zip(means, self.moment, strict=True)
            ]
        )
        square = tf.add_n([tf.cast(tf.reduce_sum(mean**2), dtype) for mean in means])
        total = self.spread - 2.0 * cross + square * self.weight[1]
        return tf.math.divide_no_nan(tf.maximum(total, 0.0), self.weight[0] ** 2)


def _square_norms(rows: tf.Tensor) -> tf.Tensor:
    # A product: compiled, a sum along rows adds one number at a time.
    return tf.linalg.matvec(rows * rows, tf.ones(tf.shape(rows)[1:], rows.dtype))


def _with_square(w: tf.Tensor) -> tf.Tensor:
    return tf.stack([w, w * w])
