"""Algorithm 5: a minimiser of KL(phi || q_{x,tau}) by Robbins-Monro."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import keras
import tensorflow as tf

from lerh_tf._checks import finite_float, integer_at_least
from lerh_tf.kernels.base import Estimate, Kernel, all_finite, dot, settings, widest_dtype
from lerh_tf.kernels.blocks import fold_samples
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective
from lerh_tf.loss.parts import total, where
from lerh_tf.noise import Noise, block_size, working_dtype
from lerh_tf.replicas import ALONE, Replicas
from lerh_tf.schedules import RobbinsMonroSteps, Schedule, checked_schedule


@keras.saving.register_keras_serializable("lerh_tf")
@settings
class RobbinsMonro(Kernel):
    """Finds a root of h(m) = m - x + tau E grad f(Y), Y ~ N(m, tau I), from noisy values of h.

    x^{j+1} = x^j - a_j (x^j - x + tau / M sum_{m=1}^M grad f(z^(m))), z^(m) ~ N(x^j, tau I),
    j = 1, ..., J, from x^1 = x.

    x^1, which the text calls x^0, is moved J times, and the last state is returned.

    Where f is linear the distance to the root shrinks to prod_{j=1}^J (1 - a_j) of what it was,
    0.51 with the defaults: the paper's settings go half of the way. To go all of it, and to
    average the noise of all gradients, take a_j = min(1/2, 1/j):
    `RobbinsMonro(30, 30, step_sizes=RobbinsMonroSteps(1.0, 1.0, largest=0.5))`. Plain 1/j starts
    unstable where tau times the curvature of f exceeds 1, this where it exceeds 3; a smaller
    `largest` goes further.

    Its diagnostics are `residual`, |h|, of the last estimate of h; `relative_residual`,
    |h| / |m - x|, near 0 where the iteration has arrived and the noise of M gradients is small,
    about 1 where it is half of the way there, and 0 where f is flat and nothing moves;
    `standard_error`, of m, as the root of its total variance where h has slope 1, as it has where
    f is linear, from how much one estimate of h differs from the next, infinite for a single move;
    `steps`, how many moves were made; `non_finite`, 1 where the iteration left the finite numbers
    and the update was dropped, else 0.

    Args:
        steps: number of moves (paper's J), a positive integer. Defaults to 30.
        samples: number of gradients averaged per move (paper's M), a positive integer. Defaults
            to 30.
        step_sizes: schedule j -> a_j, j counted from 1. Defaults to `RobbinsMonroSteps()`, which
            decays as 0.1 j^(-0.7); the text prints the growing form.
        tolerance: stops before J moves where the relative error of m is estimated to be at most
            this: the root of |h|^2, less what the noise of M gradients adds to it, plus the squared
            standard error, over |m - x|. It is a good estimate in many dimensions and where tau
            times the curvature of f is small. Only step sizes that go all of the way, as above,
            can meet it. A number of at least 0; 0 makes all moves. Defaults to 0.

    Raises:
        ValueError: `steps` or `samples` is no positive integer, `step_sizes` no schedule, or
            `tolerance` negative or not finite.

    References:
        Algorithm 5, equation (5.3); Robbins and Monro (1951).
    """

    steps: int = 30
    samples: int = 30
    _: dataclasses.KW_ONLY
    step_sizes: Schedule = dataclasses.field(default_factory=RobbinsMonroSteps)
    tolerance: float = 0.0

    diagnostic_names: ClassVar[tuple[str, ...]] = (
        "residual",
        "relative_residual",
        "standard_error",
        "steps",
        "non_finite",
    )
    splits: ClassVar[tuple[str, ...]] = ("samples", "batch")
    reducible: ClassVar[bool] = True
    failure: ClassVar[str] = (
        "RobbinsMonro: the iteration reached infinite or NaN weights. The weights were left as "
        "they were. Look for NaN in the inputs, then try smaller step sizes or a smaller tau."
    )

    @property
    def draws_locally(self) -> bool:
        """See `Kernel`."""
        return True

    def __post_init__(self) -> None:
        integer_at_least("steps", self.steps, 1)
        integer_at_least("samples", self.samples, 1)
        checked_schedule("step_sizes", self.step_sizes, "RobbinsMonroSteps(c=0.1)")
        if finite_float("tolerance", self.tolerance) < 0.0:
            raise ValueError(
                f"`tolerance` must be at least 0. Received: tolerance={self.tolerance}"
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
        mean_gradient = self._mean_gradient(objective, anchor, tau, noise, replicas)
        dtype = widest_dtype([x.dtype for x in anchor])

        def move(j: tf.Tensor, state: _Iteration) -> tuple[tf.Tensor, _Iteration]:
            h = [
                y_v + tf.cast(tau, y_v.dtype) * g
                for y_v, g in zip(state.y, mean_gradient(j, state.y), strict=True)
            ]
            return j + 1, state.moved(j, h, self.step_sizes(j))

        def goes_on(j: tf.Tensor, state: _Iteration) -> tf.Tensor:
            within = j <= self.steps
            if self.tolerance == 0.0:
                return within
            return within & ((j <= _APPROACH) | (state.error() > self.tolerance * state.step()))

        start = (tf.constant(1, tf.int64), _Iteration.start(anchor, dtype))
        j, found = replicas.while_loop(goes_on, move, start)
        is_valid = all_finite(found.y)
        residual = tf.sqrt(dot(found.h, found.h))
        diagnostics = {
            "residual": residual,
            "relative_residual": tf.where(
                tf.equal(residual, 0.0), residual, residual / found.step()
            ),
            "standard_error": tf.where(j > 2, tf.sqrt(found.variance()), float("inf")),
            "steps": tf.cast(j - 1, dtype),
            "non_finite": 1.0 - tf.cast(is_valid, tf.float32),
        }
        displacement = [tf.where(is_valid, y_v, tf.zeros_like(y_v)) for y_v in found.y]
        # No complement: h is 0 at x where f is constant, so nothing moves.
        return Estimate(displacement, [], diagnostics, is_valid)

    def _mean_gradient(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        replicas: Replicas,
    ) -> Callable[[tf.Tensor, list[tf.Tensor]], list[tf.Tensor]]:
        """Returns (j, y) -> the mean of M gradients of f over N(x + y, tau I)."""
        drawn = objective.noise_like(anchor)
        footprint = objective.whole_footprint(replicas)
        blocks = _ratio_up(self.samples, block_size(drawn, footprint))
        # Spread evenly: every move draws whole blocks.
        size = _ratio_up(self.samples, blocks)

        def block_sums(
            y: list[tf.Tensor], z: list[tf.Tensor], counts: tf.Tensor
        ) -> list[tf.Tensor]:
            _, gradients = objective.gradients_around(anchor, tau, z, y)
            return [total(where(counts, g, y_v.dtype)) for g, y_v in zip(gradients, y, strict=True)]

        block_sums = compiled(block_sums, objective)

        def mean_gradient(j: tf.Tensor, y: list[tf.Tensor]) -> list[tf.Tensor]:
            def draw(z: list[tf.Tensor], counts: tf.Tensor) -> list[tf.Tensor]:
                return block_sums(y, z, counts)

            def add(sums: list[tf.Tensor], more: list[tf.Tensor]) -> list[tf.Tensor]:
                return [s + of_block for s, of_block in zip(sums, more, strict=True)]

            zeros = [tf.zeros_like(y_v) for y_v in y]
            first = (j - 1) * tf.cast(blocks, tf.int64)
            sums = fold_samples(draw, add, noise, self.samples, size, zeros, first, replicas)
            if replicas.split == "samples":
                sums = replicas.total(sums)
            elif replicas.split == "batch":
                sums = replicas.mean(sums)
            return [s / self.samples for s in sums]

        return mean_gradient


_APPROACH = 3
"""Moves before anything is known of the noise."""


class _Iteration(NamedTuple):
    """A state of the iteration and what is known of it.

    Attributes:
        y: x^j - x, one tensor per variable.
        h: the last estimate of h, at the state before.
        noise: the total variance of its noise: half the squares of its changes, in a mean that
            gives later ones more weight.
        share: the variance of y over that of the noise, where h has slope 1.
    """

    y: list[tf.Tensor]
    h: list[tf.Tensor]
    noise: tf.Tensor
    share: tf.Tensor

    @classmethod
    def start(cls, anchor: Sequence[tf.Tensor], dtype: tf.DType) -> "_Iteration":
        """Returns the state x^1 = x."""
        zeros = [tf.zeros_like(x, working_dtype(x.dtype)) for x in anchor]
        return cls(zeros, zeros, tf.zeros([], dtype), tf.zeros([], dtype))

    def moved(self, j: tf.Tensor, h: list[tf.Tensor], a: tf.Tensor) -> "_Iteration":
        """Returns the state after the j-th move, of size a against h."""
        y = [y_v - tf.cast(a, y_v.dtype) * h_v for y_v, h_v in zip(self.y, h, strict=True)]
        change = [new - old for new, old in zip(h, self.h, strict=True)]
        a = tf.cast(a, self.share.dtype)
        share = (1.0 - a) ** 2 * self.share + a**2
        # The first changes are most of the step: each takes the place of the one before.
        weight = 2.0 / (tf.cast(tf.maximum(j - _APPROACH, 1), a.dtype) + 1.0)
        noise = self.noise + weight * (dot(change, change) / 2.0 - self.noise)
        return _Iteration(y, h, noise, share)

    def variance(self) -> tf.Tensor:
        """Returns the total variance of y."""
        return self.share * self.noise

    def step(self) -> tf.Tensor:
        """Returns |m - x|."""
        return tf.sqrt(dot(self.y, self.y))

    def error(self) -> tf.Tensor:
        """Returns about how far the state is from the root where h has slope 1."""
        distance = tf.maximum(dot(self.h, self.h) - self.noise, 0.0)
        return tf.sqrt(distance + self.variance())


def _ratio_up(whole: int, part: int | tf.Tensor) -> int | tf.Tensor:
    return (whole + part - 1) // part
