"""Streamed sums over a sample with weights that are known by their logarithms alone."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from lerh_tf.kernels.base import widest_dtype
from lerh_tf.loss.parts import Part, square_norms, weighted_sums
from lerh_tf.noise import working_dtype
from lerh_tf.replicas import Replicas


class WeightedSums(NamedTuple):
    """Sums over samples v with weights w, all of them divided by exp(largest).

    Sums of v and |v|^2 are over rows of coefficients: w, w^2 and, where it is asked for, 1.

    Attributes:
        largest: the largest log weight so far.
        weight: sum w and sum w^2.
        cube: sum w^3.
        moment: per variable, the sums of v, flattened, shape [rows, size].
        spread: per row, the sum of |v|^2, scalars.
        non_finite: number of samples whose weight is not finite.
    """

    largest: tf.Tensor
    weight: tf.Tensor
    cube: tf.Tensor
    moment: list[tf.Tensor]
    spread: tuple[tf.Tensor, ...]
    non_finite: tf.Tensor

    @classmethod
    def zero(cls, anchor: Sequence[tf.Tensor], rows: int) -> "WeightedSums":
        """Returns the sums over no sample.

        Args:
            anchor: one tensor per variable, of the shape of its part of v.
            rows: 2, or 3 for the plain sums too.
        """
        dtype = widest_dtype([x.dtype for x in anchor])
        moment = [tf.zeros([rows, tf.size(x)], working_dtype(x.dtype)) for x in anchor]
        zero = tf.zeros([], dtype)
        return cls(
            tf.constant(-float("inf"), dtype),
            tf.zeros([2], dtype),
            zero,
            moment,
            (zero,) * rows,
            zero,
        )

    def add(
        self, log_weights: tf.Tensor, values: Sequence[Part], counts: tf.Tensor
    ) -> "WeightedSums":
        """Returns the sums with one block of samples added.

        Args:
            log_weights: shape [size]; those that are not finite count as minus infinity.
            values: v, per variable.
            counts: bool tensor of shape [size], which of the samples to add.
        """
        finite = tf.math.is_finite(log_weights) & counts
        log_weights = tf.where(finite, log_weights, -float("inf"))
        old = self.relative_to(tf.maximum(self.largest, tf.reduce_max(log_weights)))
        shift = finite_shift(old.largest)
        w = self._rows(tf.exp(log_weights - shift), tf.cast(counts, log_weights.dtype))
        squares = tf.add_n([tf.cast(square_norms(v), w.dtype) for v in values])
        return WeightedSums(
            old.largest,
            old.weight + tf.reduce_sum(w[:2], 1),
            old.cube + tf.reduce_sum(w[0] * w[1]),
            [m + weighted_sums(w, v) for m, v in zip(old.moment, values, strict=True)],
            tuple(
                spread + tf.reduce_sum(w[row] * squares) for row, spread in enumerate(old.spread)
            ),
            old.non_finite + tf.reduce_sum(tf.cast(counts & ~finite, self.non_finite.dtype)),
        )

    def averaged(self, replicas: Replicas) -> "WeightedSums":
        """Returns the sums of w v alone, over v that are the mean of the replicas' v.

        The weights are the same on all. A product of v with itself is not known of their mean.
        """
        means = replicas.mean([m[0] for m in self.moment])
        return self._replace(moment=[m[None] for m in means], spread=())

    def relative_to(self, largest: tf.Tensor) -> "WeightedSums":
        """Returns the sums divided by exp(largest), for a number at least as large."""
        shift = finite_shift(largest)
        rescale = self._rows(tf.exp(self.largest - shift), tf.ones_like(shift))
        return WeightedSums(
            largest,
            self.weight * rescale[:2],
            self.cube * (rescale[0] * rescale[1]),
            [m * tf.cast(rescale, m.dtype)[:, None] for m in self.moment],
            tuple(spread * rescale[row] for row, spread in enumerate(self.spread)),
            self.non_finite,
        )

    def _rows(self, w: tf.Tensor, ones: tf.Tensor) -> tf.Tensor:
        return tf.stack([w, w * w, ones][: len(self.spread)])

    @property
    def has_weight(self) -> tf.Tensor:
        """Whether a sample has a positive weight, a scalar bool tensor."""
        return self.weight[0] > 0.0

    @property
    def total(self) -> tf.Tensor:
        """The sum of w / exp(largest)."""
        return self.weight[0]

    @property
    def effective_sample_size(self) -> tf.Tensor:
        """(sum w)^2 / sum w^2; 0 without any weight."""
        return tf.math.divide_no_nan(self.weight[0] ** 2, self.weight[1])

    @property
    def powers(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Sums of the squares and of the cubes of the weights that sum to 1."""
        total = self.weight[0]
        return (
            tf.math.divide_no_nan(self.weight[1], total**2),
            tf.math.divide_no_nan(self.cube, total**3),
        )

    def means(self) -> list[tf.Tensor]:
        """Returns the weighted mean of v, flattened; zero if no sample has a positive weight."""
        return [tf.math.divide_no_nan(m[0], tf.cast(self.weight[0], m.dtype)) for m in self.moment]

    def delta_variance(self) -> tf.Tensor:
        """Returns sum w^2 |v - mean|^2 / (sum w)^2, of the weighted mean."""
        means = self.means()
        cross = self._dot(means, 1)
        total = self.spread[1] - 2.0 * cross + _square(means, cross.dtype) * self.weight[1]
        return tf.math.divide_no_nan(tf.maximum(total, 0.0), self.weight[0] ** 2)

    def sample_variance(self, samples: int) -> tf.Tensor:
        """Returns the unbiased variance of v over the samples that count; infinite for one.

        0 where none counts.
        """
        count = tf.cast(samples, self.non_finite.dtype) - self.non_finite
        square = tf.add_n([tf.cast(tf.reduce_sum(m[2] ** 2), count.dtype) for m in self.moment])
        total = tf.maximum(self.spread[2] - tf.math.divide_no_nan(square, count), 0.0)
        variance = total / tf.maximum(count - 1.0, 1.0)
        return tf.where(tf.not_equal(count, 1.0), variance, float("inf"))

    def _dot(self, means: Sequence[tf.Tensor], row: int) -> tf.Tensor:
        dtype = self.spread[0].dtype
        pairs = zip(means, self.moment, strict=True)
        return tf.add_n([tf.cast(tf.reduce_sum(mean * m[row]), dtype) for mean, m in pairs])


def finite_shift(largest: tf.Tensor) -> tf.Tensor:
    """Returns the largest log weight, or 0 where no loss was finite yet: any finite shift will do.

    Infinity minus infinity will not.
    """
    return tf.where(tf.math.is_finite(largest), largest, tf.zeros_like(largest))


def _square(means: Sequence[tf.Tensor], dtype: tf.DType) -> tf.Tensor:
    return tf.add_n([tf.cast(tf.reduce_sum(mean**2), dtype) for mean in means])
