"""Algorithm 4: the mean of q_{x,tau} by importance sampling, with gradients or without."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import keras
import tensorflow as tf

from lerh_tf._checks import boolean, integer_at_least, one_of, positive_float
from lerh_tf.kernels.base import Complement, Estimate, Kernel, Samples, settings, widest_dtype
from lerh_tf.kernels.blocks import fold_blocks, fold_samples, map_blocks
from lerh_tf.kernels.centred_sums import CentredSums, Sums, over
from lerh_tf.kernels.weighted_sums import WeightedSums
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective, displaced, scaled
from lerh_tf.loss.parts import Part, are_finite, where
from lerh_tf.noise import Noise, block_size
from lerh_tf.replicas import ALONE, Replicas


@keras.saving.register_keras_serializable("lerh_tf")
@settings
class ImportanceSampling(Kernel):
    """Estimates the mean of q_{x,tau} by importance sampling from the Gaussian.

    x^j = x + sqrt(tau) z^j, z^j ~ N(0, I), w^j = exp(-c f(x^j)), c = `loss_multiplier`,
    m = sum_j w^j x^j / sum_j w^j.

    No gradient of f is taken, so f need not have one. Samples with an infinite or NaN loss get
    weight zero. Where all have one, the estimate is not valid. Memory does not depend on the
    number of samples.

    Most of the noise of this mean is that of the z^j, which is there where f is flat too. Two
    estimators of the same mean are free of it; v^j are the weights that sum to 1:

    - `control_variate=True` takes off what the same noise gives where f is flat,
      m = x + sqrt(tau) sum_j (v^j - 1 / J) z^j. The expectation is the same, the variance in flat
      dimensions 1 - ESS / J of what it was.
    - `estimator="gradients"` has gradients in the weights' place,
      m = x - tau c sum_j v^j grad f(x^j), since E_q (x' - x) = -tau c E_q grad f(x') by parts
      (Stein's identity), where f is continuous: a loss with jumps, such as the 0-1 loss or one
      behind `tf.sign`, has gradients that know nothing of them. There is no noise where grad f is
      constant. Samples with an infinite or NaN gradient get weight zero too. The mean of q_{x,tau}
      is the same, the bias of the order of 1 / J another.

    Its diagnostics are `effective_sample_size`, ESS = (sum w)^2 / sum w^2; `local_entropy`, the
    estimate of F_tau for the loss `loss_multiplier * f`; `standard_error`, of m, as the root of
    its total variance; `non_finite`, the number of samples without a finite loss or, where it is
    asked for, gradient.

    With z the weighted mean of the z^j the squared standard error is

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
    repetitions: the bias of m, of the order of 1 / ESS, is not in it. With the control variate
    and with gradients it is made in the same way: the delta method, and what that lacks where the
    control variate's z^j, or the gradients, are independent of the weights.

    Args:
        samples: number of samples (paper's J), a positive integer; at least 2 with
            `control_variate`. Defaults to 1000.
        estimator: "positions", the paper's mean of weights, or "gradients". Defaults to
            "positions".
        control_variate: True takes off the noise that is there where f is flat. Defaults to False.
            With it, and with gradients, what the minibatch does not see of the weights, where the
            optimizer finds any, has no part in m.
        loss_multiplier: factor on f in the weights, an inverse temperature; the minibatch size
            turns a mean loss into a sum. Defaults to 1, f itself.

    Raises:
        ValueError: `samples` is no such integer, `estimator` unknown, `control_variate` no bool or
            True where the estimator is "gradients", or `loss_multiplier` not positive and finite.

    References:
        Algorithm 4, equation (5.2); Owen (2013), Monte Carlo theory, methods
        and examples, equation (9.9), for the delta method, and chapter 8 for control variates;
        Stein (1981), Estimation of the mean of a multivariate normal distribution, Lemma 2.
    """

    samples: int = 1000
    _: dataclasses.KW_ONLY
    estimator: str = "positions"
    control_variate: bool = False
    loss_multiplier: float = 1.0

    diagnostic_names: ClassVar[tuple[str, ...]] = (
        "effective_sample_size",
        "local_entropy",
        "standard_error",
        "non_finite",
    )
    splits: ClassVar[tuple[str, ...]] = ("samples", "batch")
    reducible: ClassVar[bool] = True

    @property
    def draws_locally(self) -> bool:
        """See `Kernel`."""
        return self.control_variate or self._has_gradients

    @property
    def differentiates(self) -> bool:
        """See `Kernel`."""
        return self._has_gradients

    failure: ClassVar[str] = (
        "ImportanceSampling: the loss, or its gradient, is infinite or NaN at every sample, so no "
        "weight is positive. The weights were left as they were. Look for NaN in the inputs, then "
        "try a smaller tau."
    )

    def __post_init__(self) -> None:
        integer_at_least("samples", self.samples, 1)
        one_of("estimator", self.estimator, ("positions", "gradients"))
        boolean("control_variate", self.control_variate)
        positive_float("loss_multiplier", self.loss_multiplier)
        if self.control_variate and self.estimator == "gradients":
            raise ValueError(
                '`control_variate` must be False with `estimator="gradients"`, which has no noise '
                "where f is flat. Received: control_variate=True"
            )
        if self.control_variate and self.samples < 2:
            raise ValueError(
                "`samples` must be at least 2 with `control_variate=True`: one sample alone never "
                f"moves. Received: samples={self.samples}"
            )

    def __call__(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        chain: Sequence[tf.Tensor] = (),
        update: tf.Tensor | int = 0,
        replicas: Replicas = ALONE,
    ) -> Estimate:
        """See `Kernel`."""
        summed = self._summed_over_parts if replicas.split == "batch" else self._summed
        sums = summed(objective, anchor, tau, noise, self._zero(objective, anchor), replicas)
        variance = self._variance(sums, tau, objective.dimensions(anchor))
        if replicas.split == "batch" and isinstance(sums, WeightedSums) and self._has_gradients:
            # Of the whole a bound: a mean varies no more than, on average, what it is made of.
            sums, (variance,) = sums.averaged(replicas), replicas.mean([variance])
        displacement = map(tf.reshape, self._displacement(sums, tau), map(tf.shape, anchor))
        diagnostics = self._diagnostics(sums, variance)
        complement = self._complement(diagnostics["effective_sample_size"], tau)
        return Estimate(list(displacement), [], diagnostics, sums.has_weight, complement)

    def _summed(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        zero: Sums,
        replicas: Replicas,
    ) -> Sums:
        """Returns the sums over all samples, each evaluated once, on one of the replicas."""

        def evaluated(z: list[tf.Tensor]) -> tuple[tf.Tensor, list[Part]]:
            return self._evaluated(objective, anchor, tau, z, zero.largest.dtype)

        evaluated = compiled(evaluated, objective)

        def draw(z: list[tf.Tensor], counts: tf.Tensor) -> tuple[tf.Tensor, list[Part], tf.Tensor]:
            return (*evaluated(z), counts)

        def add(sums: Sums, block: tuple[tf.Tensor, list[Part], tf.Tensor]) -> Sums:
            return sums.add(*block)

        add = compiled(add, objective)
        size = self._block_size(objective, anchor)
        sums = fold_samples(draw, add, noise, self.samples, size, zero, replicas=replicas)
        return over(replicas, sums) if replicas.split else sums

    def _summed_over_parts(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        zero: Sums,
        replicas: Replicas,
    ) -> Sums:
        """Returns the sums where f is the mean of the replicas' losses, each of its own rows.

        J losses travel; sums of gradients are of this replica's own. The noise is drawn twice,
        since no replica knows a weight before all have evaluated all samples.
        """
        size = self._block_size(objective, anchor, replicas)
        dtype = zero.largest.dtype

        def evaluate(z: list[tf.Tensor]) -> tf.Tensor:
            return tf.cast(objective.losses_around(anchor, tau, z)[0], dtype)

        evaluate = compiled(evaluate, objective)
        own = map_blocks(lambda block: evaluate(noise(block, size)), self.samples, size, dtype)
        (losses,) = replicas.mean([own])
        log_weights = self._log_weights(losses, dtype)
        padded = tf.pad(log_weights, [[0, size]], constant_values=-float("inf"))

        def averaged(z: list[tf.Tensor], log_weights: tf.Tensor) -> Sequence[Part]:
            if not self._has_gradients:
                return z
            # Zeros where a sample has no weight, as where it is alone.
            finite = tf.math.is_finite(log_weights)
            gradients = objective.gradients_around(anchor, tau, z)[1]
            return [where(finite, g, n.dtype) for g, n in zip(gradients, z, strict=True)]

        averaged = compiled(averaged, objective)

        def draw(block: tf.Tensor) -> tuple[tf.Tensor, Sequence[Part]]:
            of_block = tf.slice(padded, [tf.cast(block, tf.int32) * size], [size])
            return of_block, averaged(noise(block, size), of_block)

        def add(sums: Sums, block: tuple[tf.Tensor, Sequence[Part]], count: tf.Tensor) -> Sums:
            return sums.add(*block, tf.range(size) < count)

        return fold_blocks(draw, compiled(add, objective), self.samples, size, zero)

    def _zero(self, objective: Objective, anchor: Sequence[tf.Tensor]) -> Sums:
        """Returns the sums over no sample."""
        if self.control_variate:
            drawn = objective.noise_like(anchor)
            are_products = [z is not x for z, x in zip(drawn, anchor, strict=True)]
            return CentredSums.zero(anchor, are_products, widest_dtype([x.dtype for x in anchor]))
        return WeightedSums.zero(anchor, 3 if self._has_gradients else 2)

    @property
    def _has_gradients(self) -> bool:
        return self.estimator == "gradients"

    def _evaluated(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        z: list[tf.Tensor],
        dtype: tf.DType,
    ) -> tuple[tf.Tensor, list[Part]]:
        """Returns the log weights of a block of samples and what is averaged: z, or gradients."""
        if not self._has_gradients:
            losses, seen = objective.losses_around(anchor, tau, z)
            return self._log_weights(losses, dtype), seen
        losses, gradients = objective.gradients_around(anchor, tau, z)
        finite = tf.reduce_all([are_finite(g) for g in gradients], axis=0)
        finite &= tf.math.is_finite(losses)
        log_weights = tf.where(finite, self._log_weights(losses, dtype), -float("inf"))
        return log_weights, [
            where(finite, g, z_v.dtype) for g, z_v in zip(gradients, z, strict=True)
        ]

    def _displacement(self, sums: Sums, tau: tf.Tensor) -> list[tf.Tensor]:
        """Returns m - x, flattened."""
        means = sums.means()
        if self._has_gradients:
            return [-self.loss_multiplier * tf.cast(tau, g.dtype) * g for g in means]
        return scaled(tau, means)

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

        Returns:
            J positions and their weights, which sum to 1.
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

    def _block_size(
        self, objective: Objective, anchor: Sequence[tf.Tensor], replicas: Replicas = ALONE
    ) -> tf.Tensor:
        drawn = objective.noise_like(anchor)
        size = tf.minimum(block_size(drawn, objective.whole_footprint(replicas)), self.samples)
        if self.control_variate or self._has_gradients:
            # Spread evenly, since all of the last block is evaluated.
            blocks = (self.samples + size - 1) // size
            size = (self.samples + blocks - 1) // blocks
        return size

    def _log_weights(self, losses: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        return -self.loss_multiplier * tf.cast(losses, dtype)

    def _complement(self, effective_sample_size: tf.Tensor, tau: tf.Tensor) -> Complement | None:
        """Returns the law of a weighted mean of J draws: one draw of variance tau / ESS."""
        if self.control_variate or self._has_gradients:
            return None
        tau = tf.cast(tau, effective_sample_size.dtype)
        deviation = tf.sqrt(tf.math.divide_no_nan(tau, effective_sample_size))
        zero = tf.zeros_like(deviation)
        return Complement(zero, deviation, zero, (zero, zero))

    def _diagnostics(self, sums: Sums, variance: tf.Tensor) -> dict[str, tf.Tensor]:
        log_total = tf.cast(tf.math.log(sums.total), sums.largest.dtype)
        log_samples = tf.math.log(tf.cast(self.samples, sums.largest.dtype))
        return {
            "effective_sample_size": sums.effective_sample_size,
            "local_entropy": log_samples - sums.largest - log_total,
            "standard_error": tf.sqrt(variance),
            "non_finite": sums.non_finite,
        }

    def _variance(self, sums: Sums, tau: tf.Tensor, dimensions: tf.Tensor) -> tf.Tensor:
        """Returns the total variance of m: the delta method's, and what that misses."""
        if isinstance(sums, CentredSums):
            return tf.cast(tau, tf.float64) * sums.variance(dimensions)
        variance = sums.delta_variance()
        tau = tf.cast(tau, variance.dtype)
        if self._has_gradients:
            variance += self._missed_variance(sums, sums.sample_variance(self.samples))
            return (self.loss_multiplier * tau) ** 2 * variance
        return tau * (variance + self._missed_variance(sums, tf.cast(dimensions, variance.dtype)))

    def _missed_variance(self, sums: Sums, variance: tf.Tensor) -> tf.Tensor:
        """Returns what the delta method misses of values whose variance is independent of w."""
        squares, cubes = sums.powers
        return variance * (2.0 * cubes - squares**2)
