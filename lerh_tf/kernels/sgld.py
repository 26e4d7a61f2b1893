"""Algorithm 3: the mean of q_{x,tau} by stochastic gradient Langevin dynamics."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import keras
import tensorflow as tf

from lerh_tf._checks import integer_at_least, one_of
from lerh_tf.kernels.base import (
    Estimate,
    Kernel,
    all_finite,
    displaced,
    dot,
    fold_blocks,
    widest_dtype,
    working_dtype,
)
from lerh_tf.noise import Noise, block_size
from lerh_tf.objective import Objective
from lerh_tf.schedules import Schedule, Temperatures, checked_schedule

# The blocks of the chain are also the batches of the standard error.
_LARGEST_BLOCK = 32


@keras.saving.register_keras_serializable("lerh_tf")
@dataclasses.dataclass(frozen=True)
class SGLD(Kernel):
    """Estimates the mean of q_{x,tau} by a Langevin chain with decreasing step sizes.

    x^{j+1} = x^j - eps_j / 2 (grad f(x^j) - (x - x^j) / tau) + eta_j, j = 1, ..., J - 1,
    m = sum_{j=1}^J eps_j x^j / sum_{j=1}^J eps_j.

    x^1, which the text calls x^0, is the first of the J states and is averaged too, so there are
    J - 1 moves.

    Its diagnostics are `standard_error`, of m, as the root of its total variance by the method of
    batch means, NaN for chains of a single batch (up to 33 samples); `non_finite`, 1 where the
    chain left the finite numbers and the update was dropped, else 0.

    Args:
        samples: number of states (paper's J), at least 2: a single state never moves. Defaults
            to 1000.
        temperatures: schedule j -> eps_j, j counted from 1. Defaults to `Temperatures()`, the
            paper's 1 / (1000 + j).
        noise: "langevin" gives eta_j the standard deviation sqrt(eps_j), as printed; "linear"
            gives it eps_j. Defaults to "langevin".
        persistent: True starts the chain at the last state of the previous weight update
            (Section 5.1.1), False at x (Algorithm 3). Defaults to True.
        restart: True counts j from 1 at each weight update (Algorithm 3), False lets it run on
            over the training. Defaults to True.

    Raises:
        ValueError: `samples` is no integer of at least 2, `noise` unknown, or `temperatures` no
            schedule.

    References:
        Algorithm 3 and Section 5.1.1; Welling and Teh (2011).
    """

    samples: int = 1000
    temperatures: Schedule = dataclasses.field(default_factory=Temperatures)
    noise: str = "langevin"
    persistent: bool = True
    restart: bool = True

    diagnostic_names: ClassVar[tuple[str, ...]] = ("standard_error", "non_finite")
    failure: ClassVar[str] = (
        "SGLD: the chain reached infinite or NaN weights. The weights and the chain were left as "
        "they were. Try smaller temperatures or a larger tau."
    )

    def __post_init__(self) -> None:
        integer_at_least("samples", self.samples, 2)
        one_of("noise", self.noise, ("langevin", "linear"))
        checked_schedule("temperatures", self.temperatures)

    @property
    def has_chain(self) -> bool:
        """Whether the chain goes on from one weight update to the next."""
        return self.persistent

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
        start = chain if self.persistent else anchor
        eps = tf.cast(self._temperatures(update), widest_dtype([x.dtype for x in anchor]))
        moves = self.samples - 1
        size = tf.minimum(block_size(anchor), min(_LARGEST_BLOCK, moves))

        def add_block(block: tf.Tensor, count: tf.Tensor, state: _State) -> _State:
            first = tf.cast(block, tf.int32) * size
            temperatures = eps[first : first + count]
            y, batch = self._walk(objective, anchor, tau, temperatures, noise(block, size), state.y)
            return state.add(y, batch, tf.reduce_sum(temperatures))

        last = fold_blocks(add_block, moves, size, _State.start(anchor, start))
        return self._estimate(anchor, start, last, eps)

    def _temperatures(self, update: tf.Tensor | int) -> tf.Tensor:
        """Returns eps_1, ..., eps_J of this weight update, shape [samples]."""
        j = tf.range(1, self.samples + 1, dtype=tf.int64)
        if not self.restart:
            j += self.samples * tf.cast(update, tf.int64)
        return tf.vectorized_map(self.temperatures, j)

    def _walk(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        eps: tf.Tensor,
        z: Sequence[tf.Tensor],
        y: list[tf.Tensor],
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Makes one move per temperature, y^j = x^j - x.

        Returns:
            The state after the moves and the sum of eps_j y^j over the states before each.
        """

        def move(
            j: tf.Tensor, y: list[tf.Tensor], batch: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
            gradient = objective.gradient(displaced(anchor, y))
            batch = [b + tf.cast(eps[j], b.dtype) * y_v for b, y_v in zip(batch, y, strict=True)]
            y = [
                self._moved(y_v, tf.cast(g, y_v.dtype), z_v[j], eps[j], tau)
                for y_v, g, z_v in zip(y, gradient, z, strict=True)
            ]
            return j + 1, y, batch

        zeros = [tf.zeros_like(y_v) for y_v in y]
        _, y, batch = tf.while_loop(
            lambda j, *_: j < tf.size(eps), move, (tf.constant(0), y, zeros), parallel_iterations=1
        )
        return y, batch

    def _moved(
        self, y: tf.Tensor, gradient: tf.Tensor, z: tf.Tensor, eps: tf.Tensor, tau: tf.Tensor
    ) -> tf.Tensor:
        """Returns y - eps / 2 (grad f + y / tau) + eta."""
        deviation = tf.sqrt(eps) if self.noise == "langevin" else eps
        drift = gradient + y / tf.cast(tau, y.dtype)
        return y - tf.cast(eps / 2.0, y.dtype) * drift + tf.cast(deviation, y.dtype) * z

    def _estimate(
        self,
        anchor: Sequence[tf.Tensor],
        start: Sequence[tf.Tensor],
        last: "_State",
        eps: tf.Tensor,
    ) -> Estimate:
        weight = tf.reduce_sum(eps)
        mean = [
            (s + tf.cast(eps[-1], y.dtype) * y) / tf.cast(weight, y.dtype)
            for s, y in zip(last.total, last.y, strict=True)
        ]
        is_valid = all_finite([*mean, *last.y])
        diagnostics = {
            "standard_error": last.standard_error(mean),
            "non_finite": 1.0 - tf.cast(is_valid, tf.float32),
        }
        displacement = [tf.where(is_valid, m, tf.zeros_like(m)) for m in mean]
        chain = [
            tf.where(is_valid, tf.cast(x, y.dtype) + y, tf.cast(s, y.dtype))
            for x, y, s in zip(anchor, last.y, start, strict=True)
        ]
        return Estimate(displacement, chain if self.persistent else [], diagnostics, is_valid)


class _State(NamedTuple):
    """The chain and its streamed sums; b counts the batches, S_b = sum eps y, W_b = sum eps.

    Attributes:
        y: the present state as a displacement from x.
        total: sum_b S_b.
        weighted: sum_b W_b S_b.
        weight: sum_b W_b.
        square: sum_b |S_b|^2.
        square_weight: sum_b W_b^2.
        batches: the number of batches.
    """

    y: list[tf.Tensor]
    total: list[tf.Tensor]
    weighted: list[tf.Tensor]
    weight: tf.Tensor
    square: tf.Tensor
    square_weight: tf.Tensor
    batches: tf.Tensor

    @classmethod
    def start(cls, anchor: Sequence[tf.Tensor], start: Sequence[tf.Tensor]) -> "_State":
        y = [
            tf.cast(s, working_dtype(x.dtype)) - tf.cast(x, working_dtype(x.dtype))
            for s, x in zip(start, anchor, strict=True)
        ]
        zeros = [tf.zeros_like(y_v) for y_v in y]
        zero = tf.zeros([], widest_dtype([x.dtype for x in anchor]))
        return cls(y, zeros, zeros, zero, zero, zero, zero)

    def add(self, y: list[tf.Tensor], batch: list[tf.Tensor], weight: tf.Tensor) -> "_State":
        return _State(
            y,
            [t + b for t, b in zip(self.total, batch, strict=True)],
            [w + tf.cast(weight, b.dtype) * b for w, b in zip(self.weighted, batch, strict=True)],
            self.weight + weight,
            self.square + dot(batch, batch),
            self.square_weight + weight**2,
            self.batches + 1.0,
        )

    def standard_error(self, mean: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the root of B / (B - 1) sum_b |S_b - W_b m|^2 / (sum_b W_b)^2."""
        spread = self.square - 2.0 * dot(mean, self.weighted) + dot(mean, mean) * self.square_weight
        variance = spread / self.weight**2 * self.batches / (self.batches - 1.0)
        return tf.where(self.batches > 1.0, tf.sqrt(tf.maximum(variance, 0.0)), float("nan"))
