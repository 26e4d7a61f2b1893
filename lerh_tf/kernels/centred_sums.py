"""Streamed sums over a sample whose weights count by how far they are from their mean."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import tensorflow as tf

from lerh_tf.kernels.weighted_sums import WeightedSums, finite_shift
from lerh_tf.loss.parts import OuterProducts, Part, square_norms, weighted_sums
from lerh_tf.noise import working_dtype
from lerh_tf.replicas import Replicas


class CentredSums(NamedTuple):
    """Sums over samples z with weights w, by u = w / exp(largest) - 1.

    Where f is nearly flat all w are nearly equal: sums of u keep the digits that differences of
    sums of w would lose.

    Attributes:
        largest: the largest log weight so far.
        powers: sums of 1, u, u^2 and u^3, in float64.
        moment: per variable, the sums of z, u z and u^2 z, flattened, shape [3, size]; of outer
            products, of which each sum is a large product, the first two.
        spread: sums of 1, u and u^2 times |z|^2, in float64.
        own: sums of 1, u, u^2 and u^3 times |z|^2 of outer products alone, in float64.
        non_finite: number of samples whose weight is not finite.
    """

    largest: tf.Tensor
    powers: tf.Tensor
    moment: list[tf.Tensor]
    spread: tf.Tensor
    own: tf.Tensor
    non_finite: tf.Tensor

    @classmethod
    def zero(
        cls, anchor: Sequence[tf.Tensor], are_products: Sequence[bool], dtype: tf.DType
    ) -> "CentredSums":
        """Returns the sums over no sample.

        Args:
            anchor: one tensor per variable, of the shape of its part of z.
            are_products: per variable, whether its part of z is one of outer products.
            dtype: of log weights.
        """
        moment = [
            tf.zeros([2 if is_product else 3, tf.size(x)], working_dtype(x.dtype))
            for x, is_product in zip(anchor, are_products, strict=True)
        ]
        powers, spread, own = (tf.zeros([size], tf.float64) for size in (4, 3, 4))
        lowest, zero = tf.constant(-float("inf"), dtype), tf.zeros([], dtype)
        return cls(lowest, powers, moment, spread, own, zero)

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
        squares = [tf.cast(square_norms(z_v), tf.float64) for z_v in z]
        of_products = [s for s, z_v in zip(squares, z, strict=True) if _is_product(z_v)]
        return CentredSums(
            old.largest,
            old.powers + tf.reduce_sum(powers, 1),
            [
                m + weighted_sums(rows[: m.shape[0]], z_v)
                for m, z_v in zip(old.moment, z, strict=True)
            ],
            old.spread + tf.reduce_sum(powers[:3] * tf.add_n(squares), 1),
            old.own + tf.reduce_sum(powers * sum(of_products, tf.zeros_like(u, tf.float64)), 1),
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
            [tf.cast(moves[: m.shape[0], : m.shape[0]], m.dtype) @ m for m in self.moment],
            tf.linalg.matvec(moves[:3, :3], self.spread),
            tf.linalg.matvec(moves, self.own),
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

        Of outer products sum_j a_j^2 z_j c is taken at i = j of c = sum_i a_i z_i: other samples
        add to it along the gradient of f, one direction of the d, of the order of tau |grad f|^2.

        Args:
            dimensions: d, scalar tensor.
        """
        count, total = self.powers[0], self.total
        of_two = tf.math.divide_no_nan(self._centred(self.powers[:3]), total**2)
        of_three = tf.math.divide_no_nan(self._third(self.powers), total**3)
        pairs = list(zip(self.means(), self.moment, strict=True))
        square = tf.add_n([tf.cast(tf.reduce_sum(c**2), tf.float64) for c, _ in pairs])
        cross = [
            tf.cast(tf.reduce_sum(c * self._centred(m)), tf.float64)
            for c, m in pairs
            if m.shape[0] == 3
        ]
        crosses = tf.add_n([*cross, tf.math.divide_no_nan(self._third(self.own), total)])
        squares = tf.math.divide_no_nan(self._centred(self.spread) - 2.0 * crosses, total**2)
        delta = squares + square * (of_two - tf.math.divide_no_nan(tf.ones_like(count), count))
        missed = tf.math.divide_no_nan(of_two, count) + 2.0 * of_three - of_two**2
        return tf.maximum(delta + tf.cast(dimensions, tf.float64) * missed, 0.0)

    def _centred(self, sums: tf.Tensor) -> tf.Tensor:
        """Returns the sum of (u - mean u)^2 x, of those of x, u x and u^2 x."""
        centre = tf.cast(self._centre, sums.dtype)
        return sums[2] - centre * (2.0 * sums[1] - centre * sums[0])

    def _third(self, sums: tf.Tensor) -> tf.Tensor:
        """Returns the sum of (u - mean u)^3 x, of those of x, u x, u^2 x and u^3 x."""
        plain, first, second, third = tf.unstack(sums)
        centre = self._centre
        return third - centre * (3.0 * second - centre * (3.0 * first - centre * plain))

    @property
    def _centre(self) -> tf.Tensor:
        return tf.math.divide_no_nan(self.powers[1], self.powers[0])


def _is_product(part: Part) -> bool:
    return isinstance(part, OuterProducts)


Sums: TypeAlias = WeightedSums | CentredSums


def over(replicas: Replicas, own: Sums) -> Sums:
    """Returns the sums over the samples of all replicas."""
    own = own.relative_to(replicas.largest(own.largest))
    parts = own._replace(largest=())
    totals = replicas.total(tf.nest.flatten(parts))
    return tf.nest.pack_sequence_as(parts, totals)._replace(largest=own.largest)
