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
        shapes = [x.shape for x in anchor]
        start = chain if self.persistent else anchor
        eps = tf.cast(self._temperatures(update), widest_dtype([x.dtype for x in anchor]))
        deviations = tf.sqrt(eps) if self.noise == "langevin" else eps
        size = min(_LARGEST_BLOCK, block_size(shapes))

        def add_block(block: tf.Tensor, moves: int, state: _State) -> _State:
            first = [block * size]
            steps = _Steps(
                tf.slice(eps, first, [moves]),
                tf.slice(deviations, first, [moves]),
                noise(block, moves),
            )
            y, batch = _walk(objective, anchor, tau, steps, state.y)
            return state.add(y, batch, tf.reduce_sum(steps.eps))

        first = _State.start(anchor, start)
        last = fold_blocks(add_block, self.samples - 1, size, first)
        return self._estimate(anchor, start, last, eps)

    def _temperatures(self, update: tf.Tensor | int) -> tf.Tensor:
        """Returns eps_1, ..., eps_J of this weight update, shape [samples]."""
        j = tf.range(1, self.samples + 1, dtype=tf.int64)
        if not self.restart:
            j += self.samples * tf.cast(update, tf.int64)
        return tf.vectorized_map(self.temperatures, j)

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


class _Steps(NamedTuple):
    """Some consecutive moves: temperatures and deviations, [moves], noise, [moves, *shape]."""

    eps: tf.Tensor
    deviations: tf.Tensor
    z: list[tf.Tensor]


def _walk(
    objective: Objective,
    anchor: Sequence[tf.Tensor],
    tau: tf.Tensor,
    steps: _Steps,
    y: list[tf.Tensor],
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """Makes the moves of one block, y^j = x^j - x.

    Returns:
        The state after them and the sum of eps_j y^j over the states before each of them.
    """

    def move(
        i: tf.Tensor, y: list[tf.Tensor], batch: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
        gradient = objective.gradient(displaced(anchor, y))
        batch = [b + tf.cast(steps.eps[i], b.dtype) * y_v for b, y_v in zip(batch, y, strict=True)]
        y = [
            y_v
            - tf.cast(steps.eps[i] / 2.0, y_v.dtype)
            * (tf.cast(g, y_v.dtype) + y_v / tf.cast(tau, y_v.dtype))
            + tf.cast(steps.deviations[i], y_v.dtype) * z[i]
            for y_v, g, z in zip(y, gradient, steps.z, strict=True)
        ]
        return i + 1, y, batch

    moves = steps.eps.shape[0]
    zeros = [tf.zeros_like(y_v) for y_v in y]
    _, y, batch = tf.while_loop(
        lambda i, *_: i < moves, move, (tf.constant(0), y, zeros), parallel_iterations=1
    )
    return y, batch


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
