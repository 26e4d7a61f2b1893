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
    dot,
    settings,
    widest_dtype,
)
from lerh_tf.kernels.blocks import fold_blocks, map_blocks
from lerh_tf.kernels.chain import LangevinState
from lerh_tf.kernels.free_chain import free_chain, gradient_weights, share_of_spread
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective, displaced
from lerh_tf.noise import Noise, block_size, working_dtype
from lerh_tf.schedules import LangevinSteps, Schedule, checked_schedule

Walk = Callable[[LangevinState, list[tf.Tensor], tf.Tensor, tf.Tensor], LangevinState]


@keras.saving.register_keras_serializable("lerh_tf")
@settings
class SGLD(Kernel):
    """Estimates the mean of q_{x,tau} by a Langevin chain with decreasing step sizes.

    x^{j+1} = x^j - eps_j / 2 (grad f(x^j) - (x - x^j) / tau) + eta_j, j = 1, ..., J - 1,
    m = sum_{j=1}^J eps_j x^j / sum_{j=1}^J eps_j.

    x^1, the text's x^0, is the first of the J states and averaged too: there are J - 1 moves.

    Nearly all of the noise of m is that of the eta_j, which is there where f is flat too.
    `control_variate=True` takes off what the same noise from the same start gives there. What is
    left are the gradients: with d^j the chain's distance from that where f is flat,

    d^1 = 0, d^{j+1} = (1 - eps_j / (2 tau)) d^j - eps_j / 2 grad f(x^j),
    m = x + sum_j eps_j d^j / sum_j eps_j + mean_start (x^1 - x),
    m = x + mean_start (x^1 - x) - sum_j c_j grad f(x^j)

    with weights c_j in closed form. The expectation given the start of the chain is the same, no
    gradient more is taken, and nothing is left of the noise where grad f is constant. The last
    state is the same. In a persistent chain the noise of x^1 stays in m: the gain is smaller.

    Its diagnostics are `standard_error`, of m given the start of the chain, as the root of its
    total variance where f is flat: an upper bound where f is convex, too small where f is curved
    downwards; `mean_start`, the share of x^1 in m there: near 1 the chain hardly left its start,
    and m is no mean of q_{x,tau}; `non_finite`, 1 where the chain left the finite numbers and the
    update was dropped, else 0. With the control variate `standard_error` is made from the variance
    of the gradients along the chain, as if they were linear functions of a chain where f is flat:
    too large where f is strongly convex, and meaningless with step sizes above 4 tau.

    Where f is flat x^{j+1} - x = (1 - eps_j / (2 tau)) (x^j - x) + eta_j, so step sizes well below
    4 tau keep the chain near x. A number tau for which the chain must diverge is refused: where a
    chain that goes on from one weight update to the next, always by the same step sizes, moves
    away from x in each, or a chain leaves float32 in one. That holds for weights that move to m;
    where they move r times as far (a learning rate of r tau), a persistent chain's start is that
    much further behind, and from an r `mean_start` between 1 and 2 on it runs away, which is not
    refused. Take `persistent=False` there, and where weights are set from outside.

    Args:
        samples: number of states (paper's J), at least 2: one never moves. Defaults to 1000.
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
        control_variate: True takes off the noise that is there where f is flat: the same
            expectation with a smaller variance, beyond the paper. Defaults to False.

    Raises:
        ValueError: `samples` is no integer of at least 2, `noise` unknown, `step_sizes` no
            schedule, or one of the others no bool.

    References:
        Algorithm 3 and Section 5.1.1; Welling and Teh (2011); Owen (2013), Monte Carlo theory,
        methods and examples, chapter 8, for control variates.
    """

    samples: int = 1000
    _: dataclasses.KW_ONLY
    step_sizes: Schedule = dataclasses.field(default_factory=LangevinSteps)
    relative_to_tau: bool = False
    noise: str = "langevin"
    persistent: bool = True
    restart: bool = True
    control_variate: bool = False

    diagnostic_names: ClassVar[tuple[str, ...]] = (
        "standard_error",
        "mean_start",
        "non_finite",
    )
    splits: ClassVar[tuple[str, ...]] = ("samples",)
    reducible: ClassVar[bool] = True
    failure: ClassVar[str] = (
        "SGLD: the chain reached infinite or NaN weights. The weights and the chain were left as "
        "they were. Look for NaN in the inputs, then try smaller step sizes or a larger tau."
    )

    def __post_init__(self) -> None:
        integer_at_least("samples", self.samples, 2)
        one_of("noise", self.noise, ("langevin", "linear"))
        for name in ("relative_to_tau", "persistent", "restart", "control_variate"):
            boolean(name, getattr(self, name))
        checked_schedule("step_sizes", self.step_sizes, "LangevinSteps(1000)")

    @property
    def has_chain(self) -> bool:
        """Whether the chain goes on from one weight update to the next."""
        return self.persistent

    def as_one_of(self, replicas: int) -> Kernel:
        """Returns a chain of a share of the states: those of the replicas are independent."""
        share = -(-self.samples // replicas)
        if share < 2:
            raise ValueError(
                '`samples` must be more than the number of replicas with `parallel="samples"`: '
                "each has a chain of its share of the states, at least 2. Received: "
                f"samples={self.samples}, {replicas} replicas"
            )
        return dataclasses.replace(self, samples=share)

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
                "with step sizes below 4 tau; with these it runs away. Take a larger tau, smaller "
                f"step sizes or `relative_to_tau=True`. Received: tau={tau}, step_sizes from "
                f"{eps[0]:.3g} to {eps[-1]:.3g}"
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
        first = _difference(start, anchor)
        eps = self._step_sizes(update, tau)
        law = free_chain(eps, self._deviation(eps), tau)
        coefficients = gradient_weights(eps, tau) if self.control_variate else eps
        dtype = widest_dtype([x.dtype for x in anchor])
        found = self._run(
            self._walk(objective, anchor, tau),
            first,
            tf.cast(tf.stack([eps, coefficients]), dtype),
            noise,
            block_size(anchor),
        )
        dimensions = tf.cast(objective.dimensions(anchor), tf.float64)
        if self.control_variate:
            mean = [
                tf.cast(law.mean_start, y.dtype) * y + total
                for y, total in zip(first, found.total, strict=True)
            ]
            law = law._replace(mean_noise=tf.zeros_like(law.mean_noise))
            variance = found.gradient_variance(tf.reduce_sum(coefficients))
            square = tf.cast(dot(first, first), tf.float64) / dimensions
            share = share_of_spread(eps, self._deviation(eps), coefficients, tau, square)
            error = tf.sqrt(share * variance)
        else:
            weight = tf.reduce_sum(eps)
            mean = [s / tf.cast(weight, s.dtype) for s in found.total]
            error = law.mean_noise * tf.sqrt(dimensions)
        return self._estimate(anchor, start, mean, found.y, law, error)

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
            return self._moved(y, objective.gradient(displaced(anchor, y)), tau, *drawn)

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
        steps: tf.Tensor,
        noise: Noise,
        size: int | tf.Tensor,
    ) -> LangevinState:
        """Makes the J - 1 moves, a block at a time.

        Args:
            walk: makes those of a block.
            y: the first state y^1.
            steps: the step sizes and the coefficients of the sum, shape [2, J].
            noise: source of standard normal noise.
            size: the number of moves in a block.

        Returns:
            The sum over all J states, or J - 1 gradients, and the last state y^J.
        """
        moves = self.samples - 1
        size = tf.minimum(size, moves)
        padded = tf.pad(steps, [[0, 0], [0, size]])

        def draw(block: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
            own = tf.slice(padded, [0, tf.cast(block, tf.int32) * size], [2, size])
            return noise(block, size), own

        start = LangevinState.starting_at(y, steps.dtype)
        chain = fold_blocks(
            draw, lambda state, block, n: walk(state, *block, n), moves, size, start
        )
        # The last state moves nowhere: its gradient is not taken, and its coefficient is 0.
        return chain if self.control_variate else chain.with_state(steps[1, -1])

    def _walk(self, objective: Objective, anchor: Sequence[tf.Tensor], tau: tf.Tensor) -> Walk:
        """Returns the function that makes the first `count` moves of a block, y^j = x^j - x."""

        def walk(
            chain: LangevinState, z: list[tf.Tensor], steps: tf.Tensor, count: tf.Tensor
        ) -> LangevinState:
            eps, coefficients = tf.unstack(steps)

            def move(j: tf.Tensor, chain: LangevinState) -> tuple[tf.Tensor, LangevinState]:
                gradient = objective.gradient(displaced(anchor, chain.y))
                if self.control_variate:
                    summed = chain.with_gradient(coefficients[j], gradient)
                else:
                    summed = chain.with_state(coefficients[j])
                z_j = [z_v[j] for z_v in z]
                return j + 1, summed._replace(y=self._moved(chain.y, gradient, tau, z_j, eps[j]))

            _, chain = tf.while_loop(
                lambda j, *_: j < count, move, (tf.constant(0), chain), parallel_iterations=1
            )
            return chain

        return compiled(walk, objective)

    def _moved(
        self,
        y: list[tf.Tensor],
        gradient: list[tf.Tensor],
        tau: tf.Tensor,
        z: list[tf.Tensor],
        eps: tf.Tensor,
    ) -> list[tf.Tensor]:
        """Returns y - eps / 2 (grad f(x + y) + y / tau) + eta."""
        half, deviation = eps / 2.0, self._deviation(eps)

        def moved(y: tf.Tensor, gradient: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
            drift = tf.cast(gradient, y.dtype) + y / tf.cast(tau, y.dtype)
            return y - tf.cast(half, y.dtype) * drift + tf.cast(deviation, y.dtype) * z

        return [moved(*parts) for parts in zip(y, gradient, z, strict=True)]

    def _estimate(
        self,
        anchor: Sequence[tf.Tensor],
        start: Sequence[tf.Tensor],
        mean: list[tf.Tensor],
        y: list[tf.Tensor],
        law: Complement,
        standard_error: tf.Tensor,
    ) -> Estimate:
        is_valid = all_finite([*mean, *y])
        chain = [tf.cast(x, y_v.dtype) + y_v for x, y_v in zip(anchor, y, strict=True)]
        diagnostics = {
            "standard_error": standard_error,
            "mean_start": law.mean_start,
            "non_finite": 1.0 - tf.cast(is_valid, tf.float32),
        }
        estimate = Estimate(mean, chain if self.persistent else [], diagnostics, is_valid, law)
        return estimate.dropped_unless(is_valid, start)


def _difference(start: Sequence[tf.Tensor], anchor: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns start - anchor, in at least float32."""
    dtypes = [working_dtype(x.dtype) for x in anchor]
    return [
        tf.cast(s, dtype) - tf.cast(x, dtype)
        for s, x, dtype in zip(start, anchor, dtypes, strict=True)
    ]
