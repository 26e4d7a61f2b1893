"""A Markov chain on its way, and what is summed along it."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from lerh_tf.kernels.base import dot


class LangevinState(NamedTuple):
    """A state and a sum over the states before it.

    Attributes:
        total: the sum of eps_j y^j or, with the control variate, of -c_j grad f(x^j).
        y: the state y^j = x^j - x.
        square: with the control variate, the sum of c_j |grad f(x^j)|^2; else 0.
    """

    total: list[tf.Tensor]
    y: list[tf.Tensor]
    square: tf.Tensor

    @classmethod
    def starting_at(cls, y: list[tf.Tensor], dtype: tf.DType) -> "LangevinState":
        """Returns the chain with nothing summed yet."""
        return cls([tf.zeros_like(y_v) for y_v in y], y, tf.zeros([], dtype))

    def with_state(self, weight: tf.Tensor) -> "LangevinState":
        """Returns the chain with its state added to the sum."""
        pairs = zip(self.total, self.y, strict=True)
        return self._replace(total=[t + tf.cast(weight, t.dtype) * y_v for t, y_v in pairs])

    def with_gradient(self, weight: tf.Tensor, gradient: Sequence[tf.Tensor]) -> "LangevinState":
        """Returns the chain with the gradient at its state taken off the sum."""
        wide = [tf.cast(g, t.dtype) for g, t in zip(gradient, self.total, strict=True)]
        pairs = zip(self.total, wide, strict=True)
        return self._replace(
            total=[t - tf.cast(weight, t.dtype) * g for t, g in pairs],
            square=self.square + weight * tf.cast(dot(wide, wide), self.square.dtype),
        )

    def gradient_variance(self, weight: tf.Tensor) -> tf.Tensor:
        """Returns the total variance of the gradients along the chain, float64.

        Args:
            weight: sum_j c_j.
        """
        square = tf.cast(self.square, tf.float64) / weight
        mean_square = tf.cast(dot(self.total, self.total), tf.float64) / weight**2
        return tf.maximum(square - mean_square, 0.0)
