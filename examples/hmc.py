"""A sampler of one's own: Hamiltonian Monte Carlo as a kernel, which `fit` trains with."""

from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import tensorflow as tf

import lerh_tf


@keras.saving.register_keras_serializable("examples")
@dataclass(frozen=True)
class HMC(lerh_tf.Kernel):
    """The mean of q_{x,tau} by a chain in v = (x' - x) / sqrt(tau), whose energy is -log q."""

    samples: int = 100
    leaps: int = 10
    step_size: float = 0.15
    diagnostic_names: ClassVar[tuple[str, ...]] = ("acceptance_rate",)

    def __call__(
        self, objective: Any, anchor: Any, tau: Any, noise: Any, chain: Any = (), update: Any = 0
    ) -> lerh_tf.Estimate:
        """Averages a chain from x: the end of a leapfrog path where accepted, else the old v."""
        root, n, zero = tf.sqrt(tau), self.samples, [tf.zeros_like(x, tau.dtype) for x in anchor]

        def flat(tensors: Any, rows: int = 1) -> Any:
            return tf.concat([tf.reshape(tf.cast(t, tau.dtype), [rows, -1]) for t in tensors], 1)

        def at(v: Any, x: Any = anchor) -> list[Any]:
            parts = zip(x, tf.split(root * v, list(map(tf.size, x)), 1), strict=True)
            return [a + tf.cast(tf.reshape(d, a.shape), a.dtype) for a, d in parts]

        def energy(v: Any, p: Any) -> Any:
            return tf.cast(objective(at(v)), tau.dtype) + tf.reduce_sum(v**2 + p**2) / 2

        def leap(path: Any, _: Any) -> Any:
            v, p = path[0] + self.step_size / 2 * path[1], path[1]
            p -= self.step_size * (root * flat(objective.gradient(at(v))) + v)
            return v + self.step_size / 2 * p, p

        def move(state: Any, j: Any) -> Any:
            v, mean, rate = state
            p, *normal = tf.split(flat(noise(j, 3), 3), 3)
            path = tf.foldl(leap, tf.range(self.leaps), (v, p))
            # Half the sum of two squared normals is distributed as -log of a uniform number.
            accept = energy(*path) - energy(v, p) < sum(z[0, 0] ** 2 for z in normal) / 2
            v = tf.where(accept, path[0], v)
            return v, mean + v / n, rate + tf.cast(accept, tau.dtype) / n

        _, m, rate = tf.foldl(move, tf.range(n, dtype="int64"), (flat(zero), flat(zero), 0 * tau))
        return lerh_tf.Estimate(at(m, zero), [], {"acceptance_rate": rate}, rate > 0.0)


if __name__ == "__main__":
    x = tf.random.stateless_normal([200, 5], [0, 1])
    model = keras.Sequential([keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
    model.compile(lerh_tf.LocalEntropy(0.1, HMC()), "mse")
    model.fit(x, tf.sin(x[:, :1]), epochs=20, callbacks=[lerh_tf.Diagnostics()])
