"""Streamed sums over a sample whose weights count by how far they are from their mean."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import tensorflow as tf

from lerh_tf.kernels.weighted_sums import WeightedSums, finite_shift
from lerh_tf.loss.parts import Part, square_norms, weighted_sums
from lerh_tf.noise import working_dtype
from lerh_tf.replicas import Replicas


class CentredSums(NamedTuple):
    """Sums over samples z with weights w, by u = w / exp(largest) - 1.

    Where f is nearly flat all w are nearly equal: sums of u keep the digits that differences of
    sums of w would lose.

    Attributes:
        largest: the largest log weight so far.
        powers: sums of 1, u and u^2, in float64.
        moment: per variable, the sums of u z and of z, flattened, shape [2, size].
        spread: sums of |z|^2, u |z|^2 and u^2 |z|^2, in float64.
        non_finite: number of samples whose weight is not finite.
    """

    largest: tf.Tensor
    powers: tf.Tensor
    moment: list[tf.Tensor]
    spread: tf.Tensor
    non_finite: tf.Tensor

    @classmethod
    def zero(cls, anchor: Sequence[tf.Tensor], dtype: tf.DType) -> "CentredSums":
        """Returns the sums over no sample.

        Args:
            anchor: one tensor per variable, of the shape of its part of z.
            dtype: of log weights.
        """
        moment = [tf.zeros([2, tf.size(x)], working_dtype(x.dtype)) for x in anchor]
        three = tf.zeros([3], tf.float64)
        return cls(tf.constant(-float("inf"), dtype), three, moment, three, tf.zeros([], dtype))

    def add(self, log_weights: tf.Tensor, z: Sequence[Part], counts: tf.Tensor) -> "CentredSums":
        """Returns the sums with one block of samples added.

        Args:
            log_weights: shape [size]; those that are not finite count as minus infinity.
            z: per variable.
            counts: bool tensor of shape [size], which of the samples to add.
        """
        finite = tf.math.is_finite(log_weights) & counts
        log_weights = tf.where(finite, log_weights, -float("inf"))
        old = self.relative_to(tf.maximum(self.largest, tf.reduce_max(log_weights)))
        u = tf.where(counts, tf.math.expm1(log_weights - finite_shift(old.largest)), 0.0)
        ones = tf.cast(counts, u.dtype)
        rows = tf.stack([u, ones])
        powers = tf.cast(tf.stack([ones, u, u * u]), tf.float64)
        squares = tf.add_n([tf.cast(square_norms(z_v), tf.float64) for z_v in z])
        return CentredSums(
            old.largest,
            old.powers + tf.reduce_sum(powers, 1),
            [m + weighted_sums(rows, z_v) for m, z_v in zip(old.moment, z, strict=True)],
            old.spread + tf.reduce_sum(powers * squares, 1),
            old.non_finite + tf.reduce_sum(tf.cast(counts & ~finite, self.non_finite.dtype)),
        )

    def relative_to(self, largest: tf.Tensor) -> "CentredSums":
        """Returns the sums with w over exp(largest), for a number at least as large."""
        less = tf.math.expm1(tf.cast(self.largest - finite_shift(largest), tf.float64))
        factor = 1.0 + less

        def rescaled(sums: tf.Tensor) -> tf.Tensor:
            # 1 + u shrinks by the factor, which moves u by `less` too.
            plain, first, second = tf.unstack(sums)
            moved = factor * first + less * plain
            squared = factor**2 * second + less * (2.0 * factor * first + less * plain)
            return tf.stack([plain, moved, squared])

        moment = [
            tf.stack([tf.cast(factor, m.dtype) * m[0] + tf.cast(less, m.dtype) * m[1], m[1]])
            for m in self.moment
        ]
        return CentredSums(
            largest, rescaled(self.powers), moment, rescaled(self.spread), self.non_finite
        )

    @property
    def total(self) -> tf.Tensor:
        """The sum of w / exp(largest)."""
        return self.powers[0] + self.powers[1]

    @property
    def has_weight(self) -> tf.Tensor:
        """Whether a sample has a positive weight, a scalar bool tensor."""
        return self.total > 0.0

    @property
    def effective_sample_size(self) -> tf.Tensor:
        """(sum w)^2 / sum w^2; 0 without any weight."""
        plain, first, second = tf.unstack(self.powers)
        return tf.math.divide_no_nan(self.total**2, plain + 2.0 * first + second)

    def means(self) -> list[tf.Tensor]:
        """Returns the weighted mean of z less the plain one, flattened; 0 without any weight."""
        centre = self._centre
        return [
            tf.math.divide_no_nan(
                m[0] - tf.cast(centre, m.dtype) * m[1], tf.cast(self.total, m.dtype)
            )
            for m in self.moment
        ]

    def variance(self) -> tf.Tensor:
        """Returns sum a^2 |z|^2 - |sum a z|^2 / J, a = w / sum w - 1 / J.

        That is the variance of a sum of J independent terms a z, the total over all entries. Where
        z is independent of the weights a sum of a^2 remains per entry, without bias.
        """
        plain, first, second = tf.unstack(self.spread)
        centre = self._centre
        squares = second - centre * (2.0 * first - centre * plain)
        means = [tf.cast(m, tf.float64) for m in self.means()]
        square_of_sum = tf.add_n([tf.reduce_sum(m**2) for m in means])
        return tf.maximum(
            tf.math.divide_no_nan(squares, self.total**2)
            - tf.math.divide_no_nan(square_of_sum, self.powers[0]),
            0.0,
        )

    @property
    def _centre(self) -> tf.Tensor:
        return tf.math.divide_no_nan(self.powers[1], self.powers[0])


Sums: TypeAlias = WeightedSums | CentredSums


def over(replicas: Replicas, own: Sums) -> Sums:
    """Returns the sums over the samples of all replicas."""
    own = own.relative_to(replicas.largest(own.largest))
    parts = own._replace(largest=())
    totals = replicas.total(tf.nest.flatten(parts))
    return tf.nest.pack_sequence_as(parts, totals)._replace(largest=own.largest)
