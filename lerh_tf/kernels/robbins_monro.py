"""Algorithm 5: a minimiser of KL(phi || q_{x,tau}) by Robbins-Monro."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import keras
import tensorflow as tf

from lerh_tf._checks import integer_at_least
from lerh_tf.kernels.base import (
    Estimate,
    Kernel,
    all_finite,
    displaced,
    dot,
    fold_blocks,
    scaled,
    settings,
)
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective
from lerh_tf.noise import Noise, block_size, working_dtype
from lerh_tf.schedules import RobbinsMonroSteps, Schedule, checked_schedule


@keras.saving.register_keras_serializable("lerh_tf")
@settings
class RobbinsMonro(Kernel):
    """Finds a root of h(m) = m - x + tau E grad f(Y), Y ~ N(m, tau I), from noisy values of h.

    x^{j+1} = x^j - a_j (x^j - x + tau / M sum_{m=1}^M grad f(z^(m))), z^(m) ~ N(x^j, tau I),
    j = 1, ..., J, from x^1 = x.

    x^1, which the text calls x^0, is moved J times, and the last state is returned.

    Where f is linear the distance to the root shrinks to prod_{j=1}^J (1 - a_j) of what it was,
    0.51 with the defaults: the paper's settings go half of the way. More steps or larger step
    sizes go further.

    Its diagnostics are `residual`, |h|, of the last estimate of h; `relative_residual`,
    |h| / |m - x|, near 0 where the iteration has arrived, about 1 where it is half of the way
    there, and 0 where f is flat and nothing moves; `non_finite`, 1 where the iteration left the
    finite numbers and the update was dropped, else 0.

    Args:
        steps: number of moves (paper's J), a positive integer. Defaults to 30.
        samples: number of gradients averaged per move (paper's M), a positive integer. Defaults
            to 30.
        step_sizes: schedule j -> a_j, j counted from 1. Defaults to `RobbinsMonroSteps()`, which
            decays as 0.1 j^(-0.7); the text prints the growing form.

    Raises:
        ValueError: `steps` or `samples` is no positive integer, or `step_sizes` no schedule.

    References:
        Algorithm 5, equation (robmon); Robbins and Monro (1951).
    """

    steps: int = 30
    samples: int = 30
    _: dataclasses.KW_ONLY
    step_sizes: Schedule = dataclasses.field(default_factory=RobbinsMonroSteps)

    diagnostic_names: ClassVar[tuple[str, ...]] = (
        "residual",
        "relative_residual",
        "non_finite",
    )
    reducible: ClassVar[bool] = True
    failure: ClassVar[str] = (
        "RobbinsMonro: the iteration reached infinite or NaN weights. The weights were left as "
        "they were. Try smaller step sizes or a smaller tau, and look for NaN in the inputs."
    )

    def __post_init__(self) -> None:
        integer_at_least("steps", self.steps, 1)
        integer_at_least("samples", self.samples, 1)
        checked_schedule("step_sizes", self.step_sizes)

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
        mean_gradient = self._mean_gradient(objective, anchor, tau, noise)
        zeros = [tf.zeros_like(x, working_dtype(x.dtype)) for x in anchor]

        def move(
            j: tf.Tensor, y: list[tf.Tensor], _: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
            h = [
                y_v + tf.cast(tau, y_v.dtype) * g
                for y_v, g in zip(y, mean_gradient(j, y), strict=True)
            ]
            a = self.step_sizes(j)
            return (
                j + 1,
                [y_v - tf.cast(a, y_v.dtype) * h_v for y_v, h_v in zip(y, h, strict=True)],
                h,
            )

        _, y, h = tf.while_loop(
            lambda j, *_: j <= self.steps,
            move,
            (tf.constant(1, tf.int64), zeros, zeros),
            parallel_iterations=1,
        )
        is_valid = all_finite(y)
        residual, step = tf.sqrt(dot(h, h)), tf.sqrt(dot(y, y))
        diagnostics = {
            "residual": residual,
            "relative_residual": tf.where(tf.equal(residual, 0.0), residual, residual / step),
            "non_finite": 1.0 - tf.cast(is_valid, tf.float32),
        }
        displacement = [tf.where(is_valid, y_v, tf.zeros_like(y_v)) for y_v in y]
        # No complement: h is 0 at x where f is constant, so nothing moves.
        return Estimate(displacement, [], diagnostics, is_valid)

    def _mean_gradient(
        self, objective: Objective, anchor: Sequence[tf.Tensor], tau: tf.Tensor, noise: Noise
    ) -> Callable[[tf.Tensor, list[tf.Tensor]], list[tf.Tensor]]:
        """Returns (j, y) -> the mean of M gradients of f over N(x + y, tau I)."""
        blocks = _ratio_up(self.samples, block_size(anchor, objective.footprint))
        # Spread evenly: every move draws whole blocks.
        size = _ratio_up(self.samples, blocks)

        def add_gradients(
            sums: list[tf.Tensor], y: list[tf.Tensor], z: list[tf.Tensor], counts: tf.Tensor
        ) -> list[tf.Tensor]:
            moves = [y_v + d for y_v, d in zip(y, scaled(tau, z), strict=True)]
            gradients = objective.vectorized_gradient(displaced(anchor, moves))
            return [
                s + _sum_where(counts, g, s.dtype) for s, g in zip(sums, gradients, strict=True)
            ]

        add_gradients = compiled(add_gradients, objective)

        def mean_gradient(j: tf.Tensor, y: list[tf.Tensor]) -> list[tf.Tensor]:
            def add_block(
                block: tf.Tensor, count: tf.Tensor, sums: list[tf.Tensor]
            ) -> list[tf.Tensor]:
                z = noise((j - 1) * tf.cast(blocks, tf.int64) + block, size)
                return add_gradients(sums, y, z, tf.range(size) < count)

            zeros = [tf.zeros_like(y_v) for y_v in y]
            sums = fold_blocks(add_block, self.samples, size, zeros)
            return [s / self.samples for s in sums]

        return mean_gradient


def _ratio_up(whole: int, part: int | tf.Tensor) -> int | tf.Tensor:
    return (whole + part - 1) // part


def _sum_where(counts: tf.Tensor, values: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the sum over the leading axis of the entries that count."""
    mask = tf.reshape(counts, [-1] + [1] * (values.shape.rank - 1))
    return tf.reduce_sum(tf.where(mask, tf.cast(values, dtype), tf.zeros([], dtype)), 0)
