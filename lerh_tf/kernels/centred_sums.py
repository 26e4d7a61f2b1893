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
        powers: sums of 1, u, u^2 and u^3, in float64.
        moment: per variable, the sums of z, u z and u^2 z, flattened, shape [3, size].
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
        moment = [tf.zeros([3, tf.size(x)], working_dtype(x.dtype)) for x in anchor]
        powers, spread = (tf.zeros([size], tf.float64) for size in (4, 3))
        return cls(tf.constant(-float("inf"), dtype), powers, moment, spread, tf.zeros([], dtype))

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
        rows = tf.stack([tf.cast(counts, u.dtype), u, u * u])
        powers = tf.cast(tf.stack([*tf.unstack(rows), u**3]), tf.float64)
        squares = tf.add_n([tf.cast(square_norms(z_v), tf.float64) for z_v in z])
        return CentredSums(
            old.largest,
            old.powers + tf.reduce_sum(powers, 1),
            [m + weighted_sums(rows, z_v) for m, z_v in zip(old.moment, z, strict=True)],
            old.spread + tf.reduce_sum(powers[:3] * squares, 1),
            old.non_finite + tf.reduce_sum(tf.cast(counts & ~finite, self.non_finite.dtype)),
        )

    def relative_to(self, largest: tf.Tensor) -> "CentredSums":
        """Returns the sums with w over exp(largest), for a number at least as large."""
        less = tf.math.expm1(tf.cast(self.largest - finite_shift(largest), tf.float64))
        factor, one, zero = 1.0 + less, tf.ones_like(less), tf.zeros_like(less)
        # 1 + u shrinks by the factor, which moves u by `less` too: the sums' matrix, row by row.
        moves = tf.stack(
            [
                tf.stack([one, zero, zero, zero]),
                tf.stack([less, factor, zero, zero]),
                tf.stack([less**2, 2.0 * less * factor, factor**2, zero]),
                tf.stack([less**3, 3.0 * less**2 * factor, 3.0 * less * factor**2, factor**3]),
            ]
        )
        return CentredSums(
            largest,
            tf.linalg.matvec(moves, self.powers),
            [tf.cast(moves[:3, :3], m.dtype) @ m for m in self.moment],
            tf.linalg.matvec(moves[:3, :3], self.spread),
            self.non_finite,
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
        plain, first, second, _ = tf.unstack(self.powers)
        return tf.math.divide_no_nan(self.total**2, plain + 2.0 * first + second)

    def means(self) -> list[tf.Tensor]:
        """Returns the weighted mean of z less the plain one, flattened; 0 without any weight."""
        centre, total = self._centre, self.total
        return [
            tf.math.divide_no_nan(m[1] - tf.cast(centre, m.dtype) * m[0], tf.cast(total, m.dtype))
            for m in self.moment
        ]

    def variance(self, dimensions: tf.Tensor) -> tf.Tensor:
        """Returns the delta method's variance of c = sum a z, and what that misses.

        With v = w / sum w and a = v - 1 / J it is sum |a z - v c|^2, the total over all entries. In
        each of the d dimensions where z is independent of the weights its expectation lacks
        sum a^2 / J + 2 sum a^3 - (sum a^2)^2 of the variance sum a^2.

        Args:
            dimensions: d, scalar tensor.
        """
        count, centre, total = self.powers[0], self._centre, self.total
        of_two = tf.math.divide_no_nan(self._centred(self.powers[:3]), total**2)
        _, _, second, third = tf.unstack(self.powers)
        of_three = tf.math.divide_no_nan(
            third - centre * (3.0 * second - 2.0 * count * centre**2), total**3
        )
        pairs = list(zip(self.means(), self.moment, strict=True))
        square = tf.add_n([tf.cast(tf.reduce_sum(c**2), tf.float64) for c, _ in pairs])
        cross = tf.add_n(
            [tf.cast(tf.reduce_sum(c * self._centred(m)), tf.float64) for c, m in pairs]
        )
        squares = tf.math.divide_no_nan(self._centred(self.spread) - 2.0 * cross, total**2)
        delta = squares + square * (of_two - tf.math.divide_no_nan(tf.ones_like(count), count))
        missed = tf.math.divide_no_nan(of_two, count) + 2.0 * of_three - of_two**2
        return tf.maximum(delta + tf.cast(dimensions, tf.float64) * missed, 0.0)

    def _centred(self, sums: tf.Tensor) -> tf.Tensor:
        """Returns the sum of (u - mean u)^2 x, of those of x, u x and u^2 x."""
        centre = tf.cast(self._centre, sums.dtype)
        return sums[2] - centre * (2.0 * sums[1] - centre * sums[0])

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
