"""Algorithm 3: the mean of q_{x,tau} by stochastic gradient Langevin dynamics."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from lerh_tf._checks import boolean, integer_at_least, one_of
from lerh_tf.kernels.base import (
    Complement,
    Estimate,
    Kernel,
    Samples,
    all_finite,
    displaced,
    fold_blocks,
    map_blocks,
    settings,
    widest_dtype,
)
from lerh_tf.kernels.free_chain import free_chain
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective
from lerh_tf.noise import Noise, block_size, working_dtype
from lerh_tf.schedules import LangevinSteps, Schedule, checked_schedule

Walk = Callable[
    [list[tf.Tensor], list[tf.Tensor], list[tf.Tensor], tf.Tensor, tf.Tensor],
    tuple[list[tf.Tensor], list[tf.Tensor]],
]


@keras.saving.register_keras_serializable("lerh_tf")
@settings
class SGLD(Kernel):
    """Estimates the mean of q_{x,tau} by a Langevin chain with decreasing step sizes.

    x^{j+1} = x^j - eps_j / 2 (grad f(x^j) - (x - x^j) / tau) + eta_j, j = 1, ..., J - 1,
    m = sum_{j=1}^J eps_j x^j / sum_{j=1}^J eps_j.

    x^1, which the text calls x^0, is the first of the J states and is averaged too, so there are
    J - 1 moves.

    Its diagnostics are `standard_error`, of m given the start of the chain, as the root of its
    total variance where f is flat: an upper bound where f is convex, too small where f is curved
    downwards; `mean_start`, the share of x^1 in m there: near 1 the chain hardly left its start,
    and m is no mean of q_{x,tau}; `non_finite`, 1 where the chain left the finite numbers and the
    update was dropped, else 0.

    Where f is flat x^{j+1} - x = (1 - eps_j / (2 tau)) (x^j - x) + eta_j, so step sizes well below
    4 tau keep the chain near x. A number tau for which the chain must diverge is refused: where a
    chain that goes on from one weight update to the next, always by the same step sizes, moves
    away from x in each, or a chain leaves float32 in one.

    Args:
        samples: number of states (paper's J), at least 2: a single state never moves. Defaults
            to 1000.
        step_sizes: schedule j -> eps_j, the paper's temperatures, j counted from 1. Defaults to
            `LangevinSteps()`, the paper's 1 / (1000 + j).
        relative_to_tau: True multiplies eps_j by tau, so that step sizes below 4 suit every tau.
            Defaults to False.
        noise: "langevin" gives eta_j the standard deviation sqrt(eps_j), as printed; "linear"
            gives it eps_j. Defaults to "langevin".
        persistent: True starts the chain at the last state of the previous weight update
            (Section 5.1.1), False at x (Algorithm 3). Defaults to True.
        restart: True counts j from 1 at each weight update (Algorithm 3), False lets it run on
            over the training. Defaults to True.
        rao_blackwell: True gives m, in the dimensions of the weights that the minibatch does not
            see, where the optimizer finds any, its conditional expectation given the start of the
            chain, while the chain's last state is still drawn: the same expectation with a
            smaller variance, beyond the paper. Defaults to False.

    Raises:
        ValueError: `samples` is no integer of at least 2, `noise` unknown, `step_sizes` no
            schedule, or one of the others no bool.

    References:
        Algorithm 3 and Section 5.1.1; Welling and Teh (2011).
    """

    samples: int = 1000
    _: dataclasses.KW_ONLY
    step_sizes: Schedule = dataclasses.field(default_factory=LangevinSteps)
    relative_to_tau: bool = False
    noise: str = "langevin"
    persistent: bool = True
    restart: bool = True
    rao_blackwell: bool = False

    diagnostic_names: ClassVar[tuple[str, ...]] = (
        "standard_error",
        "mean_start",
        "non_finite",
    )
    reducible: ClassVar[bool] = True
    failure: ClassVar[str] = (
        "SGLD: the chain reached infinite or NaN weights. The weights and the chain were left as "
        "they were. Try smaller step sizes or a larger tau, and look for NaN in the inputs."
    )

    def __post_init__(self) -> None:
        integer_at_least("samples", self.samples, 2)
        one_of("noise", self.noise, ("langevin", "linear"))
        for name in ("relative_to_tau", "persistent", "restart", "rao_blackwell"):
            boolean(name, getattr(self, name))
        checked_schedule("step_sizes", self.step_sizes)

    @property
    def has_chain(self) -> bool:
        """Whether the chain goes on from one weight update to the next."""
        return self.persistent

    def check_tau(self, tau: float) -> None:
        """Refuses a tau for which the chain must diverge where f is flat."""
        with tf.init_scope(), np.errstate(all="ignore"):
            # A concrete function: at the fifth eager `vectorized_map` TensorFlow warns.
            step_sizes = tf.function(lambda: self._step_sizes(0, tau), autograph=False)
            eps = step_sizes.get_concrete_function()().numpy()
            growth = abs(np.prod(1.0 - eps[:-1] / (2.0 * tau)))
        repeats = self.persistent and self.restart
        if growth > (1.0 if repeats else tf.float32.max):
            raise ValueError(
                "`tau` must be so large that SGLD's chain stays near x where f is flat, as it does "
                "with step sizes below 4 tau. Here it moves away from x by a factor of "
                f"{growth:.3g} in each weight update. Take a larger tau, smaller step sizes or "
                f"`relative_to_tau=True`. Received: tau={tau}, step_sizes from {eps[0]:.3g} to "
                f"{eps[-1]:.3g}"
            )

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
        start = self._start(anchor, chain)
        eps = self._step_sizes(update, tau)
        weighted_sum, y = self._run(
            self._walk(objective, anchor, tau),
            _difference(start, anchor),
            tf.cast(eps, widest_dtype([x.dtype for x in anchor])),
            noise,
            block_size(anchor),
        )
        weight = tf.reduce_sum(eps)
        mean = [s / tf.cast(weight, s.dtype) for s in weighted_sum]
        law = free_chain(eps, self._deviation(eps), tau)
        return self._estimate(anchor, start, mean, y, law, objective.dimensions(anchor))

    def sample(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        chain: Sequence[tf.Tensor] = (),
        update: tf.Tensor | int = 0,
    ) -> Samples:
        """Returns the chain's states, whose mean a call estimates, weighted by their step sizes.

        All J positions are in memory at once. The last one goes on in a persistent chain.

        Args:
            objective: f on the current minibatch.
            anchor: the current weights x, one tensor per variable.
            tau: variance of the Gaussian (paper's tau), scalar tensor.
            noise: source of standard normal noise.
            chain: where the Markov chain starts, one position per variable; empty for x.
            update: the raw count of weight updates so far, for schedules that run on.
        """
        y = _difference(self._start(anchor, chain), anchor)
        dtypes = [y_v.dtype for y_v in y]
        eps = tf.cast(self._step_sizes(update, tau), widest_dtype(dtypes))
        moves = self.samples - 1
        size = tf.minimum(block_size(anchor), moves)
        z = map_blocks(lambda block: noise(block, size), moves, size, dtypes)

        def move(y: list[tf.Tensor], drawn: tuple[list[tf.Tensor], tf.Tensor]) -> list[tf.Tensor]:
            return self._moved(objective, anchor, tau, y, *drawn)

        moved = tf.scan(move, (z, eps[:-1]), y)
        states = [tf.concat([y_v[None], m], 0) for y_v, m in zip(y, moved, strict=True)]
        return Samples(displaced(anchor, states), eps / tf.reduce_sum(eps))

    def _start(
        self, anchor: Sequence[tf.Tensor], chain: Sequence[tf.Tensor]
    ) -> Sequence[tf.Tensor]:
        return chain if self.persistent and chain else anchor

    def _step_sizes(self, update: tf.Tensor | int, tau: tf.Tensor | float) -> tf.Tensor:
        """Returns eps_1, ..., eps_J of this weight update, float64 of shape [samples]."""
        j = tf.range(1, self.samples + 1, dtype=tf.int64)
        if not self.restart:
            j += self.samples * tf.cast(update, tf.int64)
        eps = tf.cast(tf.vectorized_map(self.step_sizes, j), tf.float64)
        return eps * tf.cast(tau, tf.float64) if self.relative_to_tau else eps

    def _deviation(self, eps: tf.Tensor) -> tf.Tensor:
        """Returns the standard deviation s_j of eta_j."""
        return tf.sqrt(eps) if self.noise == "langevin" else eps

    def _run(
        self,
        walk: Walk,
        y: list[tf.Tensor],
        eps: tf.Tensor,
        noise: Noise,
        size: int | tf.Tensor,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Makes the J - 1 moves, a block at a time.

        Returns:
            sum_{j=1}^J eps_j y^j and the last state y^J.
        """
        moves = self.samples - 1
        size = tf.minimum(size, moves)
        padded = tf.pad(eps, [[0, size]])

        def add_block(
            block: tf.Tensor, count: tf.Tensor, state: tuple[list[tf.Tensor], list[tf.Tensor]]
        ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
            steps = tf.slice(padded, [tf.cast(block, tf.int32) * size], [size])
            return walk(*state, noise(block, size), steps, count)

        zeros = [tf.zeros_like(y_v) for y_v in y]
        total, y = fold_blocks(add_block, moves, size, (zeros, y))
        return [t + tf.cast(eps[-1], t.dtype) * y_v for t, y_v in zip(total, y, strict=True)], y

    def _walk(self, objective: Objective, anchor: Sequence[tf.Tensor], tau: tf.Tensor) -> Walk:
        """Returns the function that makes the first `count` moves of a block, y^j = x^j - x."""

        def walk(
            total: list[tf.Tensor],
            y: list[tf.Tensor],
            z: list[tf.Tensor],
            eps: tf.Tensor,
            count: tf.Tensor,
        ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
            def move(
                j: tf.Tensor, total: list[tf.Tensor], y: list[tf.Tensor]
            ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
                total = [
                    t + tf.cast(eps[j], t.dtype) * y_v for t, y_v in zip(total, y, strict=True)
                ]
                z_j = [z_v[j] for z_v in z]
                return j + 1, total, self._moved(objective, anchor, tau, y, z_j, eps[j])

            _, total, y = tf.while_loop(
                lambda j, *_: j < count, move, (tf.constant(0), total, y), parallel_iterations=1
            )
            return total, y

        return compiled(walk, objective)

    def _moved(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        y: list[tf.Tensor],
        z: list[tf.Tensor],
        eps: tf.Tensor,
    ) -> list[tf.Tensor]:
        """Returns y - eps / 2 (grad f(x + y) + y / tau) + eta."""
        half, deviation = eps / 2.0, self._deviation(eps)

        def moved(y: tf.Tensor, gradient: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
            drift = tf.cast(gradient, y.dtype) + y / tf.cast(tau, y.dtype)
            return y - tf.cast(half, y.dtype) * drift + tf.cast(deviation, y.dtype) * z

        return [
            moved(*parts)
            for parts in zip(y, objective.gradient(displaced(anchor, y)), z, strict=True)
        ]

    def _estimate(
        self,
        anchor: Sequence[tf.Tensor],
        start: Sequence[tf.Tensor],
        mean: list[tf.Tensor],
        y: list[tf.Tensor],
        law: Complement,
        dimensions: tf.Tensor,
    ) -> Estimate:
        is_valid = all_finite([*mean, *y])
        chain = [tf.cast(x, y_v.dtype) + y_v for x, y_v in zip(anchor, y, strict=True)]
        diagnostics = {
            "standard_error": law.mean_noise * tf.sqrt(tf.cast(dimensions, tf.float64)),
            "mean_start": law.mean_start,
            "non_finite": 1.0 - tf.cast(is_valid, tf.float32),
        }
        if self.rao_blackwell:
            law = law._replace(mean_noise=tf.zeros_like(law.mean_noise))
        estimate = Estimate(mean, chain if self.persistent else [], diagnostics, is_valid, law)
        return estimate.dropped_unless(is_valid, start)


def _difference(start: Sequence[tf.Tensor], anchor: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns start - anchor, in at least float32."""
    dtypes = [working_dtype(x.dtype) for x in anchor]
    return [
        tf.cast(s, dtype) - tf.cast(x, dtype)
        for s, x, dtype in zip(start, anchor, dtypes, strict=True)
    ]
