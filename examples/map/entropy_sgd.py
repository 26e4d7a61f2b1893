"""Entropy-SGD as published, as a kernel: a short Langevin chain with momentum and little noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import keras
import tensorflow as tf

import lerh_tf
from lerh_tf.kernels.base import Complement
from lerh_tf.loss.compilation import compiled

Gradient: TypeAlias = Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]]

STEPS = 20
"""Moves of the chain, the paper's L."""
AVERAGING = 0.75
"""How much of the average is the newest state, the paper's alpha."""
NOISE = 1e-4
"""Factor on the noise, the paper's epsilon."""
SCOPING = 1e-3
"""By how much gamma grows in each update, the paper's gamma_1."""


@keras.saving.register_keras_serializable("examples")
@dataclass(frozen=True)
class EntropySGD(lerh_tf.Kernel):
    """The average mu of a chain x' that starts at x and is held to it by gamma.

    v <- momentum v - step_size (grad f(x' + momentum v) - gamma (x - x')),
    x' <- x' + v + sqrt(step_size) epsilon n, mu <- (1 - alpha) mu + alpha x',

    L = 20 times, with Nesterov's momentum, n standard normal, alpha = 0.75 and epsilon = 1e-4. At
    weight update k gamma is gamma_0 1.001^k. The optimizer moves along x - mu with tau = 1.

    Two departures. All moves of a weight update see its minibatch, where the authors draw one each.
    And gamma grows no further than (1 - momentum) / step_size, one over the step size of the moves'
    long run: held far more tightly, the chain is unstable.

    Args:
        gamma: gamma_0, positive.
        step_size: Of the moves, the paper's eta', positive.
        momentum: Of the moves, in [0, 1).

    References:
        Chaudhari et al. (2017), Entropy-SGD: biasing gradient descent into wide valleys,
        Algorithm 1 and Section 5.
    """

    reducible: ClassVar[bool] = True

    gamma: float = 0.03
    step_size: float = 0.1
    momentum: float = 0.9

    def __call__(
        self,
        objective: lerh_tf.Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: lerh_tf.Noise,
        chain: Sequence[tf.Tensor] = (),
        update: Any = 0,
    ) -> lerh_tf.Estimate:
        """See `Kernel`."""
        scoped = self.gamma * (1.0 + SCOPING) ** tf.cast(update, tau.dtype)
        gamma = tf.minimum(scoped, (1.0 - self.momentum) / self.step_size)

        def average(anchor: Any, gamma: tf.Tensor, z: Any) -> Any:
            return self._average(objective.gradient, anchor, gamma, z)

        drawn = noise(tf.constant(0, tf.int64), STEPS)
        mean = compiled(average, objective)(list(anchor), gamma, drawn)
        is_valid = tf.math.is_finite(tf.linalg.global_norm(mean))
        return lerh_tf.Estimate(mean, [], {}, is_valid, self._complement(gamma))

    def _average(self, gradient: Gradient, anchor: Any, gamma: tf.Tensor, z: Any) -> Any:
        """Returns mu - x by the noise of all moves, shape [STEPS, *shape] per weight."""
        deviation = self.step_size**0.5 * NOISE

        def move(j: tf.Tensor, y: Any, v: Any, mean: Any) -> tuple[tf.Tensor, Any, Any, Any]:
            ahead = [x + d + self.momentum * s for x, d, s in zip(anchor, y, v, strict=True)]
            v = [
                self.momentum * s - self.step_size * (g + gamma * d)
                for s, g, d in zip(v, gradient(ahead), y, strict=True)
            ]
            y = [d + s + deviation * n[j] for d, s, n in zip(y, v, z, strict=True)]
            mean = [(1.0 - AVERAGING) * m + AVERAGING * d for m, d in zip(mean, y, strict=True)]
            return j + 1, y, v, mean

        zeros = [tf.zeros_like(x) for x in anchor]
        start = (tf.constant(0), zeros, zeros, zeros)
        return tf.while_loop(lambda j, *_: j < STEPS, move, start, parallel_iterations=1)[-1]

    def _complement(self, gamma: tf.Tensor) -> Complement:
        """Where f is flat mu - x is linear in the noise: with unit vectors its coefficients."""
        none = tf.zeros([], gamma.dtype)
        units = tf.eye(STEPS, dtype=gamma.dtype)
        (coefficients,) = self._average(
            lambda at: [tf.zeros_like(x) for x in at], [tf.zeros_like(units[0])], gamma, [units]
        )
        return Complement(none, tf.norm(coefficients), none, (none, none))
